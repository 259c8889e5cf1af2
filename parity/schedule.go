package parity

import (
	"fmt"
	"slices"

	"heddle/compute"
	"heddle/model"
	"heddle/parallel"
	"heddle/parity/formula"
	"heddle/train"
)

// Schedule is how a step's batch is cut into micro-batches, and what Forward keeps for Backward.
type Schedule struct {
	Recompute  model.Policy
	Accumulate int // micro-batches; 0 counts as 1
}

func (s Schedule) formula() formula.Schedule {
	f := formula.Schedule{Micro: s.Accumulate, Keep: s.Recompute.Mode == model.All}
	if s.Recompute.Mode == model.Full {
		f.Full = max(1, s.Recompute.Every)
	}
	return f
}

// Schedules is every policy named with every number of micro-batches.
func Schedules(policies []string, accumulate []int) (out []Schedule, err error) {
	for _, n := range accumulate {
		if n < 1 || n > 1<<20 {
			return nil, fmt.Errorf("parity: %d micro-batches, want 1 or more", n)
		}
		for _, name := range policies {
			p, err := model.ParsePolicy(name)
			if err != nil {
				return nil, err
			}
			out = append(out, Schedule{p, n})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("parity: no schedule; hint: --recompute=selective --accumulate=1")
	}
	return out, nil
}

// drySame tells whether a dry run has the calls and the memory of r, on every rank.
func drySame(in Input, l parallel.Layout, o Options, r *Result) (bool, error) {
	d, err := Gradient(in, l, Options{On: train.Machine{Type: o.On.Type, Dry: true}, Schedule: o.Schedule})
	if err != nil {
		return false, err
	}
	for i := range d.Ranks {
		if !slices.EqualFunc(d.Ranks[i].Calls, r.Ranks[i].Calls, compute.Call.Equal) || !d.Ranks[i].Memory.Equal(r.Ranks[i].Memory) {
			return false, nil
		}
	}
	return true, nil
}

// order lists rows of one scheme whose memory does not fall as it should, where more is rebuilt and where micro-batches are smaller:
// what is kept falls, and the peak with it, unless the peak is elsewhere (gradients on their way, the logits); it never rises.
func (c *Comparison) order() (out []string) {
	for _, a := range c.Schemes {
		for _, b := range c.Schemes {
			if a.Scheme != b.Scheme {
				continue
			}
			x, y := rank(a.Recompute), rank(b.Recompute)
			falls := x < y && a.Accumulate == b.Accumulate || x == y && a.Recompute == b.Recompute && a.Accumulate < b.Accumulate
			if x != y && c.Model.Layers < 2 { // what one layer does not keep is rebuilt beside what it keeps
				continue
			}
			even := x == everyN || y == everyN // where one layer of two is left, every second may be as much as all
			if falls && (b.Peak > a.Peak || b.Saved > a.Saved || b.Saved == a.Saved && !even) {
				out = append(out, fmt.Sprintf("%s: the peak is %d and %d are kept with recomputation %s and %d micro-batches, but %d and %d with %s and %d", a.Scheme, a.Peak, a.Saved, a.Recompute, a.Accumulate, b.Peak, b.Saved, b.Recompute, b.Accumulate))
			}
		}
	}
	return out
}

const everyN = 2

// rank orders policies by how little they keep.
func rank(policy string) int {
	switch policy {
	case "none":
		return 0
	case "selective":
		return 1
	case "full":
		return 3
	}
	return everyN
}
