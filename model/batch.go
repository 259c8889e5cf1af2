package model

import (
	"fmt"

	"heddle/compute"
	"heddle/mesh"
	"heddle/param"
	"heddle/tensor"
)

// Batch is one micro-batch on the device: ids, labels and mask [B, S] at Scheme.Tokens; positions [S], whole on every rank,
// for RoPE and attention; and where positions are an embedding each token's, [B, S] as ids on the residual stream.
type Batch struct{ IDs, Labels, Mask, Pos, At tensor.Tensor }

// NewBatch puts this rank's part of a global batch [b, s] on the device: labels are shifted already, mask is 0 or 1, tokens
// are numbered from 0 in each sequence.
func (m *Model) NewBatch(b, s int, ids, labels []int32, mask []float32) Batch {
	if err := m.Config.Fits(s); err != nil {
		m.dev.Fail("batch", fmt.Errorf("batch: %w", err))
	}
	tokens := func(t tensor.DType, at mesh.Places, v func(i int) float64) tensor.Tensor {
		return m.put(t, "bs", []int{b, s}, at, v)
	}
	at := m.Scheme.Tokens()
	batch := Batch{
		IDs:    tokens(tensor.I32, at, func(i int) float64 { return float64(ids[i]) }),
		Labels: tokens(tensor.I32, at, func(i int) float64 { return float64(labels[i]) }),
		Mask:   tokens(m.dev.Type, at, func(i int) float64 { return float64(mask[i]) }),
		Pos:    m.put(m.dev.Type, "s", []int{s}, m.Scheme.Positions(), func(i int) float64 { return float64(i) }),
	}
	if m.Config.Learned() {
		batch.At = tokens(tensor.I32, m.Scheme.Stream(), func(i int) float64 { return float64(i % s) })
	}
	return batch
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
