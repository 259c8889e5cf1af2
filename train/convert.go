package train

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/internal/atomicfile"
)

// Exported is what Export wrote, read back.
type Exported struct {
	Dir        string  `json:"dir"`
	DType      string  `json:"dtype"`
	Files      int     `json:"weight_files"`
	Tensors    int     `json:"tensors"`
	Parameters int64   `json:"parameters"`
	Bytes      int64   `json:"bytes"`     // of weight files
	Rounding   float64 `json:"rounding"`  // largest change of a weight, relative to it; 0 where the type holds every value
	Tokenizer  bool    `json:"tokenizer"` // there is one
}

// Export writes a model, the folder of a run, a Hugging Face folder or a GGUF file, as a Hugging Face folder, dtype F32, BF16 or
// F16, in shards of at most maxShard bytes. The folder appears whole, after every weight was read back and compared.
func Export(src, dir string, dtype safetensors.DType, maxShard int64) (*Exported, error) {
	if _, err := os.Stat(filepath.Join(src, "config.json")); err != nil { // a run keeps its model one level down
		if inner := filepath.Join(src, "model"); exists(filepath.Join(inner, "config.json")) {
			src = inner
		}
	}
	m, err := pretrained.Open(src)
	if err != nil {
		return nil, &Invalid{fmt.Errorf("train: export: %w", err)}
	}
	defer m.Close()
	if exists(dir) {
		return nil, &Invalid{fmt.Errorf("train: export: %s exists already; hint: another folder", dir)}
	}
	out := &Exported{Dir: dir, DType: string(dtype)}
	err = atomicfile.Folder(atomicfile.OS{}, dir, func(tmp string) error {
		if err := pretrained.Write(tmp, m.Config, dtype, maxShard, m.Float32s); err != nil {
			return err
		}
		if err := out.check(m, tmp); err != nil {
			return err
		}
		out.Tokenizer, err = exportTokenizer(m, tmp)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("train: export: %w", err)
	}
	return out, nil
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// unit is the largest relative rounding error of a normal number, by type: half a unit of 8 or 11 bits; none for F32.
// Below F16's normal numbers its step is 2^-24.
func unit(d safetensors.DType) (relative, step float64) {
	switch d {
	case safetensors.BF16:
		return 0x1p-8, 0
	case safetensors.F16:
		return 0x1p-11, 0x1p-25
	}
	return 0, 0
}

// check reads the written folder and compares every weight with the model's.
func (e *Exported) check(m *pretrained.Model, dir string) error {
	w, err := pretrained.Open(dir)
	if err != nil {
		return fmt.Errorf("the written folder does not open: %w", err)
	}
	defer w.Close()
	relative, step := unit(safetensors.DType(e.DType))
	for _, p := range m.Params {
		q, err := w.Find(p.Ours())
		if err != nil {
			return err
		}
		a, err := m.Float32s(p)
		if err != nil {
			return err
		}
		b, err := w.Float32s(q)
		if err != nil {
			return err
		}
		for i, x := range a {
			y := float64(b[i])
			d := math.Abs(y - float64(x))
			if x == b[i] || x != x && y != y {
				continue
			}
			if !(d <= relative*math.Abs(float64(x))+step) {
				return fmt.Errorf("%s: element %d is %g and would be %g as %s; hint: --dtype bf16 or f32", p.Ours(), i, x, y, e.DType)
			}
			if d > step {
				e.Rounding = max(e.Rounding, d/math.Abs(float64(x)))
			}
		}
		e.Parameters += int64(len(a))
	}
	return e.count(dir)
}

// count looks at the written files.
func (e *Exported) count(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil {
		return err
	}
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			return err
		}
		e.Bytes += st.Size()
	}
	all, err := safetensors.OpenModel(dir)
	if err != nil {
		return err
	}
	e.Files, e.Tensors = len(files), len(all.Names())
	return all.Close()
}

func writeNew(dir, name string, text []byte) error {
	return atomicfile.WriteNew(atomicfile.OS{}, filepath.Join(dir, name), func(w io.Writer) error { _, err := w.Write(text); return err })
}

// beside are the files of a folder that go with the weights as they are.
func beside() []string {
	return []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json", "generation_config.json", "vocab.json", "merges.txt"}
}

// exportTokenizer copies a folder's, or writes that of a GGUF file. A model may have none.
func exportTokenizer(m *pretrained.Model, dir string) (bool, error) {
	if m.GGUF == nil {
		for _, name := range beside() {
			text, err := os.ReadFile(filepath.Join(m.Path, name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err == nil {
				err = writeNew(dir, name, text)
			}
			if err != nil {
				return false, err
			}
		}
		return m.Tokenizer() != "", nil
	}
	if !m.GGUF.File.Has("tokenizer.ggml.model") {
		return false, nil
	}
	t, err := tokenizerOfGGUF(m)
	if err != nil {
		return false, err
	}
	if err := writeTokenizerConfig(dir, m.Path, t, m.Config); err != nil {
		return false, err
	}
	return true, t.Write(filepath.Join(dir, "tokenizer.json"))
}
