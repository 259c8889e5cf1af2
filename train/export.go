package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

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

// writeTokenizerConfig writes tokenizer_config.json. A model that started from a folder keeps that folder's, and its chat template. Otherwise the file
// names the class that takes tokenizer.json as it stands: without it AutoTokenizer goes by model_type, puts Qwen's rule for cutting words in place of
// ours, and text becomes other ids than those trained on.
func writeTokenizerConfig(dir, init string, t *token.Tokenizer) error {
	const config, template = "tokenizer_config.json", "chat_template.jinja"
	copied := false
	for _, name := range [...]string{config, template} {
		text, err := os.ReadFile(filepath.Join(init, name))
		switch {
		case init == "", errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // nothing to keep, or a .gguf file
			continue
		case err != nil:
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
		copied = copied || name == config
	}
	if copied {
		return nil
	}
	fields := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	if end, ok := t.Separator(); ok {
		fields["eos_token"] = string(t.Token(end))
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(fields); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, config), text.Bytes(), 0o644)
}
