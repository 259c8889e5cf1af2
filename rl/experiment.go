package rl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"heddle/model"
	"heddle/param"
	"heddle/rl/tasks"
)

// Result is the comparison over all repetitions. Success is the share of held-out completions that are right, drawn at temperature 1.
type Result struct {
	Supervised float64  `json:"success_supervised"`
	More       *float64 `json:"success_more_supervised"` // null where there are no demonstrations
	GRPO       float64  `json:"success_grpo"`
	Gain       float64  `json:"gain"` // of GRPO over supervised
	GainLow    float64  `json:"gain_low"`
	GainHigh   float64  `json:"gain_high"` // 95 % interval over repetitions, Student's t
	OverMore   float64  `json:"gain_over_more_supervised"`
	OverLow    float64  `json:"gain_over_more_supervised_low"`
	OverHigh   float64  `json:"gain_over_more_supervised_high"`
	Seeds      int      `json:"seeds"`
	Seconds    float64  `json:"seconds"`

	Each []Repetition `json:"each"`
}

// Repetition is one seed's.
type Repetition struct {
	Seed             uint64   `json:"seed"`
	Supervised       float64  `json:"success_supervised"`
	More             *float64 `json:"success_more_supervised"`
	GRPO             float64  `json:"success_grpo"`
	Plateau          float64  `json:"plateau"` // change of the held-out success over the last look of supervision
	SuperviseSeconds float64  `json:"supervise_seconds"`
	GRPOSeconds      float64  `json:"grpo_seconds"`
	MoreSeconds      float64  `json:"more_supervised_seconds"`
	MoreSteps        int      `json:"more_supervised_steps"`
	HeldOut          int      `json:"held_out_prompts"`
	Sampled          int      `json:"sampled_tokens"`
}

// Experiment runs all repetitions. on hears events, one goroutine at a time.
func Experiment(ctx context.Context, c Config, on func(Event)) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	start := time.Now()
	res := &Result{Seeds: c.Seeds}
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	for i := range c.Seeds {
		r, err := newRepetition(c, i, base, on)
		if err != nil {
			return nil, err
		}
		one, err := r.run(ctx)
		r.gen.Close()
		if err != nil {
			return nil, err
		}
		res.Each = append(res.Each, *one)
	}
	res.Seconds = time.Since(start).Seconds()
	res.join()
	return res, nil
}

func (r *Result) join() {
	var gain, over []float64
	more := 0.0
	for _, x := range r.Each {
		n := float64(len(r.Each))
		r.Supervised, r.GRPO = r.Supervised+x.Supervised/n, r.GRPO+x.GRPO/n
		gain = append(gain, x.GRPO-x.Supervised)
		if x.More != nil {
			more, over = more+*x.More/n, append(over, x.GRPO-*x.More)
		}
	}
	if len(over) > 0 {
		r.More = &more
	}
	r.Gain, r.GainLow, r.GainHigh = Interval(gain)
	r.OverMore, r.OverLow, r.OverHigh = Interval(over)
}

// Interval is the mean with Student's 95 % interval; one value has none, and gets its own.
func Interval(x []float64) (mean, lo, hi float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	if len(x) < 2 {
		return mean, mean, mean
	}
	square := 0.0
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	half := student(len(x)-1) * math.Sqrt(square/(n-1)/n)
	return mean, mean - half, mean + half
}

// student is the 97.5 % point of Student's t with n degrees of freedom: tabled to 10, then Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5),
// which is within 0.001 there.
func student(n int) float64 {
	if table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}; n <= len(table) {
		return table[n-1]
	}
	const z = 1.959964
	v := float64(n)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*v*v*v)
}

// repetition is one seed's way through the experiment.
type repetition struct {
	cfg     Config
	number  int
	problem Problem
	model   model.Config
	base    *Base      // nil: fresh weights
	teacher *teacher   // nil: nothing is supervised
	gen     *Generator // that measures success
	heldOut []tasks.Prompt
	on      func(Event)
	last    [2]float64 // the two last looks of supervision
}

func newRepetition(c Config, number int, base *Base, on func(Event)) (*repetition, error) {
	c.Seed += uint64(number) * 1000
	p, err := NewProblem(c.Task, c.Seed, base)
	if err != nil {
		return nil, err
	}
	e := &repetition{cfg: c, number: number, problem: p, model: c.Model, base: base, on: on}
	if base != nil {
		e.model = base.Model
	}
	if e.model.Vocab == 0 {
		e.model.Vocab = p.Codec.Size()
	}
	e.cfg.Model = e.model
	if c.Supervise.Steps > 0 {
		if e.teacher, err = newTeacher(&e.cfg, p, c.Seed); err != nil {
			return nil, err
		}
	}
	e.heldOut = HeldOut(p.Task, c.Seed, c.Eval.Prompts)
	e.gen, err = NewGenerator(e.model, p.Codec, c.Workers, p.Context)
	return e, err
}

// HeldOut is up to n different held-out prompts of all levels.
func HeldOut(t tasks.Task, seed uint64, n int) (out []tasks.Prompt) {
	seen := map[string]bool{}
	for i := uint64(0); len(out) < n && i < uint64(40*n); i++ {
		p := t.Prompt(tasks.Draw{Seed: seed + 2, Index: i, Level: int(i) % t.Levels(), HeldOut: true})
		if !seen[p.ID] {
			seen[p.ID] = true
			out = append(out, p)
		}
	}
	return out
}

func (e *repetition) tell(v Event) {
	v.Seed = e.number + 1
	if v.Phase == Supervising && v.Success != nil {
		e.last = [2]float64{e.last[1], *v.Success}
	}
	e.on(v)
}

func (e *repetition) run(ctx context.Context) (*Repetition, error) {
	out := &Repetition{Seed: e.cfg.Seed, HeldOut: len(e.heldOut)}
	if e.teacher == nil {
		return out, e.reinforceBase(ctx, out)
	}
	learner, err := e.learner()
	if err != nil {
		return nil, err
	}
	defer learner.Close()
	start := time.Now()
	if _, err = e.teach(ctx, learner, span{phase: Supervising, steps: e.cfg.Supervise.Steps}); err != nil {
		return nil, err
	}
	if out.Supervised, err = e.measure(ctx, Supervising, e.cfg.Supervise.Steps, learner.Weights); err != nil {
		return nil, err
	}
	out.Plateau = e.last[1] - e.last[0]
	out.SuperviseSeconds = time.Since(start).Seconds()
	weights, err := learner.Weights()
	if err != nil {
		return nil, err
	}
	took, err := e.reinforce(ctx, weights, out)
	if err != nil {
		return nil, err
	}
	start = time.Now()
	out.MoreSteps, err = e.teach(ctx, learner, span{phase: SupervisMore, first: e.cfg.Supervise.Steps, time: took})
	if err != nil {
		return nil, err
	}
	out.MoreSeconds = time.Since(start).Seconds()
	more, err := e.measure(ctx, SupervisMore, out.MoreSteps, learner.Weights)
	out.More = &more
	return out, err
}

// learner is that of supervision, with the base's weights or fresh ones.
func (e *repetition) learner() (*Learner, error) {
	var src param.Source
	if e.base != nil {
		src = From(e.base.Weights)
	}
	return NewLearner(LearnerConfig{Model: e.model, Parallel: e.cfg.Parallel, Optim: e.cfg.Supervise.Optim, Rows: e.cfg.Reinforce.Rows, Longest: e.problem.Context, Machine: e.cfg.On}, src, e.cfg.Seed)
}

// reinforceBase is a repetition that begins with somebody's model, unsupervised.
func (e *repetition) reinforceBase(ctx context.Context, out *Repetition) (err error) {
	weights := func() (map[string][]float32, error) { return e.base.Weights, nil }
	if e.base == nil {
		l, err := e.learner()
		if err != nil {
			return err
		}
		w, err := l.Weights()
		if err = errors.Join(err, l.Close()); err != nil {
			return err
		}
		weights = func() (map[string][]float32, error) { return w, nil }
	}
	if out.Supervised, err = e.measure(ctx, Supervising, 0, weights); err != nil {
		return err
	}
	w, err := weights()
	if err == nil {
		_, err = e.reinforce(ctx, w, out)
	}
	return err
}

// base opens the model to start from, if one is named.
func (c *Config) base() (*Base, error) {
	if c.Init == "" {
		return nil, nil
	}
	return OpenBase(c.Init)
}

// reinforce runs GRPO from the supervised weights and tells how long it took; looks at the success do not count.
func (e *repetition) reinforce(ctx context.Context, weights map[string][]float32, out *Repetition) (took time.Duration, err error) {
	t, err := NewTrainer(&e.cfg, e.problem, weights)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	c := e.cfg.Reinforce
	began := time.Now()
	after := func(rep StepReport, _ *Round) error {
		took += time.Since(began)
		defer func() { began = time.Now() }()
		out.Sampled += rep.Bill.Sampled
		v := Event{Phase: Reinforcing, Step: rep.Step, Of: c.Steps, Took: took, Reinforce: &rep}
		if c.EvalEach > 0 && rep.Step%c.EvalEach == 0 && rep.Step < c.Steps {
			var err error
			if v.Success, err = e.success(ctx, t.Weights); err != nil {
				return err
			}
		}
		e.tell(v)
		return nil
	}
	if e.cfg.Staleness.Ahead > 0 {
		err = t.Run(ctx, Run{Steps: c.Steps, On: after})
	}
	for e.cfg.Staleness.Ahead == 0 && err == nil && t.Steps < uint64(c.Steps) { // Run is the same, but would draw while success is measured
		var rep StepReport
		if rep, err = t.Step(ctx); err == nil {
			err = after(rep, nil)
		}
	}
	if err != nil {
		return took, err
	}
	out.GRPOSeconds = took.Seconds()
	out.GRPO, err = e.measure(ctx, Reinforcing, c.Steps, t.Weights)
	return took, err
}

// measure is success at the end of a phase, told to the subscribers.
func (e *repetition) measure(ctx context.Context, p Phase, step int, weights func() (map[string][]float32, error)) (float64, error) {
	s, err := e.success(ctx, weights)
	if err != nil {
		return 0, err
	}
	e.tell(Event{Phase: p, Step: step, Of: step, Success: s})
	return *s, nil
}

// success is the share of completions of held-out prompts that are right. The random numbers are always the same.
func (e *repetition) success(ctx context.Context, weights func() (map[string][]float32, error)) (*float64, error) {
	w, err := weights()
	if err != nil {
		return nil, err
	}
	if err := e.gen.Sync(w, 0); err != nil {
		return nil, err
	}
	d, err := e.gen.Generate(ctx, Draw{Starts: Starts(e.heldOut), Group: e.cfg.Eval.Samples, MaxTokens: e.problem.Tokens, Temperature: 1, Seed: e.cfg.Seed + 3})
	if err != nil {
		return nil, err
	}
	f, err := score(ctx, e.problem.Task, e.problem.Codec, d.Groups, e.cfg.Reinforce.Verifiers)
	if err != nil {
		return nil, err
	}
	right, all := 0, -f.Unscorable
	for _, g := range d.Groups {
		right, all = right+g.Successes(), all+len(g.Rollouts)
	}
	if all == 0 {
		return nil, fmt.Errorf("rl: no held-out completion could be scored: %s", f.First)
	}
	s := float64(right) / float64(all)
	return &s, nil
}
