package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"heddle/checkpoint/pretrained"
	"heddle/model"
	"heddle/model/hf"
	"heddle/token"
)

// Whole joins the ranks' parts of every parameter in the memory of this process.
type Whole struct {
	mu     sync.Mutex
	Values map[string][]float32 // by row name, padding left out
}

// Add copies what rests on one rank. Every rank calls it once.
func (w *Whole) Add(r *Rank, m *model.Model) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Values == nil {
		w.Values = map[string][]float32{}
	}
	for _, p := range m.Shards.Pieces() {
		all := w.Values[p.Row.Name]
		if all == nil {
			all = make([]float32, p.Row.Elems())
			w.Values[p.Row.Name] = all
		}
		host := r.Dev.Download(p.Weight)
		m.Shards.Global(p, func(i, global int) {
			if global < len(all) {
				all[global] = float32(host[i])
			}
		})
	}
}

// Of gives a parameter's values, for pretrained.Write.
func (w *Whole) Of(p hf.Param) ([]float32, error) {
	v, ok := w.Values[p.Ours()]
	if !ok {
		return nil, fmt.Errorf("train: the model has no parameter %s", p.Ours())
	}
	return v, nil
}

// writeTokenizerConfig writes tokenizer_config.json, and the chat template where there is one. A model that started from a folder keeps that folder's files;
// one from a GGUF file gets what its metadata say. Without a tokenizer_config.json AutoTokenizer goes by model_type, puts Qwen's rule for cutting words in
// place of ours, and text becomes other ids than those trained on; so the file names the class that takes tokenizer.json as it stands. Its tokens that begin
// and end a text are those of c.
func writeTokenizerConfig(dir, init string, t *token.Tokenizer, c hf.Config) error {
	const config, template = "tokenizer_config.json", "chat_template.jinja"
	chat, _, err := chatOf(init)
	if err != nil {
		return err
	}
	if chat != "" {
		if err := writeNew(dir, template, []byte(chat)); err != nil {
			return err
		}
	}
	copied := false
	for _, name := range [...]string{config, template} {
		text, err := os.ReadFile(filepath.Join(init, name))
		switch {
		case init == "", errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // nothing to keep, or a .gguf file
			continue
		case err != nil:
			return err
		}
		if err := writeNew(dir, name, text); err != nil {
			return err
		}
		copied = copied || name == config
	}
	if copied {
		return nil
	}
	fields := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	if len(c.EOS) > 0 {
		fields["eos_token"] = string(t.Token(int32(c.EOS[0])))
	}
	if c.BOS >= 0 {
		fields["bos_token"] = string(t.Token(int32(c.BOS)))
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(fields); err != nil {
		return err
	}
	return writeNew(dir, config, text.Bytes())
}

// chatOf is the chat template of a GGUF file, and the special tokens it may name; "" of anything else.
func chatOf(path string) (template string, vars map[string]string, err error) {
	if !strings.HasSuffix(path, ".gguf") {
		return "", nil, nil
	}
	p, err := pretrained.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer p.Close()
	g, err := p.GGUF.File.Tokenizer()
	if err != nil { // a file without one is still a model
		return "", nil, nil
	}
	vars = map[string]string{}
	for name, id := range map[string]int{"bos_token": g.BOS, "eos_token": g.EOS, "unk_token": g.Unknown, "pad_token": g.Padding} {
		if id >= 0 && id < len(g.Tokens) {
			vars[name] = g.Tokens[id]
		}
	}
	return g.ChatTemplate, vars, nil
}
