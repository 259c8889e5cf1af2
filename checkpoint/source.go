package checkpoint

import (
	"fmt"

	"heddle/checkpoint/safetensors"
	"heddle/param"
)

// HFSource reads parameters from a Hugging Face folder. A parameter's values lie in the file in the order of the table, heads
// and head size joined to one dim; only the rows that a box touches are read.
func HFSource(m *safetensors.Model) param.Source {
	return func(r *param.Row, b param.Box, dst []float64) error {
		t, err := m.Tensor(r.HF)
		if err != nil {
			return err
		}
		if t.Len() != r.Elems() {
			return fmt.Errorf("checkpoint: %s has %d elements, want %d (%s%v)", r.HF, t.Len(), r.Elems(), r.Letters, r.Dims)
		}
		row := t.Len() / t.Rows()
		lo, hi := t.Len(), 0
		param.Each(r.Dims, b, func(global int) { lo, hi = min(lo, global), max(hi, global) })
		if hi < lo {
			return nil
		}
		from, to := lo/row, hi/row+1
		part := make([]float64, (to-from)*row)
		if err := t.ReadFloat64s(part, from, to); err != nil {
			return err
		}
		i := 0
		param.Each(r.Dims, b, func(global int) {
			dst[i] = part[global-from*row]
			i++
		})
		return nil
	}
}
