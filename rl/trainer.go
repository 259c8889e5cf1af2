package rl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"heddle/param"
	"heddle/rl/grpo"
	"heddle/rl/tasks"
	"heddle/sample"
)

// Trainer reinforces a policy: a round of rollouts is drawn, judged and learned from, again and again.
type Trainer struct {
	Steps uint64    // rounds learned from: the version of the weights
	Treat Treatment // nil: none

	cfg     *Config
	problem Problem
	learner *Learner
	gen     *Generator
	ref     *Learner // of the KL term; nil where it has no weight
	resumed *state   // what a checkpoint left to go on with
}

// Problem is a task with what turns its text into ids.
type Problem struct {
	Task    tasks.Task
	Codec   tasks.Codec
	Context int // most tokens of prompt and completion with its end
	Tokens  int // most tokens of a completion with its end
}

// NewProblem makes the task of a seed. The codec is that of the base, or of the task's own symbols where there is none.
func NewProblem(t Task, seed uint64, base *Base) (Problem, error) {
	task, err := t.New(seed)
	if err != nil {
		return Problem{}, err
	}
	prompt, longest := task.Longest()
	if base != nil {
		return Problem{Task: task, Codec: base.Codec, Context: prompt + longest + 1, Tokens: longest + 1}, nil
	}
	if task.Alphabet() == nil {
		return Problem{}, fmt.Errorf("rl: task %s has no alphabet of its own, so that it needs a model with a tokenizer; hint: init=SmolLM2-135M-Instruct", task.Name())
	}
	codec, err := tasks.NewSymbols(task.Alphabet())
	if err != nil {
		return Problem{}, err
	}
	return Problem{Task: task, Codec: codec, Context: prompt + longest + 1, Tokens: longest + 1}, nil
}

// Round is the rollouts of one step.
type Round struct {
	Index   uint64      `json:"index"`
	Groups  []*Group    `json:"groups"`
	Bill    sample.Bill `json:"bill"`
	Faults  Faults      `json:"faults"`
	TooLong int         `json:"too_long"` // prompts left out
	Draws   int         `json:"draws"`
	Equal   int         `json:"equal"` // groups that dynamic sampling threw away
}

// StepReport is what one step did.
type StepReport struct {
	Step     int          `json:"step"`
	Metrics  grpo.Metrics `json:"metrics"`
	Counts   grpo.Counts  `json:"counts"`
	Stale    StaleCounts  `json:"staleness"`
	GradNorm float64      `json:"grad_norm"`
	Entropy  float64      `json:"entropy"` // mean of the tokens', nats
	Length   float64      `json:"length"`  // mean tokens of a completion
	Bill     sample.Bill  `json:"bill"`
	Faults   Faults       `json:"faults"`
	TooLong  int          `json:"too_long"`
	Draws    int          `json:"draws"`
	Equal    int          `json:"equal"`
}

// Treatment acts on rollouts before they are judged and learned from: it may replace them, or add some to their groups. again draws more, with streams that
// no other draw of the run has; every token that it drew belongs on the bill of d.
type Treatment func(ctx context.Context, d *Drawn, again func(context.Context, Draw) (*Drawn, error)) error

// NewTrainer starts from weights; the optimiser is fresh. Close it.
func NewTrainer(c *Config, p Problem, weights map[string][]float32) (*Trainer, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	m := c.Model
	if m.Vocab == 0 {
		m.Vocab = p.Codec.Size()
	}
	t := &Trainer{cfg: c, problem: p}
	start := func(src param.Source) (*Learner, error) {
		return NewLearner(LearnerConfig{Model: m, Parallel: c.Parallel, Optim: c.Reinforce.Optim, Rows: c.Reinforce.Rows, Longest: p.Context, Machine: c.On}, src, c.Seed)
	}
	var err error
	if t.learner, err = start(From(weights)); err != nil {
		return nil, err
	}
	if c.Reinforce.Loss.KL > 0 {
		if t.ref, err = start(From(weights)); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	if t.gen, err = NewGenerator(m, p.Codec, c.Workers, p.Context); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, t.gen.Sync(weights, 0)
}

// Close ends what the trainer started.
func (t *Trainer) Close() error {
	var errs []error
	for _, l := range []*Learner{t.learner, t.ref} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if t.gen != nil {
		t.gen.Close()
	}
	return errors.Join(errs...)
}

// Weights are the policy's.
func (t *Trainer) Weights() (map[string][]float32, error) { return t.learner.Weights() }

// Step is one synchronous round.
func (t *Trainer) Step(ctx context.Context) (StepReport, error) {
	if t.gen.Version != t.Steps {
		w, err := t.learner.Weights()
		if err != nil {
			return StepReport{}, err
		}
		if err := t.gen.Sync(w, t.Steps); err != nil {
			return StepReport{}, err
		}
	}
	r, err := t.draw(ctx, t.Steps, nil)
	if err != nil {
		return StepReport{}, err
	}
	return t.learn(r)
}

// treated is beyond the streams of all rounds.
const treated = 1 << 48

// attempts is how often a round is drawn anew when generation fails.
const attempts = 3

// draw makes a round: prompts of all levels, groups of completions, verdicts. With dynamic sampling it draws until there are enough groups of mixed rewards.
// between is called before each token.
func (t *Trainer) draw(ctx context.Context, index uint64, between func() error) (*Round, error) {
	c := t.cfg.Reinforce
	r := &Round{Index: index}
	for r.Draws < c.Resample && len(r.Groups) < c.Prompts {
		first := (index*uint64(c.Resample) + uint64(r.Draws)) * uint64(c.Prompts)
		drawn, err := t.drawOnce(ctx, first, between)
		if err != nil {
			return nil, err
		}
		faults, err := score(ctx, t.problem.Task, t.problem.Codec, drawn.Groups, c.Verifiers)
		if err != nil {
			return nil, err
		}
		r.Draws++
		addBill(&r.Bill, drawn.Bill)
		r.TooLong += drawn.TooLong
		if r.Faults.Unscorable += faults.Unscorable; r.Faults.First == "" {
			r.Faults.First = faults.First
		}
		for _, g := range drawn.Groups {
			switch {
			case c.Resample > 1 && !g.mixed():
				r.Equal++
			case len(r.Groups) < c.Prompts:
				r.Groups = append(r.Groups, g)
			}
		}
	}
	return r, nil
}

func (t *Trainer) drawOnce(ctx context.Context, first uint64, between func() error) (drawn *Drawn, err error) {
	c := t.cfg.Reinforce
	d := Draw{Streams: first * uint64(c.Group), Group: c.Group, MaxTokens: t.problem.Tokens, Temperature: c.Temperature, Seed: t.cfg.Seed, Between: between}
	levels := t.problem.Task.Levels()
	for i := range uint64(c.Prompts) {
		d.Starts = append(d.Starts, Start{Prompt: t.problem.Task.Prompt(tasks.Draw{Seed: t.cfg.Seed, Index: first + i, Level: int(first+i) % levels})})
	}
	for range attempts {
		if drawn, err = t.gen.Generate(ctx, d); err == nil && t.Treat != nil {
			err = t.Treat(ctx, drawn, func(ctx context.Context, more Draw) (*Drawn, error) {
				more.Streams, more.MaxTokens, more.Seed, more.Between = treated+d.Streams, d.MaxTokens, d.Seed, between
				return t.gen.Generate(ctx, more)
			})
		}
		if err == nil || ctx.Err() != nil {
			return drawn, err
		}
	}
	return nil, fmt.Errorf("rl: generation failed %d times: %w", attempts, err)
}

// mixed tells whether the group's scored rewards differ.
func (g *Group) mixed() bool {
	var seen []float64
	for _, r := range g.Rollouts {
		if r.Scored {
			seen = append(seen, r.Reward)
		}
	}
	return len(seen) > 1 && slices.Min(seen) < slices.Max(seen)
}

// learn takes the steps of one round.
func (t *Trainer) learn(r *Round) (StepReport, error) {
	c := t.cfg.Reinforce
	rep := StepReport{Bill: r.Bill, Faults: r.Faults, TooLong: r.TooLong, Draws: r.Draws, Equal: r.Equal}
	groups, stale := samples(r.Groups, t.Steps, t.cfg.Staleness)
	rep.Stale = stale
	if err := t.measure(r, groups); err != nil {
		return rep, err
	}
	batch := grpo.Advantages(c.Loss, groups)
	rep.Counts = batch.Counts
	rep.Counts.Empty -= stale.Dropped // they are, by now
	rows := make([]row, len(batch.Rows))
	for i, x := range batch.Rows {
		rows[i] = r.Groups[x.Group].row(x.Sample)
	}
	for range c.Epochs {
		m, norm, err := t.learner.Reinforce(rows, batch, c.LR)
		if err != nil {
			return rep, err
		}
		rep.Metrics, rep.GradNorm = m, norm
	}
	t.Steps++
	rep.Step = int(t.Steps)
	rep.describe(r)
	return rep, nil
}

// row is a rollout as a sequence to learn from.
func (g *Group) row(i int) row {
	ids := slices.Clone(g.IDs)
	for _, x := range g.Rollouts[i].Tokens {
		ids = append(ids, x.ID)
	}
	return row{ids, len(g.IDs)}
}

// measure asks the learner for the log-probabilities that the update starts from, where rollouts may be older, and the reference for its own.
func (t *Trainer) measure(r *Round, groups []grpo.Group) error {
	for _, x := range []struct {
		of  *Learner
		set func(*grpo.Token, float64)
	}{{t.learner, func(k *grpo.Token, lp float64) { k.Proximal = lp }}, {t.ref, func(k *grpo.Token, lp float64) { k.Ref = lp }}} {
		if x.of == nil || x.of == t.learner && t.cfg.Reinforce.Loss.ImportanceCap == 0 {
			continue
		}
		var rows []row
		var tokens [][]grpo.Token
		for i, g := range groups {
			for k, s := range g {
				if len(s.Tokens) > 0 {
					rows, tokens = append(rows, r.Groups[i].row(k)), append(tokens, s.Tokens)
				}
			}
		}
		lp, err := x.of.LogProbs(rows)
		if err != nil {
			return err
		}
		for i := range tokens {
			for k := range tokens[i] {
				x.set(&tokens[i][k], lp[i][k])
			}
		}
	}
	return nil
}

func (s *StepReport) describe(r *Round) {
	tokens, rollouts := 0, 0
	for _, g := range r.Groups {
		for _, x := range g.Rollouts {
			rollouts++
			tokens += len(x.Tokens)
			for _, k := range x.Tokens {
				s.Entropy += k.Entropy
			}
		}
	}
	s.Entropy /= float64(max(1, tokens))
	s.Length = float64(tokens) / float64(max(1, rollouts))
}
