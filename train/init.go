package train

import (
	"fmt"
	"path/filepath"

	"heddle/checkpoint/pretrained"
	"heddle/model"
	"heddle/param"
	"heddle/token"
)

// adopt takes the model's shape from the folder or file that the run starts from.
func (c *Config) adopt() error {
	p, err := pretrained.Open(c.Init)
	if err != nil {
		return fmt.Errorf("train: init: %w", err)
	}
	defer p.Close()
	m, err := model.FromHF(p.Config)
	if err != nil {
		return fmt.Errorf("train: init: %s: %w", c.Init, err)
	}
	if c.Model != Default().Model && c.Model != m {
		return fmt.Errorf("train: init takes the model from %s; model.* has no effect", c.Init)
	}
	c.Model = m
	return nil
}

// values is where fresh weights come from.
func (c *Config) values(t param.Table) (src param.Source, done func() error, err error) {
	if c.Init == "" {
		return t.Init(c.Seed), func() error { return nil }, nil
	}
	p, err := pretrained.Open(c.Init)
	if err != nil {
		return nil, nil, fmt.Errorf("train: init: %w", err)
	}
	return p.Source(), p.Close, nil
}

// tokenizerOf is the tokenizer that belongs to the weights a run starts from, or the one it names.
func tokenizerOf(c Config) (*token.Tokenizer, error) {
	if c.Data.Tokenizer != "" {
		return namedTokenizer(c)
	}
	p, err := pretrained.Open(c.Init)
	if err != nil {
		return nil, fmt.Errorf("train: init: %w", err)
	}
	defer p.Close()
	var t *token.Tokenizer
	switch path := p.Tokenizer(); {
	case p.GGUF != nil:
		t, err = tokenizerOfGGUF(p)
	case path == "":
		return nil, fmt.Errorf("train: init: %s has no tokenizer.json", c.Init)
	default:
		t, err = token.Read(path)
	}
	if err != nil {
		return nil, fmt.Errorf("train: init: %w", err)
	}
	if n := t.VocabSize(); n > c.Model.Vocab {
		return nil, fmt.Errorf("train: init: the tokenizer of %s has %d tokens, the model %d; hint: compare vocab_size with %s", c.Init, n, c.Model.Vocab, filepath.Base(p.Tokenizer()))
	}
	return t, nil
}

// namedTokenizer is data.tokenizer. A model that is made new takes its vocabulary as it is given, so it must hold every id.
func namedTokenizer(c Config) (*token.Tokenizer, error) {
	if c.Init != "" {
		return nil, fmt.Errorf("train: init takes the tokenizer from %s; data.tokenizer has no effect", c.Init)
	}
	t, err := token.Read(c.Data.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("train: data.tokenizer: %w", err)
	}
	if n := t.VocabSize(); n > c.Model.Vocab {
		return nil, fmt.Errorf("train: the tokenizer %s has %d ids, the model %d; hint: model.vocab=%d", c.Data.Tokenizer, n, c.Model.Vocab, n)
	}
	return t, nil
}

func tokenizerOfGGUF(p *pretrained.Model) (*token.Tokenizer, error) {
	g, err := p.GGUF.File.Tokenizer()
	if err != nil {
		return nil, err
	}
	if g.Model != "gpt2" {
		return nil, fmt.Errorf("%s: tokenizer %q is not byte-level BPE", p.Path, g.Model)
	}
	types := make([]int32, len(g.Types))
	for i, x := range g.Types {
		types[i] = int32(x)
	}
	return token.FromGGUF(token.GGUF{Tokens: g.Tokens, Types: types, Merges: g.Merges, Pre: g.Pre})
}
