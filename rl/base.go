package rl

import (
	"fmt"
	"strings"

	"heddle/checkpoint/pretrained"
	"heddle/model"

	"heddle/sample/text"
)

// Base is a model to start from: a Hugging Face folder or a .gguf file, with its tokenizer and, where it has one, its chat template.
type Base struct {
	Model   model.Config
	Codec   *Text
	Weights map[string][]float32
}

// OpenBase reads it into memory.
func OpenBase(path string) (*Base, error) {
	t, err := text.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close() // the tokenizer and the template stay
	if len(t.Stop) == 0 {
		return nil, fmt.Errorf("rl: %s names no token that ends a text, so that completions would have no end", path)
	}
	m, err := model.FromHF(t.Config)
	if err != nil {
		return nil, fmt.Errorf("rl: %s: %w", path, err)
	}
	p, err := pretrained.Open(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	b := &Base{Model: m, Codec: &Text{t}, Weights: map[string][]float32{}}
	for _, x := range t.Config.Params() {
		if b.Weights[x.Ours()], err = p.Float32s(x); err != nil {
			return nil, fmt.Errorf("rl: %s: %w", path, err)
		}
	}
	return b, nil
}

// Text is the codec of a model with a tokenizer. A prompt stands in the chat template's frame, as a user's message, where the model has a template.
type Text struct{ of *text.Model }

func (t *Text) Size() int  { return t.of.Config.Vocab }
func (t *Text) End() int32 { return t.of.Stop[0] }

// Prompt frames a prompt.
func (t *Text) Prompt(prompt string) ([]int32, error) {
	if t.of.Template == nil {
		return t.of.Prompt(prompt)
	}
	_, ids, err := t.of.Chat(text.Message{Role: "user", Content: prompt})
	return ids, err
}

// Encode takes special tokens for text.
func (t *Text) Encode(s string) ([]int32, error) {
	return t.of.Tokenizer.EncodeText(nil, []byte(s)), nil
}

// Decode stops at the end token. Ids that have no token give no text.
func (t *Text) Decode(ids []int32) (string, error) {
	s := text.Stream{Tokenizer: t.of.Tokenizer}
	var b strings.Builder
	for _, id := range ids {
		if id == t.End() {
			break
		}
		b.WriteString(s.Add(id))
	}
	b.WriteString(s.End())
	return b.String(), nil
}
