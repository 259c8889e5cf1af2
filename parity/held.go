package parity

import (
	"fmt"

	"heddle/compute"
	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/train"
)

// Held is what a rank's memory is for while a training step runs, in bytes by category, change by change in the order of its
// program.
type Held struct {
	Scheme     string       `json:"scheme"`
	Model      model.Config `json:"model"`
	Batch      int          `json:"batch"`
	Seq        int          `json:"seq"`
	DType      string       `json:"dtype"`
	Recompute  string       `json:"recompute"`
	Accumulate int          `json:"accumulate"`
	Categories []string     `json:"categories"`
	Peak       int          `json:"peak_bytes"`
	Stages     []Stage      `json:"stages"`
	Changes    []Change     `json:"-"`
}

// Stage is a stretch of the program: a phase, and a layer of it (−1: outside the layers).
type Stage struct {
	Phase string `json:"phase"`
	Layer int    `json:"layer"`
	Peak  int    `json:"peak_bytes"`
	End   []int  `json:"end_bytes"` // by category, when it ends
}

// Change is what is held after one allocation or release, in a stage.
type Change struct {
	Stage int
	Bytes [compute.Categories]int
}

// Total is all of it.
func (c Change) Total() (n int) {
	for _, b := range c.Bytes {
		n += b
	}
	return n
}

// HeldOver runs one training step on rank 0 of a scheme, optimiser included, on the machine that only counts.
func HeldOver(in Input, s Scheme, under Schedule, t tensor.DType) (*Held, error) {
	sc, err := parallel.New(s.Layout, parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
	if err != nil {
		return nil, err
	}
	micro := max(1, under.Accumulate)
	h := &Held{Scheme: s.Name, Model: in.Config, Batch: in.B, Seq: in.S, DType: t.String(), Recompute: under.Recompute.Name(), Accumulate: micro}
	for c := range compute.Categories {
		h.Categories = append(h.Categories, c.String())
	}
	err = train.Ranks(sc.Mesh, train.Machine{Type: t, Dry: true}, func(r *train.Rank) error {
		if r.Index > 0 {
			return nil
		}
		m, err := model.New(in.Config, sc, r.Dev, r.Grp)
		if err != nil {
			return err
		}
		m.Use(under.Recompute)
		o := optim.New(optim.Config{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, r.Dev, m.Shards)
		r.Dev.WatchMemory(func(held [compute.Categories]int) { h.add(r.Dev, held) })
		step := r.Dev.Open()
		m.Shards.ZeroGrads()
		accumulate(m, r, in, micro)
		o.Step(1e-3)
		r.Dev.Close(step)
		h.Peak = r.Dev.Memory().Peak
		return nil
	})
	if err == nil && len(h.Changes) == 0 {
		err = fmt.Errorf("parity: %s: nothing was allocated", s.Name)
	}
	return h, err
}

func (h *Held) add(d *compute.Device, held [compute.Categories]int) {
	phase, layer := d.Here()
	if phase == "" {
		phase, layer = "forward", -1
	}
	if n := len(h.Stages); n == 0 || h.Stages[n-1].Phase != phase || h.Stages[n-1].Layer != layer {
		h.Stages = append(h.Stages, Stage{Phase: phase, Layer: layer})
	}
	c := Change{len(h.Stages) - 1, held}
	h.Changes = append(h.Changes, c)
	s := &h.Stages[c.Stage]
	s.Peak, s.End = max(s.Peak, c.Total()), append(s.End[:0], held[:]...)
}
