package study

import (
	"context"
	"math"
	"sync"

	"heddle/rl"
	"heddle/rl/tasks"
	"heddle/sample"
)

// World draws completions and has them judged. A taught policy is one; tests plant others.
type World interface {
	Draw(context.Context, rl.Draw) (*rl.Drawn, error)
}

// Trace is a rollout as the study sees it. Token k has what was known when it was drawn.
type Trace struct {
	Prompt    int // index of the prompt
	Level     int
	IDs       []int32
	Stream    uint64
	Right     bool
	Truncated bool // cut off at its greatest length
	Lost      int  // token at which it was lost; tasks.Kept: nowhere
	LogProb   []float64
	Entropy   []float64   // of the whole vocabulary, nats
	Top       []float64   // of the likeliest Top tokens renormalised, as serving engines give it
	Hidden    [][]float32 // [token][H]; nil where the world has none
	Value     []float64   // exact chance of success before token k, and after the last: [len+1]; nil where it cannot be had
}

// Len is the number of tokens.
func (t *Trace) Len() int { return len(t.IDs) }

// likeliest is how many tokens Trace.Top is of.
const likeliest = 3

// capture draws group rollouts of each prompt, with traces. Unscorable rollouts are left out and counted.
func capture(ctx context.Context, w World, prompts []tasks.Prompt, d rl.Draw, hidden int) (traces []*Trace, unscorable int, err error) {
	var mu sync.Mutex
	states := map[*sample.Token][][]float32{} // by the first token's place, which a sequence keeps once it has ended
	growing := map[*sample.Sequence][][]float32{}
	d.Starts, d.Top, d.Hidden = rl.Starts(prompts), likeliest, hidden
	if hidden > 0 {
		d.Hook = func(_ *rl.Group, s *sample.State) sample.Action {
			mu.Lock()
			defer mu.Unlock()
			growing[s.Sequence] = append(growing[s.Sequence], append([]float32(nil), s.Hidden...))
			if s.Sequence.End != sample.Running {
				states[&s.Sequence.Tokens[0]] = growing[s.Sequence]
				delete(growing, s.Sequence)
			}
			return sample.Action{}
		}
	}
	drawn, err := w.Draw(ctx, d)
	if err != nil {
		return nil, 0, err
	}
	index := map[string]int{}
	for i, p := range prompts {
		index[p.ID] = i
	}
	for _, g := range drawn.Groups {
		for _, r := range g.Rollouts {
			if !r.Scored || len(r.Tokens) == 0 {
				unscorable++
				continue
			}
			t := newTrace(r)
			t.Prompt, t.Level = index[g.Prompt.ID], g.Prompt.Level
			t.Hidden = states[&r.Tokens[0]]
			traces = append(traces, t)
		}
	}
	return traces, unscorable, nil
}

func newTrace(r *rl.Rollout) *Trace {
	t := &Trace{Right: r.Succeeded(), Lost: r.Lost, Stream: r.Stream, Truncated: r.Truncated()}
	for _, k := range r.Tokens {
		t.IDs = append(t.IDs, k.ID)
		t.LogProb, t.Entropy = append(t.LogProb, k.LogProb), append(t.Entropy, k.Entropy)
		t.Top = append(t.Top, renormalised(k.Top))
	}
	return t
}

// renormalised is the entropy of the likeliest tokens alone, within 0 to ln of their number.
func renormalised(top []sample.Candidate) (h float64) {
	sum := 0.0
	for _, c := range top {
		sum += math.Exp(c.LogProb)
	}
	for _, c := range top {
		if p := math.Exp(c.LogProb) / sum; p > 0 {
			h -= p * math.Log(p)
		}
	}
	return h
}

// share is the mean of right.
func share(traces []*Trace) float64 {
	n := 0
	for _, t := range traces {
		if t.Right {
			n++
		}
	}
	return float64(n) / float64(max(1, len(traces)))
}

// byPrompt lists traces by prompt, prompts in order of appearance.
func byPrompt(traces []*Trace) (out [][]*Trace) {
	at := map[int]int{}
	for _, t := range traces {
		i, ok := at[t.Prompt]
		if !ok {
			i = len(out)
			at[t.Prompt] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], t)
	}
	return out
}
