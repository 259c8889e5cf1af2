package model

import (
	"fmt"

	"heddle/compute"
	"heddle/mesh"
	"heddle/param"
	"heddle/tensor"
)

// Batch is one micro-batch on the device: ids, labels and mask [B, S] at Scheme.Tokens; positions, whole sequences of them on
// every rank for RoPE and attention, [S], or [B, S] where attention stays within documents; and where positions are an
// embedding each token's, [B, S] as ids on the residual stream.
type Batch struct{ IDs, Labels, Mask, Pos, At tensor.Tensor }

// Tokens is a global batch on the host.
type Tokens struct {
	B, S     int
	IDs      []int32   // [B, S]
	Labels   []int32   // [B, S], shifted already
	Mask     []float32 // [B, S], 0 or 1
	Segments []int32   // [B, S], the document of each token, equal within one; nil: every sequence is one. Tokens see their own document and are numbered in it
}

// NewBatch puts this rank's part of a global batch [b, s] of whole sequences on the device.
func (m *Model) NewBatch(b, s int, ids, labels []int32, mask []float32) Batch {
	return m.Put(Tokens{B: b, S: s, IDs: ids, Labels: labels, Mask: mask})
}

// Put puts this rank's part of a global batch on the device.
func (m *Model) Put(t Tokens) Batch {
	if err := m.Config.Fits(t.S); err != nil {
		m.dev.Fail("batch", fmt.Errorf("batch: %w", err))
	}
	tokens := func(d tensor.DType, at mesh.Places, v func(i int) float64) tensor.Tensor {
		return m.put(d, "bs", []int{t.B, t.S}, at, v)
	}
	at := m.Scheme.Tokens()
	batch := Batch{
		IDs:    tokens(tensor.I32, at, func(i int) float64 { return float64(t.IDs[i]) }),
		Labels: tokens(tensor.I32, at, func(i int) float64 { return float64(t.Labels[i]) }),
		Mask:   tokens(m.dev.Type.Wide(), at, func(i int) float64 { return float64(t.Mask[i]) }),
	}
	pos := func(i int) float64 { return float64(i % t.S) }
	if t.Segments == nil {
		batch.Pos = m.put(m.dev.Type.Wide(), "s", []int{t.S}, m.Scheme.Positions(), pos)
	} else {
		within := t.positions()
		pos = func(i int) float64 { return float64(within[i]) }
		batch.Pos = tokens(m.dev.Type.Wide(), m.Scheme.Sequences(), pos)
	}
	if m.Config.Learned() {
		batch.At = tokens(tensor.I32, m.Scheme.Stream(), pos)
	}
	return batch
}

// positions are each token's place in its document, from 0.
func (t *Tokens) positions() []int {
	p := make([]int, len(t.Segments))
	for i := range p {
		if i%t.S != 0 && t.Segments[i] == t.Segments[i-1] {
			p[i] = p[i-1] + 1
		}
	}
	return p
}

// put uploads this rank's part of a constant; v gives its elements by global index.
func (m *Model) put(t tensor.DType, letters string, dims []int, at mesh.Places, v func(i int) float64) tensor.Tensor {
	box := param.Cut(m.Scheme.Mesh, m.dev.Rank, letters, dims, at)
	x := m.dev.NewIn(compute.Constant, t, letters, box.Dims(), at)
	x.Const = true
	host := make([]float64, 0, box.Elems())
	param.Each(dims, box, func(i int) { host = append(host, v(i)) })
	m.dev.Upload(x, host)
	return x
}

// Free releases the batch.
func (m *Model) Free(b Batch) { m.dev.Free(present(b.IDs, b.Labels, b.Mask, b.Pos, b.At)...) }
