package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
)

func TestTokenizerVerbsRoundTrip(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("func main() { println(\"世界\") }\n", 20) + "\xff"
	src, file := filepath.Join(dir, "a.txt"), filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command("tokenizer", "train", "--data", src, "--vocab", "280", "--tokenizer", file)
	if code != cli.OK || !strings.Contains(out, "280 ids") || !strings.Contains(errs, "read 1 files") {
		t.Fatalf("train: code %d, stdout %q, stderr %q", code, out, errs)
	}
	code, ids, _ := command("tokenizer", "encode", "--tokenizer", dir, "--file", src)
	if code != cli.OK {
		t.Fatalf("encode: code %d", code)
	}
	if err := os.WriteFile(filepath.Join(dir, "ids"), []byte(ids), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, _ = command("tokenizer", "decode", "--tokenizer", file, "--file", filepath.Join(dir, "ids")); code != cli.OK || out != text {
		t.Errorf("decode: code %d, %d bytes, want the %d of the file", code, len(out), len(text))
	}
	code, out, _ = command("tokenizer", "encode", "--tokenizer", file, "--json", "func", "main<|endoftext|>")
	var v struct {
		IDs           []int32
		Tokens, Bytes int
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.OK || v.Tokens != len(v.IDs) || v.Bytes != 22 || v.IDs[len(v.IDs)-1] != 279 {
		t.Errorf("encode --json: code %d, %q (%v)", code, out, err)
	}
}

func TestTokenizerShard(t *testing.T) {
	dir := t.TempDir()
	lines := `{"prompt": "a", "completion": "bc"}` + "\n" + `{"prompt": "a", "completion": ""}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "a.tokens")
	code, text, errs := command("tokenizer", "encode", "--tokenizer", "../../token/testdata/gpt2.json", "--data", filepath.Join(dir, "a.jsonl"), "--shard", out)
	if code != cli.OK || !strings.Contains(text, "1 documents (3 bytes) as") || !strings.Contains(errs, "dropped 1") {
		t.Errorf("code %d, stdout %q, stderr %q", code, text, errs)
	}
	if st, err := os.Stat(out); err != nil || st.Size() < 64 {
		t.Errorf("no shard: %v", err)
	}
}

func TestTokenizerRefusals(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty.txt": "", "broken.json": "{}", "a.txt": "text"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{cli.Invalid, "empty", []string{"train", "--data", at("empty.txt"), "--tokenizer", at("t.json")}},
		{cli.Invalid, "vocabulary of 12", []string{"train", "--data", at("a.txt"), "--vocab", "12", "--tokenizer", at("t.json")}},
		{cli.Invalid, "no pre_tokenizer", []string{"encode", "--tokenizer", at("broken.json"), "x"}},
		{cli.Invalid, "no such file", []string{"encode", "--tokenizer", at("absent.json"), "x"}},
		{cli.Usage, "--file", []string{"encode", "--tokenizer", "../../token/testdata/gpt2.json", "--file", at("a.txt"), "x"}},
		{cli.Invalid, "vocabulary", []string{"decode", "--tokenizer", "../../token/testdata/gpt2.json", "99999"}},
		{cli.Invalid, "no id", []string{"decode", "--tokenizer", "../../token/testdata/gpt2.json", "1.5"}},
		{cli.Usage, "go with --shard", []string{"encode", "--tokenizer", "../../token/testdata/gpt2.json", "--data", at("a.txt")}},
		{cli.Usage, "from --data", []string{"encode", "--tokenizer", "../../token/testdata/gpt2.json", "--shard", at("s.tokens"), "x"}},
		{cli.Usage, ".tokens", []string{"encode", "--tokenizer", "../../token/testdata/gpt2.json", "--shard", at("s.bin"), "--data", at("a.txt")}},
		{cli.Usage, "split", []string{"train", "--data", at("a.txt"), "--split", "bert", "--tokenizer", at("t.json")}},
	} {
		code, out, errs := command(append([]string{"tokenizer"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%v: code %d, stdout %q, stderr %q; want code %d and %q", c.args, code, out, errs, c.code, c.says)
		}
		if _, err := os.Stat(at("t.json")); err == nil {
			t.Errorf("%v wrote a file", c.args)
		}
	}
}
