package rl

import (
	"context"

	"heddle/model"
	"heddle/rl/tasks"
)

// Policy is a model that has been taught, ready to draw from: what the study holds still.
type Policy struct {
	Problem Problem
	Model   model.Config
	HeldOut []tasks.Prompt
	Weights map[string][]float32
	Success float64 // on held-out prompts

	cfg Config
	gen *Generator
}

// Teach supervises the policy of the first repetition.
func Teach(ctx context.Context, c Config, on func(Event)) (*Policy, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	e, err := newRepetition(c, 0, base, on)
	if err != nil {
		return nil, err
	}
	p, err := e.policy(ctx)
	if err != nil {
		e.gen.Close()
	}
	return p, err
}

func (e *repetition) policy(ctx context.Context) (*Policy, error) {
	learner, err := e.learner()
	if err != nil {
		return nil, err
	}
	defer learner.Close()
	if e.teacher != nil {
		if _, err := e.teach(ctx, learner, span{phase: Supervising, steps: e.cfg.Supervise.Steps}); err != nil {
			return nil, err
		}
	}
	p := &Policy{Problem: e.problem, Model: e.model, HeldOut: e.heldOut, cfg: e.cfg, gen: e.gen}
	if p.Success, err = e.measure(ctx, Supervising, e.cfg.Supervise.Steps, learner.Weights); err != nil {
		return nil, err
	}
	if p.Weights, err = learner.Weights(); err != nil {
		return nil, err
	}
	return p, p.gen.Sync(p.Weights, 0)
}

// Close ends the generator.
func (p *Policy) Close() { p.gen.Close() }

// Use draws from other weights of the same model from now on: a later version of the policy.
func (p *Policy) Use(weights map[string][]float32, version uint64) error {
	p.Weights = weights
	return p.gen.Sync(weights, version)
}

// Rollouts draws and judges a group for each prompt.
func (p *Policy) Rollouts(ctx context.Context, prompts []tasks.Prompt, group int) ([]*Group, error) {
	d, err := p.Draw(ctx, Draw{Starts: Starts(prompts), Group: group, Seed: p.cfg.Seed + 4})
	if err != nil {
		return nil, err
	}
	return d.Groups, nil
}

// Draw draws and judges. A start's prefix is part of the completion that is judged. Temperature 0 stands for 1, MaxTokens 0 for what the task needs.
func (p *Policy) Draw(ctx context.Context, d Draw) (*Drawn, error) {
	if d.Temperature == 0 {
		d.Temperature = 1
	}
	d.MaxTokens = p.Problem.Tokens
	out, err := p.gen.Generate(ctx, d)
	if err != nil {
		return nil, err
	}
	_, err = score(ctx, p.Problem.Task, p.Problem.Codec, out.Groups, max(1, p.cfg.Reinforce.Verifiers))
	return out, err
}

// Trainer reinforces the policy from where it stands, under another configuration of reinforcement where c is not nil. Close it.
func (p *Policy) Trainer(c *Reinforce) (*Trainer, error) {
	cfg := p.cfg
	if c != nil {
		cfg.Reinforce = *c
	}
	return NewTrainer(&cfg, p.Problem, p.Weights)
}

// Config is the policy's.
func (p *Policy) Config() Config { return p.cfg }

// Measure is the success of weights on held-out prompts.
func (p *Policy) Measure(ctx context.Context, weights map[string][]float32) (float64, error) {
	before, version := p.Weights, p.gen.Version
	if err := p.Use(weights, version+1); err != nil {
		return 0, err
	}
	d, err := p.Draw(ctx, Draw{Starts: Starts(p.HeldOut), Group: p.cfg.Eval.Samples, Seed: p.cfg.Seed + 3})
	if err != nil {
		return 0, err
	}
	right, all := 0, 0
	for _, g := range d.Groups {
		right, all = right+g.Successes(), all+len(g.Rollouts)
	}
	return float64(right) / float64(max(1, all)), p.Use(before, version)
}

// Prompts are n that the policy may learn from: none is held out.
func (p *Policy) Prompts(n int) (out []tasks.Prompt) {
	seen := map[string]bool{}
	for i := uint64(0); len(out) < n && i < uint64(40*n); i++ {
		q := p.Problem.Task.Prompt(tasks.Draw{Seed: p.cfg.Seed + 5, Index: i, Level: int(i) % p.Problem.Task.Levels()})
		if !seen[q.ID] {
			seen[q.ID] = true
			out = append(out, q)
		}
	}
	return out
}

// Reinforce lets the policy learn for some steps: what is drawn from then on is a later version's.
func (p *Policy) Reinforce(ctx context.Context, steps int) error {
	t, err := p.Trainer(nil)
	if err != nil {
		return err
	}
	defer t.Close()
	for range steps {
		if _, err := t.Step(ctx); err != nil {
			return err
		}
	}
	w, err := t.Weights()
	if err != nil {
		return err
	}
	return p.Use(w, t.Steps)
}
