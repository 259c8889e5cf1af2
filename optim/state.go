package optim

import (
	"heddle/parallel"
	"heddle/tensor"
)

// Moments are the first and second moment of a piece, where they lie.
func (o *AdamW) Moments(p parallel.Piece) (m, v tensor.Tensor) {
	n := []int{p.Hi - p.Lo}
	return o.m[p.Unit].As("x", n, p.Offset), o.v[p.Unit].As("x", n, p.Offset)
}

// Resume makes the optimiser go on after the given number of steps, with the moments as they lie.
func (o *AdamW) Resume(steps int) { o.step = steps }
