package parity

import (
	"maps"
	"testing"

	"heddle/compute"
	"heddle/model"
	"heddle/num"
	"heddle/parallel"
	"heddle/parity/formula"
	"heddle/tensor"
	"heddle/train"
)

// acceptance are the schemes that must always agree.
var acceptance = []string{"single", "dp2", "fsdp2", "tp2", "megatron2", "ulysses2", "megatron4", "ulysses4", "fsdp2-megatron2", "dp2-fsdp2", "fsdp2-ulysses2",
	"dp2-tp2", "dp2-fsdp2-megatron2"}

// further are schemes beyond them: three ranks, axes of three kinds at once, more ranks than key/value heads.
var further = []string{"dp3", "fsdp3", "tp8", "megatron8", "ulysses8", "tp4", "ulysses2-tp2", "ulysses2-megatron2", "fsdp3-megatron2", "fsdp3-tp4", "fsdp2-ulysses4",
	"dp2-ulysses2-tp2", "dp2-fsdp2-tp2", "fsdp3-ulysses2-megatron2", "ulysses4-tp2", "ulysses2-tp4"}

func must(t testing.TB, name string) parallel.Layout {
	t.Helper()
	l, err := parallel.ParseLayout(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// check compares what a run counted with the closed forms, to the byte.
func check(t *testing.T, name string, in Input, on train.Machine) {
	t.Helper()
	l := must(t, name)
	r, err := Gradient(in, l, Options{On: on})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	m := shape(in.Config, in.B, in.S, on.Type)
	if got, want := r.bytes(), formula.Bytes(m, layout(l), formula.Schedule{}); !maps.Equal(got, want) {
		t.Errorf("%s: %+v: received %v, want %v", name, m, got, want)
	}
	if got, want := int64(r.Ranks[0].Memory.Max[compute.Weights]), formula.Weights(m, layout(l)); got != want {
		t.Errorf("%s: %+v: holds %d bytes of weights, want %d", name, m, got, want)
	}
	for i, rank := range r.Ranks {
		if got, want := int64(rank.Memory.Max[compute.Saved]), formula.Saved(m, layout(l), formula.Schedule{}); got != want {
			t.Errorf("%s: %+v: rank %d keeps %d bytes, want %d", name, m, i, got, want)
		}
	}
}

// Shapes in which every rounding of the formulas shows: odd vocabularies and widths, fewer key/value heads than ranks, one
// head, slices that end inside a norm.
func TestDryBytesEqualTheClosedFormsForManyShapes(t *testing.T) {
	shapes := []model.Config{
		Tiny(),
		{Layers: 1, Hidden: 8, Heads: 8, KV: 8, Head: 2, MLP: 24, Vocab: 7, Tied: true},
		{Layers: 3, Hidden: 40, Heads: 8, KV: 1, Head: 6, MLP: 48, Vocab: 1001, Tied: false},
		{Layers: 2, Hidden: 13, Heads: 16, KV: 4, Head: 10, MLP: 72, Vocab: 97, Tied: false},
		{Layers: 5, Hidden: 64, Heads: 24, KV: 8, Head: 128, MLP: 8, Vocab: 1, Tied: true},
	}
	for _, c := range shapes {
		c.Theta, c.Eps = 1e4, 1e-6
		for _, bs := range [][2]int{{12, 16}, {36, 80}} {
			in := Input{Config: c, B: bs[0], S: bs[1], IDs: make([]int32, bs[0]*bs[1]), Labels: make([]int32, bs[0]*bs[1]), Mask: make([]float32, bs[0]*bs[1])}
			for _, name := range append(append([]string{}, acceptance...), further...) {
				for _, dtype := range []tensor.DType{tensor.F32, tensor.F64} {
					check(t, name, in, train.Machine{Type: dtype, Dry: true})
				}
			}
		}
	}
}

// The crossing's lines are the totals of Bytes, and at the crossing the order turns.
func TestCrossingIsWhereTheTotalsMeet(t *testing.T) {
	turns := 0
	for i := range 400 {
		u := func(k uint64, n int) int { return int(num.Uniform(uint64(i), k, 0) * float64(n)) }
		p := []int{2, 4, 8}[u(1, 3)]
		g := []int{1, 2, 4, 8, 16}[u(2, 5)]
		m := formula.Shape{H: 1 + u(3, 300), A: 16 * (1 + u(4, 3)), G: g, D: 2 * (1 + u(5, 40)), F: 8 * (1 + u(6, 90)), V: 1 + u(7, 5000), L: 1 + u(8, 6), Tied: u(9, 2) == 0, Elem: 4, QKNorm: true, Gated: true}
		total := func(tokens int, l formula.Layout) int64 {
			m := m
			m.B, m.S = 1, tokens*p
			return formula.Bytes(m, l, formula.Schedule{}).Total()
		}
		meg, uly := formula.Layout{TP: p, Megatron: true}, formula.Layout{CP: p}
		x := formula.Cross(m, p)
		for _, tokens := range []int{1, 2, 77, 4096} {
			if got, want := x.Megatron.PerToken*int64(tokens)+x.Megatron.Fixed, total(tokens, meg); got != want {
				t.Fatalf("%+v, %d ranks, %d tokens: megatron %d, want %d", m, p, tokens, got, want)
			}
			if got, want := x.Ulysses.PerToken*int64(tokens)+x.Ulysses.Fixed, total(tokens, uly); got != want {
				t.Fatalf("%+v, %d ranks, %d tokens: ulysses %d, want %d", m, p, tokens, got, want)
			}
		}
		if x.Tokens == 0 {
			if total(1<<20, uly) < total(1<<20, meg) {
				t.Fatalf("%+v, %d ranks: no crossing, but ulysses moves fewer bytes", m, p)
			}
			continue
		}
		turns++
		below, above := int(x.Tokens), int(x.Tokens)+1
		if below > 0 && total(below, uly) < total(below, meg) || total(above, uly) > total(above, meg) {
			t.Fatalf("%+v, %d ranks: no turn at %.1f tokens", m, p, x.Tokens)
		}
	}
	if turns < 100 {
		t.Errorf("only %d of 400 shapes cross", turns)
	}
}
