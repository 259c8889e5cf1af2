package train

import (
	"errors"
	"fmt"
	"testing"

	"heddle/compute"
	"heddle/compute/gpu"
	"heddle/data"
	"heddle/model"
)

// small is a fleet of limited memory that computes nothing.
type small struct {
	*gpu.Fleet
	limit int
}

func (s small) Plan(rank int) compute.Leaf { return s.Fleet.Plan(rank) }
func (s small) Seat(int) (Seat, error)     { return Seat{}, errors.New("nobody computes here") }
func (s small) End() error                 { return nil }

func (s small) Start() error {
	all := 0
	for _, n := range s.Need() {
		all += n
	}
	if all > s.limit {
		return fmt.Errorf("%d bytes of %d", all, s.limit)
	}
	return nil
}

// A run that does not fit is refused with what takes most, and with a change that does fit: one that was planned, and is the first in its order.
func TestARunThatDoesNotFitSaysWhatWould(t *testing.T) {
	c := Default()
	c.Model = model.Config{Layers: 2, Hidden: 16, Heads: 2, KV: 1, Head: 8, MLP: 24, Vocab: 259, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.2}
	c.Parallel.FSDP, c.Parallel.TP, c.Parallel.SP = 1, 1, ""
	c.Batch, c.Seq, c.Device, c.DType, c.Samples = 8, 64, "cuda", "bf16", 0
	s, err := c.Check()
	if err != nil {
		t.Fatal(err)
	}
	f := gpu.OnRunner(nil, 4, 1)
	need := func(c Config) int {
		j := Job{Config: c, Scheme: s, Eval: &data.Eval{}, Fleet: func(int) (Fleet, error) { return small{f, 1 << 40}, nil }}
		if err := j.Fits(); err != nil {
			t.Fatal(err)
		}
		return f.Need()[0]
	}
	whole := need(c)
	halved := c
	halved.Accumulate = 4
	for _, x := range []struct {
		limit int
		fit   string
	}{{whole, "fits"}, {whole - 1, "accumulate=2"}, {need(halved), "accumulate=4"}, {1000, ""}} {
		j := Job{Config: c, Scheme: s, Eval: &data.Eval{}, Fleet: func(int) (Fleet, error) { return small{f, x.limit}, nil }}
		err := j.Fits()
		e, large := errors.AsType[*TooLarge](err)
		if !large {
			if err != nil || x.fit != "fits" {
				t.Errorf("limit %d: %v, want %q", x.limit, err, x.fit)
			}
			continue
		}
		if e.Fit != x.fit || e.Of != compute.Scratch {
			t.Errorf("limit %d: %q fits, most is %s, want %q and scratch, the logits", x.limit, e.Fit, e.Of, x.fit)
		}
	}
}
