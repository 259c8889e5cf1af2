package token

import (
	"fmt"
	"strings"
)

// GGUF is a byte-level BPE as the metadata of a GGUF file holds it.
type GGUF struct {
	Tokens []string // tokenizer.ggml.tokens
	Types  []int32  // tokenizer.ggml.token_type: 1 text, 3 control, 4 user-defined, 5 unused
	Merges []string // tokenizer.ggml.merges
	Pre    string   // tokenizer.ggml.pre
}

// FromGGUF makes the tokenizer of a GGUF file whose tokenizer.ggml.model is "gpt2". A pre-tokenizer that is not known here is refused with an *Error.
func FromGGUF(g GGUF) (*Tokenizer, error) {
	t, err := fromGGUF(g)
	if err != nil {
		return nil, &Error{Err: fmt.Errorf("gguf: %w", err)}
	}
	return t, nil
}

func fromGGUF(g GGUF) (*Tokenizer, error) {
	p := parts{tokens: make([]string, len(g.Tokens))}
	switch g.Pre {
	case "gpt-2":
		p.split = GPT2
	case "qwen2":
		p.split, p.nfc = Qwen2, true
	case "llama-bpe", "llama3", "llama-v3":
		p.split, p.ignoreMerges = Llama3, true
	case "smollm":
		p.split = SmolLM
	default:
		return nil, fmt.Errorf("pre-tokenizer %q, want gpt-2, qwen2, llama-bpe or smollm", g.Pre)
	}
	if len(g.Types) != len(g.Tokens) || len(g.Tokens) > maxVocab {
		return nil, fmt.Errorf("%d tokens with %d types, want as many, at most %d", len(g.Tokens), len(g.Types), maxVocab)
	}
	alphabet := byteOf()
	vocab := make(map[string]int32, len(g.Tokens))
	for id, text := range g.Tokens {
		if other, ok := vocab[text]; ok || text == "" || len(text) > maxToken {
			return nil, fmt.Errorf("token %d is %q (also token %d), want different, not empty, at most %d bytes", id, text[:min(len(text), 80)], other, maxToken)
		}
		vocab[text] = int32(id)
		bytes, ok := fromVisible(text, alphabet)
		switch g.Types[id] {
		case 1:
			if !ok {
				return nil, fmt.Errorf("token %d, %q, is not written in the alphabet of byte-level BPE", id, text)
			}
			p.tokens[id] = bytes
		case 3, 4, 5:
			p.tokens[id] = text
			p.specials = append(p.specials, Special{ID: int32(id), Content: text, Control: g.Types[id] != 4})
		default:
			return nil, fmt.Errorf("token %d, %q, is of type %d, want 1, 3, 4 or 5", id, text, g.Types[id])
		}
	}
	pairs := make([][2]string, len(g.Merges))
	for i, m := range g.Merges {
		a, b, ok := strings.Cut(m, " ")
		if !ok || strings.Contains(b, " ") {
			return nil, fmt.Errorf("merge %d is %q, want two tokens with one space between them", i, m)
		}
		pairs[i] = [2]string{a, b}
	}
	var err error
	if p.merges, err = resolveMerges(pairs, vocab); err != nil {
		return nil, err
	}
	return build(p)
}
