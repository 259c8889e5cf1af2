// Package text continues text with a model from anywhere: a Hugging Face folder, a GGUF file, or the folder of a run of ours,
// at its end or at a checkpoint.
//
// Start reading at Open; Model.Prompt turns text into ids, Stream turns ids into text as they come.
package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heddle/checkpoint/pretrained"
	"heddle/compute/cpu/blas"
	"heddle/data"
	"heddle/model/hf"
	"heddle/sample/cpu"
	"heddle/token"
)

// Model is a model ready to be asked: what it is, its words and where its weights are.
type Model struct {
	Path      string // where the weights are
	Config    hf.Config
	Tokenizer *token.Tokenizer
	Template  *data.Template // nil: it has none
	Begin     int32          // the token every text begins with; −1: none
	Stop      []int32        // the tokens that end a text

	read  cpu.Read
	close func() error
}

// Open opens a Hugging Face folder, a .gguf file, or RUN or RUN@STEP, a run's folder.
func Open(path string) (*Model, error) {
	run, step := path, -1
	if at := strings.LastIndexByte(path, '@'); at >= 0 {
		n, err := strconv.Atoi(path[at+1:])
		if _, gone := os.Stat(path); gone != nil { // a folder may be called that
			if err != nil || n < 0 {
				return nil, fmt.Errorf("text: %s: %q is no step", path, path[at+1:])
			}
			run, step = path[:at], n
		}
	}
	if _, err := os.Stat(filepath.Join(run, checkpoints)); err == nil {
		return openRun(run, step)
	}
	if step >= 0 {
		return nil, fmt.Errorf("text: %s has no checkpoints; hint: only runs of heddle train have steps", run)
	}
	if _, err := os.Stat(filepath.Join(run, finished, "config.json")); err == nil {
		path = filepath.Join(run, finished)
	}
	return openPretrained(path)
}

func openPretrained(path string) (*Model, error) {
	p, err := pretrained.Open(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, Config: p.Config, Begin: -1, read: p.Float32s, close: p.Close}
	if p.GGUF != nil {
		err = m.fromGGUF(p)
	} else {
		err = m.fromFolder(path)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return m, nil
}

// check holds the tokenizer to the model.
func (m *Model) check() error {
	if n := m.Tokenizer.VocabSize(); n > m.Config.Vocab {
		return fmt.Errorf("text: the tokenizer of %s has %d tokens, the model %d", m.Path, n, m.Config.Vocab)
	}
	for _, id := range m.Config.EOS {
		m.stop(id)
	}
	return nil
}

// stop adds a token that ends texts.
func (m *Model) stop(id int) {
	if id >= 0 && id < m.Config.Vocab && !slices.Contains(m.Stop, int32(id)) {
		m.Stop = append(m.Stop, int32(id))
	}
}

// fromFolder reads what stands beside the weights: tokenizer.json, the chat template, generation_config.json.
func (m *Model) fromFolder(dir string) (err error) {
	path := filepath.Join(dir, "tokenizer.json")
	if m.Tokenizer, err = token.Read(path); err != nil {
		return err
	}
	if m.Begin, err = begins(path, m.Tokenizer); err != nil {
		return err
	}
	if has(dir, "chat_template.jinja") || names(filepath.Join(dir, "tokenizer_config.json"), "chat_template") {
		if m.Template, err = data.ReadTemplate(dir); err != nil {
			return err
		}
	}
	return m.generationConfig(filepath.Join(dir, "generation_config.json"))
}

func has(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// names tells whether a JSON object has a key.
func names(path, key string) bool {
	var o map[string]json.RawMessage
	return readJSON(path, &o) == nil && o[key] != nil
}

const maxSide = 64 << 20 // bytes of a file beside the weights; tokenizer.json is the largest

func readJSON(path string, v any) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() || st.Size() > maxSide {
		return fmt.Errorf("text: %s has %d bytes, want a regular file of at most %d", path, st.Size(), maxSide)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("text: %s: %w", path, err)
	}
	return nil
}

// generationConfig adds the ends that a chat model lists there only: a number or a list.
func (m *Model) generationConfig(path string) error {
	var o struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	if err := readJSON(path, &o); errors.Is(err, os.ErrNotExist) || o.EOS == nil && err == nil {
		return nil
	} else if err != nil {
		return err
	}
	var one *int
	var list []int
	if json.Unmarshal(o.EOS, &one) == nil {
		if one != nil {
			list = []int{*one}
		}
	} else if err := json.Unmarshal(o.EOS, &list); err != nil {
		return fmt.Errorf("text: %s: eos_token_id is neither a number nor a list of numbers", path)
	}
	for _, id := range list {
		m.stop(id)
	}
	return nil
}

// begins is the special token that tokenizer.json puts before a text: a TemplateProcessing whose "single" starts with one, alone
// or in a sequence of processors, as Llama 3 has it.
func begins(path string, t *token.Tokenizer) (int32, error) {
	type piece struct {
		SpecialToken *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	}
	type processor struct {
		Single     []piece     `json:"single"`
		Processors []processor `json:"processors"`
	}
	var o struct {
		Post *processor `json:"post_processor"`
	}
	if err := readJSON(path, &o); err != nil || o.Post == nil {
		return -1, err
	}
	for _, p := range append(o.Post.Processors, *o.Post) {
		if len(p.Single) > 0 && p.Single[0].SpecialToken != nil {
			name := p.Single[0].SpecialToken.ID
			id, ok := t.Special(name)
			if !ok {
				return -1, fmt.Errorf("text: %s: texts begin with %q, which is no special token", path, name)
			}
			return id, nil
		}
	}
	return -1, nil
}

// fromGGUF takes tokenizer and template out of the file.
func (m *Model) fromGGUF(p *pretrained.Model) error {
	g, err := p.GGUF.File.Tokenizer()
	if err != nil {
		return err
	}
	if g.Model != "gpt2" {
		return fmt.Errorf("text: %s: tokenizer %q is not byte-level BPE", p.Path, g.Model)
	}
	types := make([]int32, len(g.Types))
	for i, x := range g.Types {
		types[i] = int32(x)
	}
	if m.Tokenizer, err = token.FromGGUF(token.GGUF{Tokens: g.Tokens, Types: types, Merges: g.Merges, Pre: g.Pre}); err != nil {
		return err
	}
	if g.AddBOS && g.BOS >= 0 {
		m.Begin = int32(g.BOS)
	}
	if g.ChatTemplate == "" {
		return nil
	}
	vars := map[string]string{}
	for name, id := range map[string]int{"bos_token": g.BOS, "eos_token": g.EOS, "unk_token": g.Unknown, "pad_token": g.Padding} {
		if id >= 0 {
			vars[name] = g.Tokens[id]
		}
	}
	m.Template, err = data.NewTemplate(g.ChatTemplate, vars)
	return err
}

// Decoder packs the weights for the pool, as bf16 where half is set.
func (m *Model) Decoder(pool *blas.Pool, half bool) (*cpu.Decoder, error) {
	d, err := cpu.New(m.Config, pool)
	if err != nil {
		return nil, err
	}
	d.BF16 = half
	return d, d.Load(m.read, 0)
}

// Close closes the files.
func (m *Model) Close() error { return m.close() }
