package parity

import (
	"testing"

	"heddle/compute"
	"heddle/parity/formula"
	"heddle/tensor"
)

// Twelve layers under fsdp 4: what is kept grows by a layer's closed form in forward and falls by it in backward, weights are two
// units beside the slices, and after the step nothing is left but what rests.
func TestHeldMemoryRisesAndFallsByTheClosedForm(t *testing.T) {
	c := Tiny()
	c.Layers = 12
	in := NewInput(c, 4, 64, 1, 1)
	s := Scheme{"fsdp4", must(t, "fsdp4")}
	h, err := HeldOver(in, s, Schedule{}, tensor.F32)
	if err != nil {
		t.Fatal(err)
	}
	m, l := shape(c, in.B, in.S, tensor.F32), layout(s.Layout)
	kept := int(formula.Saved(m, l, formula.Schedule{})) / c.Layers
	next := map[string]int{"forward": 0, "backward": c.Layers - 1}
	for _, x := range h.Stages {
		if x.Layer < 0 {
			continue
		}
		want := (x.Layer + 1) * kept
		if x.Phase == "backward" {
			want = x.Layer * kept
		}
		if x.End[compute.Saved] != want || x.Layer != next[x.Phase] {
			t.Errorf("%s of layer %d ends with %d bytes kept, want %d", x.Phase, x.Layer, x.End[compute.Saved], want)
		}
		next[x.Phase]++
		if x.Phase == "backward" {
			next[x.Phase] -= 2
		}
	}
	if next["forward"] != c.Layers || next["backward"] != -1 {
		t.Errorf("stages end at %v", next)
	}
	most, peak := 0, 0
	for _, x := range h.Changes {
		most, peak = max(most, x.Bytes[compute.Weights]), max(peak, x.Total())
	}
	if most != int(formula.Weights(m, l)) || peak != h.Peak {
		t.Errorf("weights %d, want %d; peak %d, want %d", most, formula.Weights(m, l), peak, h.Peak)
	}
	last := h.Changes[len(h.Changes)-1]
	for cat, n := range last.Bytes {
		rests := compute.Category(cat) == compute.Weights || compute.Category(cat) == compute.Gradients || compute.Category(cat) == compute.Moments
		if rests == (n == 0) {
			t.Errorf("after the step %d bytes of %s are held", n, compute.Category(cat))
		}
	}
}
