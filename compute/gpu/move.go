package gpu

import (
	"heddle/kernel/elem"
	"heddle/tensor"
)

// The methods below are what collectives between ranks of one card are made of. All ranks have parts of one arena, so a rank reads its peers' tensors where they lie.

// Mark is a point in the rank's queue.
func (l *Leaf) Mark() (uint32, error) {
	if l.m == nil {
		return 0, nil
	}
	return l.m.Mark()
}

// After holds the rank's queue back until another rank's queue has passed its point.
func (l *Leaf) After(rank int, point uint32) error {
	if l.m == nil {
		return nil
	}
	return l.m.After(rank, point)
}

// Take copies a peer's tensor to one of this rank.
func (l *Leaf) Take(dst, src tensor.Tensor) { l.Copy(dst, src) }

// Join is the sum of the ranks' tensors, in their order and rounded once, or the largest of each element. dst may be one of them.
func (l *Leaf) Join(dst tensor.Tensor, srcs []tensor.Tensor, largest bool) {
	l.each("join", elem.Join(dtype(dst.Type), len(srcs), largest), list(dst), srcs, nil)
}
