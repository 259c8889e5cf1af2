package cpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"heddle/compute"
	"heddle/compute/cpu/blas"
	"heddle/tensor"
)

// bench is a leaf and what its operations wrote.
type bench struct {
	leaf *Leaf[float32]
	r    *rand.Rand
	made []tensor.Tensor
}

// tensor makes a tensor of numbers in ±1, the same for the same calls before.
func (b *bench) tensor(letters string, dims ...int) tensor.Tensor {
	t := tensor.Tensor{Type: tensor.F32, Letters: letters, Dims: dims}
	t.Mem = b.leaf.Alloc(t.Bytes())
	for i := range tensor.View[float32](t) {
		tensor.View[float32](t)[i] = b.r.Float32()*2 - 1
	}
	b.made = append(b.made, t)
	return t
}

// everything runs each operation that is spread over threads, large enough to be.
func (b *bench) everything() {
	const batch, seq, h, v = 2, 33, 128, 700
	mk := func(h int) tensor.Tensor { return b.tensor("bsh", batch, seq*8, h) }
	x, y, z, w, dw := mk(h), mk(h), mk(h), b.tensor("h", h), b.tensor("h", h)
	rstd := b.tensor("bs", batch, seq*8)
	b.leaf.Add(y, x, z)
	b.leaf.Norm(mk(h), rstd, x, w, 1e-6)
	b.leaf.NormAgain(mk(h), x, rstd, w)
	b.leaf.NormBack(mk(h), dw, y, x, rstd, w)
	b.leaf.SwiGLU(mk(h), x, z)
	b.leaf.SwiGLUBack(mk(h), mk(h), y, x, z)
	b.leaf.Center(mk(h), x)
	b.leaf.AddBias(mk(h), w)
	b.leaf.BiasBack(dw, x)
	b.leaf.GELU(mk(h), x)
	b.leaf.GELUBack(mk(h), y, x)

	logits, m, sums := b.tensor("bsv", batch, seq*8, v), b.tensor("bs", batch, seq*8), b.tensor("bsp", batch, seq*8, 2)
	ids := tensor.Tensor{Type: tensor.I32, Letters: "bs", Dims: []int{batch, seq * 8}}
	ids.Mem = b.leaf.Alloc(ids.Bytes())
	for i := range tensor.View[int32](ids) {
		tensor.View[int32](ids)[i] = int32(b.r.IntN(v))
	}
	vocab := compute.Vocab{Valid: v - 3}
	b.leaf.RowMax(m, logits, v-3)
	b.leaf.SumExp(sums, logits, m, ids, vocab)
	b.leaf.LossBack(logits, m, sums, compute.Targets{Labels: ids, Mask: b.tensor("bs", batch, seq*8), Count: b.tensor("")}, vocab)

	pos := b.tensor("s", seq*8)
	for i := range tensor.View[float32](pos) {
		tensor.View[float32](pos)[i] = float32(i)
	}
	heads := func() tensor.Tensor { return b.tensor("bsgrd", batch, seq*8, 2, 2, 32) }
	b.leaf.Rope(heads(), heads(), pos, compute.Rope{Theta: 1e4})
	b.leaf.Rope(heads(), heads(), pos, compute.Rope{Theta: 1e4, Back: true})
	b.leaf.Delta(b.tensor("bsgr", batch, seq*8, 2, 2), heads(), heads())
	square := mk(h)
	b.leaf.SwiGLU(square, square, square)
	b.leaf.AdamW(mk(h), tensor.Tensor{}, x, mk(h), square, b.tensor(""), compute.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Step: 2})
}

// What the operations write does not depend on the number of threads.
func TestBitsDoNotDependOnThreads(t *testing.T) {
	var want []tensor.Tensor
	for _, threads := range []int{1, 2, 5} {
		pool := blas.NewPool(threads)
		b := &bench{leaf: New[float32](pool), r: rand.New(rand.NewPCG(1, 1))}
		b.everything()
		pool.Close()
		if want == nil {
			want = b.made
			continue
		}
		for i, x := range b.made {
			// NaN (a root of a negative second moment) is equal to itself here.
			if !slices.EqualFunc(tensor.View[float32](x), tensor.View[float32](want[i]), func(a, b float32) bool { return a == b || a != a && b != b }) {
				t.Errorf("%d threads: tensor %d %s has other bits than on one", threads, i, x.Letters)
			}
		}
	}
}
