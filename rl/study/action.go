package study

import (
	"context"
	"fmt"
	"math/rand/v2"

	"heddle/rl"
	"heddle/rl/tasks"
)

// Action is what is done to a rollout when its trigger fires after n tokens.
type Action string

const (
	Nothing     Action = "nothing"         // the sham: the rollout is cut and goes on with the same random numbers
	Restart     Action = "restart"         // from the prompt, with new random numbers
	ForkCut     Action = "fork at cut"     // the last token is drawn anew, and what follows
	ForkEntropy Action = "fork at entropy" // the same from the token of highest entropy so far
	ForkRandom  Action = "fork at random"  // from any token so far
	Cooler      Action = "temperature 0.5" // go on from here, cooler
	Hotter      Action = "temperature 1.5" // or hotter
	Stop        Action = "stop"            // give up: what it would have cost is saved
)

// actions are those of the grid. Hints are missing: a model that was trained from scratch on a task's symbols has no words to be hinted with.
func actions() []Action {
	return []Action{Restart, ForkCut, ForkEntropy, ForkRandom, Cooler, Hotter, Stop}
}

// keep is how many of the trace's first n tokens an action keeps, and at which temperature it goes on.
func (a Action) keep(t *Trace, n int, r *rand.Rand) (keep int, temperature float64) {
	switch a {
	case Restart:
		return 0, 1
	case ForkCut:
		return n - 1, 1
	case ForkEntropy:
		best := 0
		for k := range n {
			if t.Entropy[k] > t.Entropy[best] {
				best = k
			}
		}
		return best, 1
	case ForkRandom:
		return r.IntN(n), 1
	case Cooler:
		return n, 0.5
	case Hotter:
		return n, 1.5
	}
	return n, 1
}

// branch is one continuation of a trace that fired.
type branch struct {
	right   bool
	sampled int    // tokens drawn for it
	trace   *Trace // whole, prefix and continuation; what scores of selection read
}

// grid draws what actions lead to.
type grid struct {
	world   World
	prompts []tasks.Prompt
	seed    uint64 // of the rollouts
	fresh   uint64 // first stream that no rollout has
}

// act draws branches continuations of every trace that fired, in one call a temperature. Streams depend on the trace and the branch alone, so that arms share
// random numbers. A trace that did not fire has none; Stop has branches without a trace.
func (g *grid) act(ctx context.Context, a Action, f fires, traces []*Trace, branches int) ([][]branch, error) {
	out := make([][]branch, len(traces))
	type job struct{ trace, keep int }
	var jobs []job
	d := rl.Draw{Group: branches, Seed: g.seed, Top: likeliest}
	r := rand.New(rand.NewPCG(g.seed, 99))
	for i, t := range traces {
		at := f[i]
		if at == never {
			continue
		}
		if a == Stop {
			out[i] = make([]branch, 1)
			continue
		}
		keep, temperature := a.keep(t, min(at, t.Len()), r)
		d.Temperature = temperature
		if keep >= t.Len() { // the trace has ended: there is nothing to go on with
			out[i] = []branch{{t.Right, 0, t}}
			continue
		}
		s := rl.Start{Prompt: g.prompts[t.Prompt], Prefix: t.IDs[:keep]}
		for b := range branches {
			stream := g.fresh + uint64(i*64+b)
			if a == Nothing {
				stream = t.Stream
			}
			s.Streams = append(s.Streams, stream)
		}
		jobs, d.Starts = append(jobs, job{i, keep}), append(d.Starts, s)
	}
	if len(jobs) == 0 {
		return out, nil
	}
	drawn, err := g.world.Draw(ctx, d)
	if err != nil {
		return nil, err
	}
	if len(drawn.Groups) != len(jobs) {
		return nil, fmt.Errorf("study: %d groups of %d starts", len(drawn.Groups), len(jobs))
	}
	for k, j := range jobs {
		for _, x := range drawn.Groups[k].Rollouts {
			b := branch{x.Succeeded(), len(x.Tokens), joined(traces[j.trace], j.keep, x)}
			out[j.trace] = append(out[j.trace], b)
		}
	}
	return out, nil
}

// joined is the first keep tokens of a trace and a continuation.
func joined(t *Trace, keep int, r *rl.Rollout) *Trace {
	c := newTrace(r)
	return &Trace{Prompt: t.Prompt, Level: t.Level, Right: c.Right, Lost: c.Lost,
		IDs:     append(append([]int32(nil), t.IDs[:keep]...), c.IDs...),
		LogProb: append(append([]float64(nil), t.LogProb[:keep]...), c.LogProb...),
		Entropy: append(append([]float64(nil), t.Entropy[:keep]...), c.Entropy...),
		Top:     append(append([]float64(nil), t.Top[:keep]...), c.Top...)}
}

// Arm is one cell of the grid: a trigger, an action, and how one branch is chosen where there are several. Gains are over the control, by intention to treat:
// all rollouts count, those that did not fire with a gain of 0.
type Arm struct {
	Trigger  string   `json:"trigger"`
	Action   Action   `json:"action"`
	Branches int      `json:"branches"`
	Choice   string   `json:"choice,omitempty"`
	Fired    float64  `json:"fired"`
	Success  float64  `json:"success"`
	Gain     Estimate `json:"gain"`
	OnFired  float64  `json:"gain_on_fired"` // gain ÷ fired: the effect on those acted on
	P        float64  `json:"p"`
	Holm     float64  `json:"p_holm"`
	Extra    float64  `json:"extra_tokens"`       // a rollout, over the control; negative: saved
	Relative float64  `json:"extra_relative"`     // to the control's tokens
	Expected *float64 `json:"expected,omitempty"` // gain by enumeration, where it can be had

	gains []float64 // a prompt
}

// Name is "trigger / action", with the choice.
func (a *Arm) Name() string {
	if a.Branches > 1 {
		return fmt.Sprintf("%s / %s ×%d by %s", a.Trigger, a.Action, a.Branches, a.Choice)
	}
	return a.Trigger + " / " + string(a.Action)
}

// choose picks one of a trace's branches; nil: the first.
type choose func([]branch) int

// settle makes an arm from what was drawn.
func settle(a Arm, f fires, traces []*Trace, out [][]branch, pick choose, boot int, seed uint64) *Arm {
	index := map[int]int{}
	var gain, weight []float64
	tokens, extra, success := 0.0, 0.0, 0.0
	for i, t := range traces {
		k, ok := index[t.Prompt]
		if !ok {
			k = len(gain)
			index[t.Prompt] = k
			gain, weight = append(gain, 0), append(weight, 0)
		}
		weight[k]++
		tokens += float64(t.Len())
		y := truth(t)
		if list := out[i]; len(list) > 0 {
			at := 0
			if pick != nil && len(list) > 1 {
				at = pick(list)
			}
			after := 0.0
			if list[at].right {
				after = 1
			}
			gain[k] += after - y
			y = after
			extra += float64(min(f[i], t.Len()) - t.Len())
			for _, b := range list {
				extra += float64(b.sampled)
			}
		}
		success += y
	}
	for k := range gain {
		gain[k] /= weight[k]
	}
	n := float64(max(1, len(traces)))
	a.Fired, a.Success, a.Extra, a.Relative = f.rate(), success/n, extra/n, extra/max(1, tokens)
	a.Gain = bootstrap(len(gain), boot, seed, meanOf(gain, weight))
	if a.Fired > 0 {
		a.OnFired = a.Gain.Value / a.Fired
	}
	a.P, a.gains = twoSided(gain, weight), gain
	return &a
}

// expected is the gain of an action that enumeration gives: on every trace that fired, the value of the prefix kept less what the trace came to. It is for
// actions that go on at temperature 1.
func expected(a Action, f fires, traces []*Trace) (gain float64, ok bool) {
	if a != Restart && a != ForkCut && a != ForkEntropy || len(traces) == 0 {
		return 0, false
	}
	for i, t := range traces {
		if t.Value == nil {
			return 0, false
		}
		if f[i] != never {
			keep, _ := a.keep(t, min(f[i], t.Len()), nil)
			gain += t.Value[keep] - truth(t)
		}
	}
	return gain / float64(len(traces)), true
}
