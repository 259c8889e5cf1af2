package gguf

import "fmt"

// Tokenizer is what a file says about its tokenizer, checked for consistency and otherwise as it stands there.
type Tokenizer struct {
	Model  string   // "gpt2" is byte-level BPE, tokens in GPT-2's byte alphabet; "llama" is SentencePiece
	Pre    string   // name of the rule that cuts text into words, such as "smollm", "qwen2", "llama-bpe"; "" if not said
	Tokens []string // by id
	Types  []TokenType
	Merges []string  // "a b", best first
	Scores []float64 // by id; nil: none

	BOS, EOS, Unknown, Padding int // ids; -1: none
	AddBOS, AddEOS             bool
	AddSpacePrefix             bool
	ChatTemplate               string
}

// TokenType says what an entry of the vocabulary is.
type TokenType int

// The types of llama.cpp. Control tokens are special: text never becomes one.
const (
	Normal      TokenType = 1
	UnknownType TokenType = 2
	Control     TokenType = 3
	UserDefined TokenType = 4
	Unused      TokenType = 5
	Byte        TokenType = 6
)

// Tokenizer reads the tokenizer's fields.
func (f *File) Tokenizer() (Tokenizer, error) {
	t := Tokenizer{BOS: -1, EOS: -1, Unknown: -1, Padding: -1}
	var err error
	if t.Model, err = f.Text("tokenizer.ggml.model"); err != nil {
		return t, err
	}
	if t.Tokens, err = f.Strings("tokenizer.ggml.tokens"); err != nil {
		return t, err
	}
	types, err := f.Ints("tokenizer.ggml.token_type")
	if err != nil {
		return t, err
	}
	for _, x := range types {
		if x < int(Normal) || x > int(Byte) {
			return t, fmt.Errorf("gguf: %s: token type %d, want 1 to 6", f.path, x)
		}
		t.Types = append(t.Types, TokenType(x))
	}
	for _, x := range []struct {
		key  string
		read func(key string) error
	}{
		{"pre", func(k string) (err error) { t.Pre, err = f.Text(k); return err }},
		{"merges", func(k string) (err error) { t.Merges, err = f.Strings(k); return err }},
		{"scores", func(k string) (err error) { t.Scores, err = f.Floats(k); return err }},
		{"bos_token_id", func(k string) (err error) { t.BOS, err = f.Uint(k); return err }},
		{"eos_token_id", func(k string) (err error) { t.EOS, err = f.Uint(k); return err }},
		{"unknown_token_id", func(k string) (err error) { t.Unknown, err = f.Uint(k); return err }},
		{"padding_token_id", func(k string) (err error) { t.Padding, err = f.Uint(k); return err }},
		{"add_bos_token", func(k string) (err error) { t.AddBOS, err = f.Bool(k); return err }},
		{"add_eos_token", func(k string) (err error) { t.AddEOS, err = f.Bool(k); return err }},
		{"add_space_prefix", func(k string) (err error) { t.AddSpacePrefix, err = f.Bool(k); return err }},
	} {
		if key := "tokenizer.ggml." + x.key; f.Has(key) {
			if err := x.read(key); err != nil {
				return t, err
			}
		}
	}
	if f.Has("tokenizer.chat_template") {
		if t.ChatTemplate, err = f.Text("tokenizer.chat_template"); err != nil {
			return t, err
		}
	}
	return t, t.check(f.path)
}

func (t Tokenizer) check(path string) error {
	n := len(t.Tokens)
	if len(t.Types) != n || t.Scores != nil && len(t.Scores) != n {
		return fmt.Errorf("gguf: %s: %d tokens, %d token types, %d scores", path, n, len(t.Types), len(t.Scores))
	}
	for _, x := range []struct {
		name string
		id   int
	}{{"bos", t.BOS}, {"eos", t.EOS}, {"unknown", t.Unknown}, {"padding", t.Padding}} {
		if x.id >= n {
			return fmt.Errorf("gguf: %s: %s token %d is outside the vocabulary of %d", path, x.name, x.id, n)
		}
	}
	return nil
}
