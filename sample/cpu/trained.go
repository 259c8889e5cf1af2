package cpu

import (
	"fmt"
	"slices"

	"heddle/compute"
	"heddle/model"
	"heddle/model/hf"
)

// LoadModel takes the weights of a model in training, whose configuration must be the decoder's. Under fsdp gathering them is
// a collective: every rank calls it. A layout that cuts single parameters (tp) is an error.
func (d *Decoder) LoadModel(m *model.Model, dev *compute.Device, version uint64) error {
	values := map[string][]float32{}
	for u := range m.Shards.Units {
		unit := &m.Shards.Units[u]
		g := m.Shards.Gather(u)
		for i, t := range g.Rows {
			row := &m.Shards.Table[unit.Rows[i]]
			if !slices.Equal(t.Dims, row.Dims) {
				m.Shards.Release(g)
				return fmt.Errorf("sample: %s is cut into %v of %v; hint: generate without tp", row.Name, t.Dims, row.Dims)
			}
			host := dev.Download(t)
			host = host[:len(host)/row.Dims[0]*row.Valid] // rows that pad the vocabulary are no tokens
			v := make([]float32, len(host))
			for j, x := range host {
				v[j] = float32(x)
			}
			values[row.Name] = v
		}
		m.Shards.Release(g)
	}
	return d.Load(func(p hf.Param) ([]float32, error) {
		v, ok := values[p.Ours()]
		if !ok {
			return nil, fmt.Errorf("sample: the model in training has no %s", p.Ours())
		}
		return v, nil
	}, version)
}
