package rl

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"heddle/compute"
	"heddle/compute/cpu"
	"heddle/compute/cpu/blas"
	"heddle/compute/dry"
	"heddle/tensor"
	"heddle/train"
)

// planner is a machine that counts what the plan takes and refuses more: memory laid out before it is used.
type planner struct {
	mu    sync.Mutex
	plan  []*meter
	ended bool
}

// meter is a leaf that knows the most it has held at once.
type meter struct {
	compute.Leaf
	held, most, room int
}

func (m *meter) Alloc(bytes int) tensor.Mem {
	if m.held += bytes; m.held > m.most {
		m.most = m.held
	}
	if m.room > 0 && m.held > m.room {
		panic(fmt.Sprintf("%d bytes are held, %d were planned", m.held, m.room))
	}
	return m.Leaf.Alloc(bytes)
}

func (m *meter) Free(x tensor.Mem, bytes int) {
	m.held -= bytes
	m.Leaf.Free(x, bytes)
}

func (p *planner) Plan(rank int) compute.Leaf {
	m := &meter{Leaf: dry.Leaf{}}
	p.plan = append(p.plan, m)
	return m
}

func (p *planner) Start() error { return nil }

func (p *planner) Seat(rank int) (train.Seat, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool := blas.NewPool(1)
	return train.Seat{Leaf: &meter{Leaf: cpu.New[float32](pool), room: p.plan[rank].most}, Close: func() error { pool.Close(); return nil }}, nil
}

func (p *planner) End() error { p.ended = true; return nil }

// On a machine that plans its memory, what the rehearsal took is enough for every step of a run, and the run is that of a machine that does not but for rounding:
// padding changes the order in which weight gradients are summed. Four steps of 1e-3 move a weight by at most 4e-3, of which rounding makes less than 1e-5.
func TestRunFitsWhatWasRehearsed(t *testing.T) {
	change := func(c *Config) { c.Reinforce.Rows, c.Reinforce.Loss.ImportanceCap, c.Reinforce.Loss.KL = 8, 2, 0.01 }
	plain, _ := tiny(t, change)
	var fleet []*planner
	var mu sync.Mutex
	planned, _ := tiny(t, func(c *Config) {
		change(c)
		c.On.Fleet = func(int) (train.Fleet, error) {
			mu.Lock()
			defer mu.Unlock()
			fleet = append(fleet, &planner{})
			return fleet[len(fleet)-1], nil
		}
	})
	for range 4 {
		want, err := plain.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got, err := planned.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got.Counts != want.Counts || got.Metrics.Tokens != want.Metrics.Tokens {
			t.Errorf("%+v, want %+v", got.Counts, want.Counts)
		}
	}
	a, _ := plain.Weights()
	b, _ := planned.Weights()
	for name := range a {
		for i := range a[name] {
			if math.Abs(float64(a[name][i]-b[name][i])) > 1e-5 {
				t.Fatalf("%s[%d]: %g and %g", name, i, a[name][i], b[name][i])
			}
		}
	}
	if err := planned.Close(); err != nil || len(fleet) != 2 || !fleet[0].ended || len(fleet[0].plan) != 2 || fleet[0].plan[0].most == 0 {
		t.Errorf("%v, %d fleets", err, len(fleet))
	}
}

func TestPlannedMachineMustKnowItsShape(t *testing.T) {
	c, _ := Preset("path", "tiny")
	c.On.Fleet = func(int) (train.Fleet, error) { return &planner{}, nil }
	if _, err := NewLearner(LearnerConfig{Model: small, Machine: c.On}, nil, 1); err == nil {
		t.Error("no rows")
	}
}
