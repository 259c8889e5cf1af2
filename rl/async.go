package rl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"heddle/checkpoint"
)

// Run says how far to train asynchronously, and what with. Generation runs up to Staleness.Ahead rounds ahead in a goroutine of its own. With Ahead 0 a round begins when the one
// before has been learned from: the run is that of Step, bit for bit.
//
// Rounds are learned from in the order in which they began. A round may begin when its number is at most the version of the weights plus Ahead, so that the
// queue holds at most Ahead + 1 rounds and no token is older than Ahead versions.
type Run struct {
	Steps int
	Seed  uint64                         // not 0: the two sides take turns drawn from it, instead of running at once
	On    func(StepReport, *Round) error // after each step; its error ends the run
	Keep  *checkpoint.Store              // where checkpoints go; nil: nowhere
	Meta  checkpoint.Meta                // of them, but for step and state
	draw  *rand.PCG
}

// pipeline is a run under way. Everything below is guarded by turns.
type pipeline struct {
	*Trainer
	run   Run
	turns *turns

	queue  []*Round // drawn and judged
	next   uint64   // round that begins next
	busy   bool     // a round is being drawn
	hold   bool     // no round may begin
	over   bool     // no more rounds are wanted
	failed error    // of generation
	latest weights
}

// weights are the newest that learning has published.
type weights struct {
	values  map[string][]float32
	version uint64
}

// Run trains.
func (t *Trainer) Run(ctx context.Context, r Run) error {
	p, err := t.pipeline(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { p.turns.change(func() { p.over = true }) })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.turns.leave(generating)
		if err := p.generate(ctx); err != nil {
			p.turns.change(func() { p.failed = err })
		}
	}()
	err = p.learnAll(ctx)
	cancel()
	p.turns.change(func() { p.over = true })
	p.turns.leave(learning)
	<-done
	return err
}

func (t *Trainer) pipeline(r Run) (*pipeline, error) {
	if r.Seed != 0 && r.draw == nil {
		r.draw = rand.NewPCG(r.Seed, 1)
	}
	if t.resumed != nil {
		r.draw = t.resumed.draw(r.draw)
	}
	p := &pipeline{Trainer: t, run: r, turns: newTurns(r.draw), next: t.Steps}
	if s := t.resumed; s != nil {
		p.queue, p.next = s.Queue, s.Next
		t.resumed = nil
	}
	w, err := t.learner.Weights()
	p.latest = weights{w, t.Steps}
	return p, err
}

// generate is the generating side.
func (p *pipeline) generate(ctx context.Context) error {
	for {
		var index uint64
		var w weights
		begin := false
		p.turns.wait(generating, func() bool {
			return p.over || !p.hold && p.next < uint64(p.run.Steps) && p.next <= p.latest.version+uint64(p.cfg.Staleness.Ahead)
		}, func() {
			if begin = !p.over; begin {
				index, w, p.busy = p.next, p.latest, true
				p.next++
			}
		})
		if !begin {
			return nil
		}
		if err := p.take(w); err != nil {
			return err
		}
		r, err := p.Trainer.draw(ctx, index, p.between)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		p.turns.change(func() { p.queue, p.busy = append(p.queue, r), false }) // no yield: a side that is not busy stands where a resumed one begins
	}
}

// take loads weights unless they are loaded.
func (p *pipeline) take(w weights) error {
	if w.version == p.gen.Version {
		return nil
	}
	return p.gen.Sync(w.values, w.version)
}

// between is called before each token.
func (p *pipeline) between() error {
	p.turns.yield(generating)
	if p.cfg.Staleness.Sync != InFlight {
		return nil
	}
	var w weights
	p.turns.change(func() { w = p.latest })
	return p.take(w)
}

// learnAll is the learning side.
func (p *pipeline) learnAll(ctx context.Context) error {
	for p.Steps < uint64(p.run.Steps) {
		var r *Round
		p.turns.wait(learning, func() bool { return len(p.queue) > 0 || p.failed != nil || p.over }, func() {
			if len(p.queue) > 0 && !p.over && p.failed == nil {
				r, p.queue = p.queue[0], p.queue[1:]
			}
		})
		if r == nil {
			if p.failed != nil {
				return p.failed
			}
			return ctx.Err()
		}
		rep, err := p.learn(r)
		if err != nil {
			return err
		}
		w, err := p.learner.Weights()
		if err != nil {
			return err
		}
		p.turns.yield(learning) // learning takes time, in which rounds begin with the weights before
		p.turns.change(func() { p.latest = weights{w, p.Steps} })
		if p.run.On != nil {
			if err := p.run.On(rep, r); err != nil {
				return err
			}
		}
		if each := uint64(p.cfg.Reinforce.SaveEvery); p.run.Keep != nil && each > 0 && p.Steps%each == 0 {
			if err := p.save(ctx); err != nil {
				return fmt.Errorf("rl: checkpoint of step %d: %w", p.Steps, err)
			}
		}
	}
	return nil
}

// save lets the round under way end, then writes weights, moments and what is queued. No round begins meanwhile.
func (p *pipeline) save(ctx context.Context) error {
	p.turns.change(func() { p.hold = true })
	var s state
	p.turns.wait(learning, func() bool { return !p.busy || p.failed != nil || p.over }, func() {
		s = state{Steps: p.Steps, Updates: p.learner.Updates, Next: p.next, Queue: slices.Clone(p.queue), pcg: p.turns.draw}
	})
	if p.failed != nil {
		return p.failed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := p.Trainer.save(*p.run.Keep, p.run.Meta, s)
	p.turns.change(func() { p.hold = false })
	return err
}
