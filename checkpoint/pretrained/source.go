package pretrained

import (
	"fmt"

	"heddle/param"
)

// Source gives boxes of parameters to an engine, by the table's names. The table may cut a dim into several, such as [A·D, H] into [G, R, D, H]: the order
// of the elements is the same.
func (m *Model) Source() param.Source {
	return func(r *param.Row, b param.Box, dst []float64) error {
		p, err := m.Find(r.Name)
		if err != nil {
			return err
		}
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		if n != r.Elems() || len(dst) != b.Elems() {
			return fmt.Errorf("pretrained: %s has %d elements (%v), want %d (%v), %d of them into %d", r.Name, n, p.Shape, r.Elems(), r.Dims, b.Elems(), len(dst))
		}
		lo, hi := n, -1
		param.Each(r.Dims, b, func(global int) { lo, hi = min(lo, global), max(hi, global) })
		if hi >= n {
			return fmt.Errorf("pretrained: %s: box %v to %v reaches into padding", r.Name, b.Lo, b.Hi)
		}
		if hi < lo {
			return nil
		}
		width := n / p.Shape[0]
		from, to := lo/width, hi/width+1
		rows := make([]float64, (to-from)*width)
		if err := m.ReadRows(p, rows, from, to); err != nil {
			return err
		}
		i := 0
		param.Each(r.Dims, b, func(global int) {
			dst[i] = rows[global-from*width]
			i++
		})
		return nil
	}
}
