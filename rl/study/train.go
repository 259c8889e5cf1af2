package study

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"heddle/rl"
)

// Training is the second phase: policies trained with each arm from the same taught weights, over seeds, until equal numbers of tokens have been drawn. What is
// measured is the policy alone, held out, with no trigger at work.
type Training struct {
	Tokens int         `json:"tokens"` // drawn by each arm
	Seeds  int         `json:"seeds"`
	Before float64     `json:"success_before"`
	Arms   []*TrainArm `json:"arms"`
}

// TrainArm is one way of training.
type TrainArm struct {
	Name    string     `json:"name"`
	Success float64    `json:"success"`
	Over    Estimate   `json:"over_grpo"` // paired by seed, Student's t
	Fired   float64    `json:"fired"`     // share of rollouts treated
	Each    []TrainRun `json:"each"`
}

// TrainRun is one seed's.
type TrainRun struct {
	Success float64      `json:"success"`
	Steps   int          `json:"steps"`
	Tokens  int          `json:"tokens"`
	Seconds float64      `json:"seconds"`
	Curve   []TrainPoint `json:"curve"`
}

// TrainPoint is a look at the held-out success on the way.
type TrainPoint struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
	Success float64 `json:"success"`
}

// looks is how often the held-out success is measured on the way.
const looks = 4

// recipe is how an arm differs from GRPO.
type recipe struct {
	name   string
	change func(*rl.Reinforce)
	act    Action // of a treatment; empty: none
	tree   bool   // branches are added to their group instead of replacing
	random bool   // the trigger's firings are permuted among the round's rollouts
}

func recipes() []recipe {
	return []recipe{
		{name: "GRPO"},
		{name: "GRPO, groups twice as large", change: func(r *rl.Reinforce) { r.Group *= 2 }},
		{name: "dynamic sampling", change: func(r *rl.Reinforce) { r.Resample, r.Loss.DropEqual = 3, true }},
		{name: "top 20 % entropy", change: func(r *rl.Reinforce) { r.Loss.TopEntropy = 0.2 }},
		{name: "restart where entropy fires", act: Restart},
		{name: "restart at random", act: Restart, random: true},
		{name: "fork at entropy", act: ForkEntropy},
		{name: "tree: forks at entropy, all trained", act: ForkEntropy, tree: true},
	}
}

// Train runs every arm on one taught policy and adds a seed to out.
func (out *Training) Train(ctx context.Context, c Config, p *rl.Policy, talk func(string, ...any)) error {
	traces, _, err := capture(ctx, p, p.Prompts(len(p.HeldOut)), rl.Draw{Group: c.Group, Seed: c.Seed + 9}, 0)
	if err != nil {
		return err
	}
	v := view{p.Problem.Task.Levels(), window(c.Window)}
	trigger := calibrate(v.fit(Entropy, traces), traces, c.FalseAlarms)
	for i, x := range recipes() {
		run, fired, err := out.arm(ctx, c, p, x, trigger)
		if err != nil {
			return fmt.Errorf("study: training %s: %w", x.name, err)
		}
		if len(out.Arms) <= i {
			out.Arms = append(out.Arms, &TrainArm{Name: x.name})
		}
		a := out.Arms[i]
		a.Each, a.Fired = append(a.Each, run), a.Fired+fired
		talk("seed %d  %-36s %.1f %% after %d steps, %d tokens, %.0f s\n", out.Seeds+1, x.name, 100*run.Success, run.Steps, run.Tokens, run.Seconds)
	}
	out.Before += p.Success
	out.Seeds++
	return nil
}

func (out *Training) arm(ctx context.Context, c Config, p *rl.Policy, x recipe, trigger threshold) (run TrainRun, fired float64, err error) {
	r := p.Config().Reinforce
	if x.change != nil {
		x.change(&r)
	}
	t, err := p.Trainer(&r)
	if err != nil {
		return run, 0, err
	}
	defer t.Close()
	tr := &treatment{recipe: x, trigger: trigger, r: rand.New(rand.NewPCG(c.Seed, 123))}
	if x.act != "" {
		t.Treat = tr.apply
	}
	var took time.Duration
	for look := 1; run.Tokens < out.Tokens; {
		start := time.Now()
		rep, err := t.Step(ctx)
		if err != nil {
			return run, 0, err
		}
		took += time.Since(start)
		run.Steps++
		run.Tokens += rep.Bill.Sampled
		if run.Tokens*looks >= look*out.Tokens {
			w, err := t.Weights()
			if err != nil {
				return run, 0, err
			}
			if run.Success, err = p.Measure(ctx, w); err != nil {
				return run, 0, err
			}
			run.Curve = append(run.Curve, TrainPoint{run.Tokens, took.Seconds(), run.Success})
			look = run.Tokens*looks/out.Tokens + 1
		}
	}
	run.Seconds = took.Seconds()
	return run, tr.rate(), nil
}

// treatment is an action inside training: rollouts of a round that fire are replaced, or joined, by what the action draws.
type treatment struct {
	recipe
	trigger      threshold
	r            *rand.Rand
	fired, drawn int
}

func (tr *treatment) rate() float64 { return float64(tr.fired) / float64(max(1, tr.drawn)) }

// apply is an rl.Treatment. The tokens that a rollout shares with the one it replaces were drawn by this policy too, so that they are trained on like the rest.
func (tr *treatment) apply(ctx context.Context, d *rl.Drawn, again func(context.Context, rl.Draw) (*rl.Drawn, error)) error {
	type place struct{ group, rollout, keep, cut int }
	var places []place
	var traces []*Trace
	var at []place
	for gi, g := range d.Groups {
		for ri, r := range g.Rollouts {
			if len(r.Tokens) > 0 {
				t := newTrace(r)
				t.Prompt, t.Level = gi, g.Prompt.Level
				traces, at = append(traces, t), append(at, place{group: gi, rollout: ri})
			}
		}
	}
	f := tr.trigger.all(traces)
	if tr.random {
		f = permuted(f, traces, false, tr.r)
	}
	more := rl.Draw{Group: 1, Temperature: 1}
	for i, t := range traces {
		tr.drawn++
		if f[i] == never {
			continue
		}
		tr.fired++
		keep, _ := tr.act.keep(t, f[i], tr.r)
		at[i].keep, at[i].cut = keep, min(f[i], t.Len())
		places, more.Starts = append(places, at[i]), append(more.Starts, rl.Start{Prompt: d.Groups[at[i].group].Prompt, Prefix: t.IDs[:keep]})
	}
	if len(places) == 0 {
		return nil
	}
	drawn, err := again(ctx, more)
	if err != nil {
		return err
	}
	d.Bill.Sampled += drawn.Bill.Sampled
	for k, x := range places {
		g := d.Groups[x.group]
		old, fresh := g.Rollouts[x.rollout], drawn.Groups[k].Rollouts[0]
		whole := *fresh
		whole.Tokens = append(append(whole.Tokens[:0:0], old.Tokens[:x.keep]...), fresh.Tokens...)
		if tr.tree {
			g.Rollouts = append(g.Rollouts, &whole)
			continue
		}
		d.Bill.Sampled -= len(old.Tokens) - x.cut // a server would have cut there
		g.Rollouts[x.rollout] = &whole
	}
	return nil
}

// Finish compares arms with the first, seed by seed.
func (out *Training) Finish() {
	if out.Seeds == 0 {
		return
	}
	out.Before /= float64(out.Seeds)
	for _, a := range out.Arms {
		var diff []float64
		a.Fired /= float64(out.Seeds)
		for i, run := range a.Each {
			a.Success += run.Success / float64(out.Seeds)
			diff = append(diff, run.Success-out.Arms[0].Each[i].Success)
		}
		a.Over.Value, a.Over.Low, a.Over.High = rl.Interval(diff)
	}
}

// answer says what training with the arms came to.
func (out *Training) answer(say func(string, ...any)) {
	text := ""
	for _, a := range out.Arms[1:] {
		text += fmt.Sprintf("; %s %+.1f (%+.1f to %+.1f)", a.Name, 100*a.Over.Value, 100*a.Over.Low, 100*a.Over.High)
	}
	say("Does training with it help the policy alone? After %d tokens GRPO takes held-out success from %.1f to %.1f %%. Over GRPO, in points, 95 %% intervals over %d seeds%s.", out.Tokens, 100*out.Before, 100*out.Arms[0].Success, out.Seeds, text)
}
