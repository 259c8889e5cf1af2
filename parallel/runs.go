package parallel

import "heddle/tensor"

// Run is pieces of one unit that lie one behind the other.
type Run struct {
	Pieces       []Piece
	Unit, Offset int // where it starts in the unit's slice
	Len          int
	Weight, Low  tensor.Tensor // [x]; Low as in Piece
	Grad         tensor.Tensor
}

// Runs joins pieces that are to be treated alike: neighbours for which alike gives the same. One operation then serves them all. What alike refuses by its second
// result is in no run.
func (s *Shards) Runs(pieces []Piece, alike func(i int, p *Piece) (kind int, ok bool)) (out []Run) {
	last := -1 // kind of the run that is open
	for i := range pieces {
		p := &pieces[i]
		kind, ok := alike(i, p)
		if !ok {
			last = -1
			continue
		}
		n := len(out) - 1
		if last != kind || out[n].Unit != p.Unit || out[n].Offset+out[n].Len != p.Offset {
			out, n = append(out, Run{Unit: p.Unit, Offset: p.Offset}), n+1
		}
		r := &out[n]
		r.Pieces, r.Len, last = append(r.Pieces, *p), r.Len+p.Hi-p.Lo, kind
	}
	for i := range out {
		r := &out[i]
		n := []int{r.Len}
		r.Weight, r.Grad = s.masters[r.Unit].As("x", n, r.Offset), s.grads[r.Unit].As("x", n, r.Offset)
		if s.low() {
			r.Low = s.weights[r.Unit].As("x", n, r.Offset)
		}
	}
	return out
}
