package parity

import (
	"math"
	"reflect"
	"testing"

	"heddle/parallel"
	"heddle/tensor"
	"heddle/train"
)

func TestEverySchemeHasTheGradientOfOneRank(t *testing.T) {
	in := NewInput(Tiny(), 4, 32, 1, 1)
	ref, err := Gradient(in, parallel.Layout{}, Options{On: train.Machine{Type: tensor.F64}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []parallel.Layout{{DP: 2}, {FSDP: 2}, {TP: 2}, {TP: 2, SP: "megatron"}, {CP: 2}, {TP: 4, SP: "megatron"}, {TP: 4}, {CP: 4}, {FSDP: 2, TP: 2, SP: "megatron"}, {DP: 2, FSDP: 2}, {FSDP: 2, CP: 2}, {DP: 2, TP: 2}, {DP: 2, FSDP: 2, TP: 2, SP: "megatron"}, {TP: 2, CP: 2}} {
		r, err := Gradient(in, l, Options{On: train.Machine{Type: tensor.F64}})
		if err != nil {
			t.Error(l, err)
			continue
		}
		worst, name := 0.0, ""
		for n, g := range ref.Grads {
			mx, e := 0.0, 0.0
			for i, v := range g {
				mx = max(mx, math.Abs(v))
				e = max(e, math.Abs(v-r.Grads[n][i]))
			}
			if e/mx > worst {
				worst, name = e/mx, n
			}
		}
		// Sums of the same terms in another order differ by a few ulp of the largest; 1e-12 leaves room for 8 layers.
		if worst > 1e-12 || math.Abs(r.Loss-ref.Loss) > 1e-12*ref.Loss || math.Abs(r.Norm-ref.Norm) > 1e-12*ref.Norm || r.Spread != 0 {
			t.Errorf("%+v: worst gradient error %.1e (%s), loss %v want %v, norm %v want %v, spread %g", l, worst, name, r.Loss, ref.Loss, r.Norm, ref.Norm, r.Spread)
		}
		d, err := Gradient(in, l, Options{On: train.Machine{Type: tensor.F64, Dry: true}})
		if err != nil {
			t.Error(l, err)
			continue
		}
		for i := range d.Ranks {
			if !reflect.DeepEqual(d.Ranks[i].Calls, r.Ranks[i].Calls) || !reflect.DeepEqual(d.Ranks[i].Memory, r.Ranks[i].Memory) {
				t.Errorf("%+v: rank %d: the dry run has other calls or memory", l, i)
			}
		}
	}
}
