package token

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heddle/internal/mangle"
)

func TestReadingWhatWasWritten(t *testing.T) {
	for _, name := range goldenTokenizers {
		tok, err := Read(goldenPath(name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tok.Write(path); err != nil {
			t.Fatal(err)
		}
		again, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.JSON(), tok.JSON()) || again.Hash() != tok.Hash() {
			t.Errorf("%s: a second generation differs from the first", name)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".tokenizer.json*")); len(left) > 0 {
			t.Errorf("temporary files are left: %v", left)
		}
	}
	if err := small(t, GPT2).Write(filepath.Join(t.TempDir(), "absent", "tokenizer.json")); err == nil {
		t.Error("writing into a folder that does not exist gave no error")
	}
}

// TestParseRefuses breaks a good file in one place at a time.
func TestParseRefuses(t *testing.T) {
	src, err := os.ReadFile(goldenPath("gpt2"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(src); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, says string }{
		"unknown pre-tokenizer":     {`{"type": "Split", "pattern"`, `{"type": "Whitespace", "pattern"`, `"Whitespace"`},
		"unknown pattern":           {`\\p{L}+|`, `\\p{L}*|`, "none of GPT-2"},
		"another behavior":          {`"Isolated"`, `"Removed"`, `"Removed"`},
		"inverted":                  {`"invert": false`, `"invert": true`, "invert true"},
		"prefix space":              {`"add_prefix_space": false, "trim_offsets": false, "use_regex": false}]`, `"add_prefix_space": true, "trim_offsets": false, "use_regex": false}]`, "add_prefix_space"},
		"unknown normalizer":        {`"normalizer": null`, `"normalizer": {"type": "NFKC"}`, `"NFKC"`},
		"two normalizers":           {`"normalizer": null`, `"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}`, "normalizer"},
		"another model":             {`"model": {"type": "BPE"`, `"model": {"type": "Unigram"`, `"Unigram"`},
		"byte fallback":             {`"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		"dropout":                   {`"dropout": null`, `"dropout": 0.1`, "random"},
		"suffix":                    {`"end_of_word_suffix": null`, `"end_of_word_suffix": "</w>"`, "</w>"},
		"another decoder":           {`"decoder": {"type": "ByteLevel"`, `"decoder": {"type": "Metaspace"`, `"Metaspace"`},
		"lstrip":                    {`"lstrip": false`, `"lstrip": true`, "lstrip"},
		"key in another case":       {`"version"`, `"Version"`, `"Version"`},
		"key twice":                 {`"version": "1.0"`, `"version": "1.0", "version": "1.0"`, "twice"},
		"unknown key in model":      {`"fuse_unk": false`, `"fuse": false`, `"fuse"`},
		"negative id":               {`"!": 0,`, `"!": -1,`, "-1"},
		"fractional id":             {`"!": 0,`, `"!": 0.0,`, "0.0"},
		"huge id":                   {`"!": 0,`, `"!": 99999999999999999999,`, "9999"},
		"leading zero":              {`"!": 0,`, `"!": 00,`, "leading zero"},
		"text for an id":            {`"!": 0,`, `"!": "0",`, "number"},
		"hole":                      {`"!": 0,`, `"!": 2000000,`, "hole"},
		"two tokens, one id":        {`"!": 0,`, `"!": 1,`, "id 1 belongs to"},
		"token twice":               {`"!": 0,`, `"!": 0, "!": 0,`, "twice"},
		"a byte is missing":         {`"®": 106,`, `"®®®®": 106,`, "byte 0xae"},
		"outside the alphabet":      {`"!": 0,`, `"! !": 0,`, "alphabet"},
		"merge of an absent token":  {`"Ġ t"`, `"Ġ tqzx"`, `"tqzx" is not in the vocabulary`},
		"merge that makes nothing":  {`"Ġ t"`, `"Ġt !"`, `"Ġt!" is not in the vocabulary`},
		"merge twice":               {`"Ġ t"`, `"Ġ t", "Ġ t"`, "again"},
		"merge of three":            {`"Ġ t"`, `"Ġ t t"`, "one space"},
		"merge of one":              {`"Ġ t"`, `["Ġ"]`, "merge of 1"},
		"merge with an empty part":  {`"Ġ t"`, `["", "t"]`, `"" is not`},
		"special token twice":       {`"content": "<|im_start|>"`, `"content": "<|im_end|>"`, "twice"},
		"special id of another":     {`"id": 503,`, `"id": 504,`, "belongs to"},
		"special id of a token":     {`"id": 503,`, `"id": 3,`, "belongs to"},
		"special with NUL":          {`"content": "<|im_start|>"`, `"content": "<|im\u0000"`, "NUL"},
		"empty special":             {`"content": "<|im_start|>"`, `"content": ""`, "content"},
		"lone surrogate":            {`"content": "<|im_start|>"`, `"content": "\ud800\u0041"`, "surrogate"},
		"lone low surrogate":        {`"content": "<|im_start|>"`, `"content": "\udc00\u0041"`, "surrogate"},
		"bad escape":                {`"content": "<|im_start|>"`, `"content": "\x41"`, "escape"},
		"not UTF-8":                 {`"content": "<|im_start|>"`, "\"content\": \"\xff\"", "UTF-8"},
		"newline in a string":       {`"content": "<|im_start|>"`, "\"content\": \"\n\"", "control character"},
		"trailing comma":            {`"version": "1.0",`, `"version": "1.0",,`, "want"},
		"comment":                   {`"version": "1.0",`, `"version": "1.0", // one`, "want"},
		"deep nesting":              {`"padding": null`, `"padding": ` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested"},
		"byte order mark":           {"{\n \"version\"", "\ufeff{\n \"version\"", "want an object"},
		"no pre-tokenizer":          {`"pre_tokenizer": {`, `"post_processor2": {`, "unknown key"},
		"array instead of a vocab":  {`"vocab": {`, `"vocab": [`, "want an object"},
		"null instead of the model": {`"model": {`, `"model": null, "x": {`, "want an object"},
	} {
		broken := bytes.Replace(src, []byte(c.old), []byte(c.new), 1)
		if bytes.Equal(broken, src) {
			t.Errorf("%s: the file does not hold %q", name, c.old)
			continue
		}
		_, err := Parse(broken)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want an *Error with %q", name, err, c.says)
		}
	}
	for _, text := range []string{"", "null", "[]", "{}", string(src) + "x", string(src) + "{}", string(src[:len(src)/2]), "\x00", "version https://git-lfs.github.com/spec/v1\n"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.40q was accepted", text)
		}
	}
}

// TestBytesWithoutAToken takes 0x04 and 0xf7 out of a vocabulary, as SmolLM's lacks some: without unk_token they are left out, so that their neighbours meet, and
// with it they become that token.
func TestBytesWithoutAToken(t *testing.T) {
	src, err := os.ReadFile(goldenPath("gpt2"))
	if err != nil {
		t.Fatal(err)
	}
	for old, new := range map[string]string{`"÷": 179,`: `"÷÷÷÷": 179,`, `"Ą": 192,`: `"ĄĄĄĄ": 192,`} {
		if !bytes.Contains(src, []byte(old)) {
			t.Fatalf("the file does not hold %s", old)
		}
		src = bytes.Replace(src, []byte(old), []byte(new), 1)
	}
	tok, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Missing(); string(got) != "\x04\xf7" {
		t.Errorf("missing %x, want 04f7", got)
	}
	long := strings.Repeat("ab", longWord)
	for text, same := range map[string]string{"th\x04e\xf7": "the", "\x04": "", "\xf7" + long + "\xf7": long, strings.Repeat("\xf7", 2*longWord): ""} {
		got := tok.Encode(nil, []byte(text))
		if back, err := tok.Decode(nil, got); err != nil || string(back) != same {
			t.Errorf("%q came back as %q (%v), want %q", text, back, err, same)
		}
	}
	if got, want := newScratch().merged(tok, nil, []byte("i\x04n")), newScratch().merged(tok, nil, []byte("in")); !slices.Equal(got, want) {
		t.Errorf("around a byte without a token %v, want %v", got, want)
	}
	unk, err := Parse(bytes.Replace(src, []byte(`"unk_token": null`), []byte(`"unk_token": "!"`), 1))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unk.Decode(nil, unk.Encode(nil, []byte("a\x04\xf7b"))); err != nil || string(got) != "a!!b" {
		t.Errorf("with unk_token: %q (%v), want a!!b", got, err)
	}
	again, err := Parse(unk.JSON())
	if err != nil || !bytes.Equal(again.JSON(), unk.JSON()) {
		t.Errorf("a tokenizer with unk_token does not survive writing: %v", err)
	}
	for name, change := range map[string][2]string{"unk_token": {`"unk_token": null`, `"unk_token": "nowhere"`}, "fuse_unk": {`"unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": false`, `"unk_token": "!", "fuse_unk": true`}} {
		if _, err := Parse(bytes.Replace(src, []byte(change[0]), []byte(change[1]), 1)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestReadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want the path in it", err)
	}
	if _, err := Read(path + "2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
	if _, err := Read(filepath.Dir(path)); err == nil {
		t.Error("a folder was read")
	}
}

// TestAnyMergesAreTheDefinition makes vocabularies no training makes: tokens with several merges, merges in random order.
func TestAnyMergesAreTheDefinition(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		tokens := byteTokens()
		index := map[string]int32{}
		for i, s := range tokens {
			index[s] = int32(i)
		}
		letters := []string{"a", "b"}
		for range 12 {
			s := letters[r.IntN(len(letters))] + letters[r.IntN(len(letters))]
			if _, ok := index[s]; !ok {
				index[s] = int32(len(tokens))
				tokens, letters = append(tokens, s), append(letters, s)
			}
		}
		var merges []merge
		for _, s := range tokens[256:] {
			for cut := 1; cut < len(s); cut++ {
				left, okL := index[s[:cut]]
				right, okR := index[s[cut:]]
				if okL && okR && r.IntN(4) > 0 {
					merges = append(merges, merge{left, right, index[s]})
				}
			}
		}
		if seed%2 == 0 {
			r.Shuffle(len(merges), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
		} else { // by length: every part is made before it is used
			slices.SortStableFunc(merges, func(a, b merge) int { return len(tokens[a.id]) - len(tokens[b.id]) })
		}
		tok, err := build(parts{tokens: tokens, merges: merges})
		if err != nil {
			t.Fatal(err)
		}
		s := newScratch()
		for range 30 {
			w := make([]byte, 1+r.IntN(60))
			for i := range w {
				w[i] = "aaab"[r.IntN(4)]
			}
			want := bpeByDefinition(tok, w)
			if got := s.mergeLong(tok, nil, w); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s: queue %v, want %v", seed, w, got, want)
			}
			if got := s.merged(tok, nil, w); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s: loop %v, want %v", seed, w, got, want)
			}
		}
	}
}

// TestQueueYieldsTheLeast pushes and pops at random, places out of order among them, and compares with a list that is searched.
func TestQueueYieldsTheLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	var q pairQueue
	q.reset(5)
	var all [][2]int32
	heaps := 0
	for range 20000 {
		if r.IntN(3) > 0 {
			x := [2]int32{int32(r.IntN(5)), int32(r.IntN(1000))}
			q.push(x[0], x[1])
			all = append(all, x)
		} else {
			rank, at, ok := q.pop()
			if len(all) == 0 {
				if ok {
					t.Fatal("an empty queue yielded something")
				}
				continue
			}
			least := 0
			for i, x := range all {
				if slices.Compare(x[:], all[least][:]) < 0 {
					least = i
				}
			}
			if !ok || rank != all[least][0] || at != all[least][1] {
				t.Fatalf("popped %d at %d (%t), want %v", rank, at, ok, all[least])
			}
			all = slices.Delete(all, least, least+1)
		}
		heaps += len(q.mixed)
		if len(all) > 60 {
			for range all {
				q.pop()
			}
			all = all[:0]
		}
	}
	if heaps == 0 || heaps > 19000*5 {
		t.Errorf("buckets were heaps %d times: one of the two kinds is hardly tested", heaps)
	}
}

func TestGGUFIsTheSameTokenizer(t *testing.T) {
	for i, pre := range []string{"gpt-2", "qwen2", "llama-bpe", "smollm"} {
		tok, err := Read(goldenPath(goldenTokenizers[i]))
		if err != nil {
			t.Fatal(err)
		}
		table := runes()
		g := GGUF{Pre: pre}
		for id, s := range tok.tokens {
			kind := int32(1)
			if tok.isSpecial(int32(id)) {
				kind = 3
			} else {
				s = visible(s, &table)
			}
			g.Tokens, g.Types = append(g.Tokens, s), append(g.Types, kind)
		}
		for _, m := range tok.merges {
			g.Merges = append(g.Merges, visible(tok.tokens[m.left], &table)+" "+visible(tok.tokens[m.right], &table))
		}
		same, err := FromGGUF(g)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(same.JSON(), tok.JSON()) {
			t.Errorf("%s: the GGUF's tokenizer is another one", pre)
		}
		for name, broken := range map[string]GGUF{
			"types":  {g.Tokens, g.Types[1:], g.Merges, pre},
			"pre":    {g.Tokens, g.Types, g.Merges, "other"},
			"merge":  {g.Tokens, g.Types, append(slices.Clone(g.Merges), "Ġ nowhere"), pre},
			"spaces": {g.Tokens, g.Types, append(slices.Clone(g.Merges), "a b c"), pre},
			"twice":  {append(slices.Clone(g.Tokens), "a"), append(slices.Clone(g.Types), 1), g.Merges, pre},
			"type 6": {append(slices.Clone(g.Tokens), "aaaaaaaaab"), append(slices.Clone(g.Types), 6), g.Merges, pre},
			"NUL":    {append(slices.Clone(g.Tokens), "a\x00"), append(slices.Clone(g.Types), 1), g.Merges, pre},
			"empty":  {nil, nil, nil, pre},
		} {
			var e *Error
			if _, err := FromGGUF(broken); !errors.As(err, &e) {
				t.Errorf("%s, %s: %v; want an *Error", pre, name, err)
			}
		}
	}
}

// TestSpecialsInFrontKeepTheirIDs writes a tokenizer whose special token is not at the end, as SmolLM's: Hugging Face's library would number it anew if
// the vocabulary did not hold it.
func TestSpecialsInFrontKeepTheirIDs(t *testing.T) {
	table := runes()
	g := GGUF{Pre: "smollm", Tokens: []string{"<|endoftext|>"}, Types: []int32{3}}
	for _, s := range byteTokens() {
		g.Tokens, g.Types = append(g.Tokens, visible(s, &table)), append(g.Types, 1)
	}
	g.Tokens, g.Types = append(g.Tokens, "<pad>"), append(g.Types, 3)
	tok, err := FromGGUF(g)
	if err != nil {
		t.Fatal(err)
	}
	src := tok.JSON()
	_, vocab, _ := bytes.Cut(src, []byte(`"vocab"`))
	if !bytes.Contains(vocab, []byte(`"<|endoftext|>": 0`)) || bytes.Contains(vocab, []byte("<pad>")) {
		t.Errorf("the vocabulary must hold <|endoftext|> and not <pad>: %.80s", vocab)
	}
	again, err := Parse(src)
	if err != nil || !bytes.Equal(again.JSON(), src) {
		t.Errorf("reading what was written: %v", err)
	}
}

// Broken copies of sound files: an error or a tokenizer that encodes, never a panic. Seeds are the ends of a file whose vocabulary holds all bytes
// already.
func TestMangledTokenizersDoNotPanic(t *testing.T) {
	var vocab strings.Builder
	table := runes()
	for i, s := range byteTokens() {
		vocab.WriteString(comma(i) + quote(visible(s, &table)) + ":" + strconv.Itoa(i))
	}
	head := `{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"vocab": {` + vocab.String()
	seeds := [][]byte{
		[]byte(`, "ab": 256}, "merges": ["a b"]}}`),
		[]byte(`, "ab": 256, "abab": 257}, "merges": [["a", "b"], ["ab", "ab"]]}, "added_tokens": [{"id": 258, "content": "\ud83d\ude00"}], "normalizer": {"type": "NFC"}}`),
		[]byte(`}, "merges": []}, "decoder": null, "padding": {"a": [1.5e3, true, null]}}`),
	}
	text := []byte("func main() {} <|endoftext|> 世界 \xff abab 😀")
	mangle.Run(t, seeds, func(in []byte) {
		tok, err := Parse(append([]byte(head), in...))
		if err == nil {
			tok.Encode(nil, text)
		}
	})
}

// FuzzParse puts three pieces into a file that holds all bytes already, which random changes of a whole file would hardly ever leave intact; with the first
// piece alone they are the file.
func FuzzParse(f *testing.F) {
	const level = `"pre_tokenizer": {"type": "ByteLevel"}, `
	f.Add(level, `, "ab": 256`, `"a b"`)
	f.Add(level+`"added_tokens": [{"id": 257, "content": "\ud83d\ude00"}], "normalizer": {"type": "NFC"}, `, `, "ab": 256`, `["a", "b"]`)
	f.Add(`"pre_tokenizer": `+Llama3.json(`{"type": "ByteLevel", "use_regex": false}`)+`,`, `, "ab": 257, "abab": 256`, `"a b", "ab ab"`)
	f.Add(`{"model": {}, "decoder": null, "padding": {"a": [1.5e3, true, null]}}`, "", "")
	var vocab strings.Builder
	table := runes()
	for i, s := range byteTokens() {
		vocab.WriteString(comma(i) + quote(visible(s, &table)) + ":" + strconv.Itoa(i))
	}
	text := []byte("func main() {} <|endoftext|> 世界 \xff abab 😀")
	f.Fuzz(func(t *testing.T, head, tokens, merges string) {
		src := head
		if tokens != "" || merges != "" {
			src = "{" + head + `"model": {"vocab": {` + vocab.String() + tokens + `}, "merges": [` + merges + "]}}"
		}
		tok, err := Parse([]byte(src))
		if err != nil {
			return
		}
		ids := tok.Encode(nil, text)
		if back, err := tok.Decode(nil, ids); err != nil || !bytes.Equal(back, text) && !tok.nfc && len(tok.Missing()) == 0 {
			t.Errorf("%q came back as %q (%v)", text, back, err)
		}
		again, err := Parse(tok.JSON())
		if err != nil || !bytes.Equal(again.JSON(), tok.JSON()) {
			t.Errorf("what was parsed cannot be written and parsed again: %v", err)
		}
	})
}
