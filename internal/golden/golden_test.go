package golden

import (
	"math"
	"testing"
)

// The norm of a folder's gradients must be its grad_norm: shows that names, order and types are read right, with numbers from another program.
// Both are float64 sums of the same squares in another order: n·2^-53 ≈ 3e-12 relative for n ≈ 3e4 elements, far above what is seen.
func TestGradientsHaveTheNormTheFolderClaims(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			f := Open(t, name)
			sum := 0.0
			for _, info := range f.Expected.Tensors() {
				if len(info.Name) < 5 || info.Name[:5] != "grad." {
					continue
				}
				for _, g := range Float64s(t, f.Expected, info.Name) {
					sum += g * g
				}
			}
			want := Float64s(t, f.Expected, "grad_norm")[0]
			if got := math.Sqrt(sum); math.Abs(got-want) > 3e-12*want {
				t.Errorf("got norm %.17g, want %.17g", got, want)
			}
		})
	}
}

// Labels are the inputs of the next position, -100 where masked.
func TestLabelsAreShiftedInputs(t *testing.T) {
	f := Open(t, "qwen3-gqa")
	ids, labels := Int64s(t, f.Expected, "input_ids"), Int64s(t, f.Expected, "labels")
	masked := 0
	for i, l := range labels {
		if l == -100 {
			masked++
		} else if i+1 < len(ids) && (i+1)%16 != 0 && l != ids[i+1] {
			t.Errorf("label %d is %d, next input %d", i, l, ids[i+1])
		}
	}
	if masked == 0 || masked == len(labels) {
		t.Errorf("%d of %d labels masked", masked, len(labels))
	}
}
