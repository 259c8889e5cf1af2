// Package optim is AdamW on the shards that rest on a rank, gradient clipping by the global norm, and the learning rate's
// schedule. Moments lie like the weights: each rank updates what it holds, so nothing moves.
package optim

import (
	"fmt"
	"math"

	"heddle/compute"
	"heddle/mesh"
	"heddle/parallel"
	"heddle/tensor"
)

// Config are the optimiser's numbers. Decay touches matrices only, unless DecayAll.
type Config struct {
	Beta1    float64 `yaml:"beta1" json:"beta1"`
	Beta2    float64 `yaml:"beta2" json:"beta2"`
	Eps      float64 `yaml:"eps" json:"eps"`
	Decay    float64 `yaml:"weight_decay" json:"weight_decay"`
	DecayAll bool    `yaml:"decay_all" json:"decay_all"`
	Clip     float64 `yaml:"clip" json:"clip"` // largest global gradient norm; 0: no clipping
}

// Check refuses values for which an update is no step downhill, or no number. An eps that float32 takes for 0 makes 0 ÷ 0 of a
// gradient that was always 0, as that of padding is.
func (c Config) Check() error {
	const tiny = 0x1p-126 // float32's smallest normal number
	switch {
	case !(c.Beta1 >= 0 && c.Beta1 < 1) || !(c.Beta2 >= 0 && c.Beta2 < 1):
		return fmt.Errorf("optim: beta1 %g and beta2 %g, want 0 or more and less than 1; hint: 0.9 and 0.95", c.Beta1, c.Beta2)
	case !(c.Eps >= tiny) || !(c.Eps <= 1):
		return fmt.Errorf("optim: eps is %g, want %g to 1; hint: 1e-8", c.Eps, tiny)
	case !(c.Decay >= 0) || math.IsInf(c.Decay, 0):
		return fmt.Errorf("optim: weight_decay is %g, want 0 or more; hint: 0.1", c.Decay)
	case !(c.Clip >= 0) || math.IsInf(c.Clip, 0):
		return fmt.Errorf("optim: clip is %g, want the largest norm of a gradient, or 0 for none; hint: 1", c.Clip)
	}
	return nil
}

// AdamW is one rank's optimiser.
type AdamW struct {
	cfg  Config
	dev  *compute.Device
	sh   *parallel.Shards
	m, v []tensor.Tensor // [x] a unit's slice
	step int
}

// New allocates the moments, at zero.
func New(c Config, dev *compute.Device, sh *parallel.Shards) *AdamW {
	o := &AdamW{cfg: c, dev: dev, sh: sh}
	for _, u := range sh.Units {
		for _, list := range []*[]tensor.Tensor{&o.m, &o.v} {
			t := dev.NewIn(compute.Moments, dev.Type.Wide(), "x", []int{u.Slice}, mesh.Places{})
			dev.Zero(t)
			*list = append(*list, t)
		}
	}
	return o
}

// Step settles the gradients, clips them by their global norm and updates every parameter of this rank. It returns the norm
// before clipping. Where that is no number nothing is updated: the weights stay those of the step before. bad are this rank's
// values that are no numbers; they make the norm none, so that every rank hears of them.
func (o *AdamW) Step(lr float64, bad ...tensor.Tensor) (norm float64) {
	d := o.dev
	d.At("optimizer", -1)
	o.sh.Settle()
	sc := d.Open()
	sq := o.sh.SquaredNorm(bad...)
	if norm = math.Sqrt(d.Read(sq, 1)); !math.IsNaN(norm) && !math.IsInf(norm, 0) {
		o.update(lr, sq)
	}
	d.Close(sc)
	return norm
}

func (o *AdamW) update(lr float64, sq tensor.Tensor) {
	d := o.dev
	scale := d.ClipScale(sq, o.cfg.Clip)
	o.step++
	const decays = 1
	kind := func(_ int, p *parallel.Piece) (int, bool) {
		if p.Row.Decay || o.cfg.DecayAll {
			return decays, p.Row.Train
		}
		return 0, p.Row.Train
	}
	for _, r := range o.sh.Runs(o.sh.Pieces(), kind) {
		a := compute.AdamW{LR: lr, Beta1: o.cfg.Beta1, Beta2: o.cfg.Beta2, Eps: o.cfg.Eps, Step: o.step}
		if k, _ := kind(0, &r.Pieces[0]); k == decays {
			a.Decay = o.cfg.Decay
		}
		n := []int{r.Len}
		d.AdamW(r.Weight, r.Low, r.Grad, o.m[r.Unit].As("x", n, r.Offset), o.v[r.Unit].As("x", n, r.Offset), scale, a)
	}
}

// Schedule is a learning rate that rises linearly to Peak over Warmup steps and falls on a cosine to Peak·Floor at Steps
// (Loshchilov and Hutter 2017).
type Schedule struct {
	Peak   float64 `yaml:"lr" json:"lr"`
	Floor  float64 `yaml:"floor" json:"floor"`
	Warmup int     `yaml:"warmup" json:"warmup"`
	Steps  int     `yaml:"-" json:"-"`
}

// At is the learning rate of a step, counted from 0.
func (s Schedule) At(step int) float64 {
	if step < s.Warmup {
		return s.Peak * float64(step+1) / float64(s.Warmup)
	}
	done := float64(step-s.Warmup+1) / float64(max(1, s.Steps-s.Warmup))
	return s.Peak * (s.Floor + (1-s.Floor)*0.5*(1+math.Cos(math.Pi*min(1, done))))
}
