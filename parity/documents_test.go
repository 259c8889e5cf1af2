package parity

import (
	"math"
	"testing"

	"heddle/model"
)

// packed is a batch of two sequences of documents, and the same documents alone.
func packed(c model.Config, lengths [][]int) (all Input, alone []Input) {
	s := 0
	for _, n := range lengths[0] {
		s += n
	}
	all = NewInput(c, len(lengths), s, 3, 1)
	all.Segments = make([]int32, len(all.IDs))
	for row, docs := range lengths {
		at := row * s
		for i, n := range docs {
			for k := range n {
				all.Segments[at+k] = int32(i)
			}
			alone = append(alone, Input{Config: c, B: 1, S: n, IDs: all.IDs[at : at+n], Labels: all.Labels[at : at+n], Mask: all.Mask[at : at+n], Weights: all.Weights})
			at += n
		}
	}
	return all, alone
}

func labels(in Input) (n float64) {
	for _, on := range in.Mask {
		n += float64(on)
	}
	return n
}

// Documents packed into sequences have the loss and the gradient of the same documents run alone, weighted by their tokens, in
// every family and scheme: attention stays within them, and their positions start at 0. The limit is that of sums in another
// order (LimitF64).
func TestPackedDocumentsAreTheDocumentsAlone(t *testing.T) {
	for name, c := range families() {
		all, alone := packed(c, [][]int{{5, 1, 10}, {16}, {3, 9, 4}, {15, 1}})
		total := labels(all)
		want := &Result{Grads: map[string][]float64{}}
		for _, in := range alone {
			n := labels(in)
			if n == 0 {
				continue
			}
			r := oracle(t, in)
			want.Loss += r.Loss * n / total
			for k, g := range r.Grads {
				if want.Grads[k] == nil {
					want.Grads[k] = make([]float64, len(g))
				}
				for i, v := range g {
					want.Grads[k][i] += v * n / total
				}
			}
		}
		sq := 0.0
		for _, g := range want.Grads {
			for _, v := range g {
				sq += v * v
			}
		}
		want.Norm = math.Sqrt(sq)
		for _, scheme := range []string{"single", "dp2", "fsdp2", "tp2", "megatron2", "ulysses2", "ulysses4", "ulysses2-megatron2", "fsdp2-ulysses2", "dp2-tp4"} {
			agrees(t, all, scheme, want)
		}
		whole := all
		whole.Segments = nil
		if m := measure(want, oracle(t, whole)); m.GradErr < 1e-3 {
			t.Errorf("%s: sequences as one text have the same gradient: %g", name, m.GradErr)
		}
	}
}
