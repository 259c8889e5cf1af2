package gpu_test

import (
	"math"
	"testing"

	"heddle/compute"
	"heddle/compute/gpu"
	"heddle/model"
	"heddle/parallel"
	"heddle/parity"
	"heddle/ptx/emulate"
	"heddle/tensor"
	"heddle/train"
)

// fleet makes gpu.Fleet what train wants.
type fleet struct{ *gpu.Fleet }

func (f fleet) Plan(rank int) compute.Leaf { return f.Fleet.Plan(rank) }

func (f fleet) Seat(rank int) (train.Seat, error) {
	l, end, err := f.Fleet.Seat(rank)
	return train.Seat{Leaf: l, Mover: l, Close: end}, err
}

// emulated is a GPU of two SMs in the emulator.
func emulated(t tensor.DType) train.Machine {
	return train.Machine{Type: t, Fleet: func(ranks int) (train.Fleet, error) {
		return fleet{gpu.OnRunner(emulate.Emulator{SMs: 2}, 2, ranks)}, nil
	}}
}

// distance is the largest error of a gradient's tensor, max|a−b| ÷ max|b|.
func distance(a, b *parity.Result) (worst float64, name string) {
	for n, x := range a.Grads {
		d, top := 0.0, 0.0
		for i := range x {
			d, top = max(d, math.Abs(x[i]-b.Grads[n][i])), max(top, math.Abs(b.Grads[n][i]))
		}
		if d /= top; d > worst || math.IsNaN(d) {
			worst, name = d, n
		}
	}
	return worst, name
}

// A model's loss and gradients, every kernel run by the emulator, are those of one CPU rank in float64: in float32 as close as the CPU's own float32, under the
// schemes whose collectives move memory between ranks of one card; in bf16 within a few of its roundings.
func TestModelOnTheEmulatorIsTheModel(t *testing.T) {
	c := model.Config{Layers: 1, Hidden: 16, Heads: 4, KV: 2, Head: 8, MLP: 24, Vocab: 40, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.2}
	in := parity.NewInput(c, 2, 8, 1, 1)
	want, err := parity.Gradient(in, parallel.Layout{}, parity.Options{On: train.Machine{Type: tensor.F64}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		layout string
		t      tensor.DType
		limit  float64
	}{{"single", tensor.F32, 2e-6}, {"tp2", tensor.F32, 2e-6}, {"megatron2", tensor.F32, 2e-6}, {"ulysses2", tensor.F32, 2e-6}, {"fsdp2", tensor.F32, 2e-6},
		{"single", tensor.BF16, 5e-2}, {"megatron2", tensor.BF16, 5e-2}, {"ulysses2", tensor.BF16, 5e-2}, {"fsdp2", tensor.BF16, 5e-2}} {
		l, err := parallel.ParseLayout(x.layout)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parity.Gradient(in, l, parity.Options{On: emulated(x.t)})
		if err != nil {
			t.Fatal(x.layout, err)
		}
		d, name := distance(got, want)
		if !(d <= x.limit) || math.Abs(got.Loss-want.Loss) > x.limit*want.Loss {
			t.Errorf("%s %s: gradient of %s is %.1e off, loss %v, want %v", x.layout, x.t, name, d, got.Loss, want.Loss)
		}
		t.Logf("%s %s: worst gradient %s %.1e, loss %.1e", x.layout, x.t, name, d, got.Loss/want.Loss-1)
	}
}
