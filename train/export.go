package train

import (
	"sync"

	"heddle/checkpoint/safetensors"
	"heddle/model"
	"heddle/param"
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

// WriteHF writes model.safetensors with transformers' names and shapes, whole or not at all.
func (w *Whole) WriteHF(path string, t param.Table) error {
	rows := map[string]*param.Row{}
	var specs []safetensors.Spec
	for i := range t {
		rows[t[i].HF] = &t[i]
		specs = append(specs, safetensors.Spec{Name: t[i].HF, DType: safetensors.F32, Shape: model.HFDims(&t[i])})
	}
	return safetensors.WriteFile(path, specs, safetensors.HF(), func(s safetensors.Spec, sink *safetensors.Sink) error {
		return sink.Float32s(w.Values[rows[s.Name].Name])
	})
}
