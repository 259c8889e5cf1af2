package model

import (
	"slices"
	"sync"
	"testing"
	"time"

	"heddle/comm"
	"heddle/comm/local"
	"heddle/compute"
	"heddle/compute/cpu"
	"heddle/compute/cpu/blas"
	"heddle/parallel"
	"heddle/tensor"
)

// paid is what a layer's backward leaves: the gradient of its input, and those of its weights.
type paid struct{ dx, weights []float64 }

// Weight gradients may be owed: computed after the gradients of the whole stack's inputs, layer by layer in any order, from saved and
// owed alone. Every bit is that of computing them at once, as zero-bubble pipelines need it.
func TestBackwardWeightMayBePaidLater(t *testing.T) {
	for name, l := range map[string]parallel.Layout{"single": {}, "tp2": {TP: 2}, "megatron2": {TP: 2, SP: "megatron"}, "ulysses2": {CP: 2}} {
		for _, keep := range []Keep{Selective, All} {
			at := backward(t, l, keep, false)
			later := backward(t, l, keep, true)
			for rank := range at {
				if !slices.Equal(at[rank].dx, later[rank].dx) || !slices.Equal(at[rank].weights, later[rank].weights) {
					t.Errorf("%s, %s: rank %d: other bits when paid later", name, keep, rank)
				}
			}
			if some := slices.IndexFunc(at[0].weights, func(v float64) bool { return v != 0 }); some < 0 {
				t.Errorf("%s: every gradient is zero", name)
			}
		}
	}
}

// backward takes a stream through two layers and back on every rank of a layout.
func backward(t *testing.T, l parallel.Layout, keep Keep, later bool) []paid {
	t.Helper()
	c := Config{Layers: 2, Hidden: 8, Heads: 4, KV: 2, Head: 4, MLP: 12, Vocab: 11, Theta: 1e4, Eps: 1e-6, Std: 0.3}
	s, err := parallel.New(l, parallel.Heads{G: c.KV, R: c.Rep()})
	if err != nil {
		t.Fatal(err)
	}
	world := local.NewWorld(s.Mesh.Size(), time.Minute)
	out := make([]paid, s.Mesh.Size())
	var wg sync.WaitGroup
	for rank := range out {
		wg.Go(func() {
			pool := blas.NewPool(1)
			defer pool.Close()
			leaf := cpu.New[float64](pool)
			leaf.Poison = true
			dev := compute.New(s.Mesh, rank, tensor.F64, leaf)
			m, err := New(c, s, dev, comm.New(dev, world.Leaf(rank)))
			if err == nil {
				err = m.Shards.Load(m.Shards.Table.Init(5))
			}
			if err != nil {
				t.Error(err)
				world.Abort(err)
				return
			}
			m.Use(Policy{Mode: keep})
			out[rank] = m.through(later)
		})
	}
	wg.Wait()
	return out
}

// through runs Forward of all layers on a made-up stream, then Backward of a made-up gradient: at once, or inputs first.
func (m *Model) through(later bool) paid {
	const b, s = 2, 6
	d := m.dev
	pos := m.put(d.Type, "s", []int{s}, m.Scheme.Positions(), func(i int) float64 { return float64(i) })
	stream := func(scale float64) tensor.Tensor {
		x := m.put(d.Type, "bsh", []int{b, s, m.Config.Hidden}, m.Scheme.Stream(), func(i int) float64 { return scale * float64(i*7%23-11) })
		x.Const = false
		return x
	}
	x, dy := stream(0.1), stream(0.05)
	m.Shards.ZeroGrads()
	layers := make([]layerBack, m.Config.Layers)
	for l := range layers {
		k := &layers[l]
		k.w, k.gr = m.layerRows(m.Shards.Gather(l+1)), m.layerRows(m.Shards.OpenGrads(l+1))
		var y tensor.Tensor
		y, k.sa = m.attention.Forward(k.w, x, pos)
		x, k.sm = m.mlp.Forward(k.w, y)
	}
	for l := len(layers) - 1; l >= 0; l-- {
		k := &layers[l]
		d.BiasBack(k.gr[rowDownBias], dy)
		k.om = m.mlp.BackwardInput(k.w, dy, k.sm)
		if !later {
			m.mlp.BackwardWeight(k.w, k.gr, k.sm, k.om)
		}
		dy = d.Add(dy, m.mlp.normBack(normGrad{k.gr[rowNorm2], k.gr[rowNorm2Bias]}, k.om.dh.Wait(), k.sm.x, k.sm.rstd, k.w[rowNorm2]))
		k.oa = m.attention.BackwardInput(k.w, k.gr, dy, pos, k.sa)
		if !later {
			m.attention.BackwardWeight(k.w, k.gr, k.sa, k.oa)
		}
		dy = d.Add(dy, m.attention.normBack(normGrad{k.gr[rowNorm1], k.gr[rowNorm1Bias]}, k.oa.dh.Wait(), k.sa.x, k.sa.rstd, k.w[rowNorm1]))
	}
	if later {
		for l := range layers { // and from the first layer to the last
			k := &layers[l]
			m.attention.BackwardWeight(k.w, k.gr, k.sa, k.oa)
			m.mlp.BackwardWeight(k.w, k.gr, k.sm, k.om)
		}
	}
	p := paid{dx: d.Download(dy)}
	for _, piece := range m.Shards.Pieces() {
		p.weights = append(p.weights, d.Download(piece.Grad)...)
	}
	return p
}

// layerBack is what a layer's backward reads and owes.
type layerBack struct {
	w, gr []tensor.Tensor
	sa    *savedAttention
	sm    *savedMLP
	oa    *owedAttention
	om    *owedMLP
}
