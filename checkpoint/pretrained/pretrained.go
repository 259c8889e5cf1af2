// Package pretrained opens the weights of a model that somebody else made, a Hugging Face folder or a GGUF file, as one thing: a configuration, the list of
// its parameters and their values; and it writes such a folder.
//
// A folder is checked against its config.json both ways: a tensor that is missing, has another shape or that nothing asks for is an error. Values come in
// our shapes and order ([out, in], q and k and v apart), whatever the file does. Start with Open and Write.
package pretrained

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heddle/checkpoint/gguf"
	"heddle/checkpoint/safetensors"
	"heddle/model/hf"
)

// Model is the open weights of a model. Its methods may be called from several goroutines.
type Model struct {
	Path   string
	Config hf.Config
	Params []hf.Param // in the order of the forward pass

	GGUF   *gguf.Model // nil for a folder
	folder *safetensors.Model
	byName map[string]int // Ours() to index in Params
}

// Open opens a Hugging Face folder, or a file that ends in .gguf.
func Open(path string) (*Model, error) {
	m := &Model{Path: path, byName: map[string]int{}}
	var err error
	if strings.HasSuffix(path, ".gguf") {
		if m.GGUF, err = gguf.OpenModel(path); err == nil {
			m.Config = m.GGUF.Config
			m.Params = m.Config.Params()
		}
	} else {
		err = m.openFolder()
	}
	if err != nil {
		return nil, err
	}
	for i, p := range m.Params {
		m.byName[p.Ours()] = i
	}
	return m, nil
}

func (m *Model) openFolder() (err error) {
	if m.Config, err = hf.Read(m.Path); err != nil {
		return err
	}
	if m.folder, err = safetensors.OpenModel(m.Path); err != nil {
		return err
	}
	shapes := map[string][]int{}
	for _, name := range m.folder.Names() {
		t, _ := m.folder.Tensor(name)
		shapes[name] = t.Shape
	}
	var tied string
	if m.Params, tied, err = m.Config.Match(shapes); err == nil && tied != "" {
		err = m.sameAs(tied, m.Params[0].Name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("pretrained: %s: %w", m.Path, err), m.folder.Close())
	}
	return nil
}

// sameAs checks that a tied head is the embedding: a file that holds another one would silently compute something else.
func (m *Model) sameAs(head, embed string) error {
	a, err := m.folder.Tensor(head)
	if err != nil {
		return err
	}
	b, err := m.folder.Tensor(embed)
	if err != nil {
		return err
	}
	for row := range a.Rows() {
		x, y := make([]float32, a.Shape[1]), make([]float32, a.Shape[1])
		if err := errors.Join(a.ReadFloat32s(x, row, row+1), b.ReadFloat32s(y, row, row+1)); err != nil {
			return err
		}
		if !slices.Equal(x, y) {
			return fmt.Errorf("config.json ties the head to the embedding, but row %d of %s differs from that of %s; hint: tie_word_embeddings may have to be false", row, head, embed)
		}
	}
	return nil
}

// Close closes the files.
func (m *Model) Close() error {
	if m.GGUF != nil {
		return m.GGUF.Close()
	}
	return m.folder.Close()
}

// Find looks a parameter up by our name, such as "layers.3.attention.q".
func (m *Model) Find(ours string) (hf.Param, error) {
	i, ok := m.byName[ours]
	if !ok {
		return hf.Param{}, fmt.Errorf("pretrained: %s has no parameter %s", m.Path, ours)
	}
	return m.Params[i], nil
}

// Float32s reads a parameter, row-major in p.Shape.
func (m *Model) Float32s(p hf.Param) ([]float32, error) {
	if m.GGUF != nil {
		return m.GGUF.Float32s(p)
	}
	t, err := m.folder.Tensor(p.Name)
	if err != nil {
		return nil, err
	}
	v, err := t.Float32s()
	if err != nil || p.Whole() {
		return v, err
	}
	return hf.Gather(p, v), nil
}

// ReadRows reads rows [from, to) of the first dim of p.Shape into dst. From a folder it reads no more than it must.
func (m *Model) ReadRows(p hf.Param, dst []float64, from, to int) error {
	if m.GGUF == nil && p.Whole() {
		t, err := m.folder.Tensor(p.Name)
		if err != nil {
			return err
		}
		return t.ReadFloat64s(dst, from, to)
	}
	width := 1
	for _, d := range p.Shape[1:] {
		width *= d
	}
	if from < 0 || from > to || to > p.Shape[0] || len(dst) != (to-from)*width {
		return fmt.Errorf("pretrained: %s: rows %d to %d of %v into %d elements", p.Ours(), from, to, p.Shape, len(dst))
	}
	v, err := m.Float32s(p)
	if err != nil {
		return err
	}
	for i, x := range v[from*width : to*width] {
		dst[i] = float64(x)
	}
	return nil
}

// Tokenizer is the path of the folder's tokenizer.json; "" for a GGUF file, whose tokenizer is GGUF.File.Tokenizer, and where there is none.
func (m *Model) Tokenizer() string {
	path := filepath.Join(m.Path, "tokenizer.json")
	if _, err := os.Stat(path); m.GGUF != nil || err != nil {
		return ""
	}
	return path
}
