package study

import (
	"math/rand/v2"
	"slices"

	"heddle/rl/tasks"
)

// fires is, a trace, after how many tokens its trigger fired; never: it did not.
type fires []int

const never = -1

// rate is the share of traces that fired.
func (f fires) rate() float64 {
	n := 0
	for _, at := range f {
		if at != never {
			n++
		}
	}
	return float64(n) / float64(max(1, len(f)))
}

// threshold fires where the predicted chance of success first falls below a value.
type threshold struct {
	p     Predictor
	below float64
}

func (h threshold) at(t *Trace) int {
	for n := 1; n < t.Len(); n++ {
		if h.p.Predict(t, n) < h.below {
			return n
		}
	}
	return never
}

// calibrate finds the threshold that fires on at most a share of successes, on traces other than those it is used on. Every position is looked at, as in use:
// what fires on a rollout is the least of its predictions.
func calibrate(p Predictor, traces []*Trace, falseAlarms float64) threshold {
	var least []float64
	for _, t := range traces {
		if t.Right {
			lo := 1.0
			for n := 1; n < t.Len(); n++ {
				lo = min(lo, p.Predict(t, n))
			}
			least = append(least, lo)
		}
	}
	slices.Sort(least)
	h := threshold{p: p}
	if len(least) > 0 {
		h.below = least[min(len(least)-1, int(falseAlarms*float64(len(least))))]
	}
	return h
}

func (h threshold) all(traces []*Trace) fires {
	out := make(fires, len(traces))
	for i, t := range traces {
		out[i] = h.at(t)
	}
	return out
}

// permuted gives each trace another's firing, so that the rate is kept and the position histogram as far as lengths allow: among all traces, or within each
// prompt, which keeps what the trigger knows about prompts and destroys what it knows about a rollout's own fate.
func permuted(f fires, traces []*Trace, within bool, r *rand.Rand) fires {
	groups := [][]int{indices(len(f))}
	if within {
		groups = nil
		at := map[int]int{}
		for i, t := range traces {
			k, ok := at[t.Prompt]
			if !ok {
				k = len(groups)
				at[t.Prompt] = k
				groups = append(groups, nil)
			}
			groups[k] = append(groups[k], i)
		}
	}
	out := make(fires, len(f))
	for _, g := range groups {
		from := slices.Clone(g)
		r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		for k, i := range g {
			if out[i] = f[from[k]]; out[i] >= traces[i].Len() {
				out[i] = traces[i].Len() - 1
			}
			if out[i] < 1 {
				out[i] = never
			}
		}
	}
	return out
}

// ranked fires at position on the traces with the highest score until a share has fired; ties in random order. A score that only knows the prompt makes the
// difficulty trigger, a constant one the position trigger.
func ranked(traces []*Trace, score func(*Trace) float64, position int, rate float64, r *rand.Rand) fires {
	order := r.Perm(len(traces))
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := score(traces[a]), score(traces[b]); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	out := make(fires, len(traces))
	for i := range out {
		out[i] = never
	}
	left := int(rate*float64(len(traces)) + 0.5)
	for _, i := range order {
		if left > 0 && traces[i].Len() > position {
			out[i] = position
			left--
		}
	}
	return out
}

// oracle fires on failures, just after the token that lost them: the earliest at which anything could know, and cutting there undoes it.
func oracle(traces []*Trace) fires {
	out := make(fires, len(traces))
	for i, t := range traces {
		if out[i] = never; !t.Right && t.Lost != tasks.Kept {
			out[i] = t.Lost + 1
		}
	}
	return out
}

// antiOracle fires on successes alone, at the positions of another trigger: what harm an action does.
func antiOracle(like fires, traces []*Trace, r *rand.Rand) fires {
	var positions []int
	for _, n := range like {
		if n != never {
			positions = append(positions, n)
		}
	}
	out := make(fires, len(traces))
	for i, t := range traces {
		if out[i] = never; t.Right && len(positions) > 0 {
			out[i] = max(1, min(positions[r.IntN(len(positions))], t.Len()-1))
		}
	}
	return out
}

// Quality is how a trigger tells a rollout's fate. Within-prompt J is what restart can earn: its gain is the mean over prompts of p(1−p)(f−s).
type Quality struct {
	Rate      float64 `json:"rate"`
	OnRight   float64 `json:"on_right"` // s: share of successes it fires on
	OnWrong   float64 `json:"on_wrong"` // f: of failures
	Pooled    float64 `json:"j_pooled"` // f − s over all rollouts
	Within    float64 `json:"j_within"` // mean of f − s within prompts of both outcomes, weighted by p(1−p)
	Predicted float64 `json:"restart_gain_predicted"`
	Lead      Lead    `json:"lead"`
}

// Lead is when a trigger fires on failures, beside the token that lost them.
type Lead struct {
	Before float64 `json:"before"` // shares of failures that fired
	At     float64 `json:"at"`     // right after that token was drawn
	After  float64 `json:"after"`
	Mean   float64 `json:"mean"` // tokens by which it is early
	Fired  int     `json:"fired"`
}

func quality(f fires, traces []*Trace) Quality {
	type count struct{ right, wrong, onRight, onWrong float64 }
	var all count
	by := map[int]*count{}
	var keys []int
	q := Quality{Rate: f.rate()}
	for i, t := range traces {
		c := by[t.Prompt]
		if c == nil {
			c = &count{}
			by[t.Prompt] = c
			keys = append(keys, t.Prompt)
		}
		hit := 0.0
		if f[i] != never {
			hit = 1
		}
		for _, x := range []*count{c, &all} {
			if t.Right {
				x.right, x.onRight = x.right+1, x.onRight+hit
			} else {
				x.wrong, x.onWrong = x.wrong+1, x.onWrong+hit
			}
		}
		if !t.Right && hit > 0 && t.Lost != tasks.Kept {
			q.Lead.add(t.Lost + 1 - f[i])
		}
	}
	q.OnRight, q.OnWrong = all.onRight/max(1, all.right), all.onWrong/max(1, all.wrong)
	q.Pooled = q.OnWrong - q.OnRight
	weights := 0.0
	for _, k := range keys {
		c, n := by[k], by[k].right+by[k].wrong
		if c.right == 0 || c.wrong == 0 {
			continue
		}
		w := c.right / n * c.wrong / n
		q.Within += w * (c.onWrong/c.wrong - c.onRight/c.right)
		// p(1−p) from n rollouts is low by (n−1)/n, because both factors come from them; f − s needs no correction.
		q.Predicted += n / (n - 1) * w * (c.onWrong/c.wrong - c.onRight/c.right) / float64(len(keys))
		weights += w
	}
	if weights > 0 {
		q.Within /= weights
	}
	q.Lead.mean()
	return q
}

func (l *Lead) add(early int) {
	l.Fired++
	l.Mean += float64(early)
	switch {
	case early > 0:
		l.Before++
	case early == 0:
		l.At++
	default:
		l.After++
	}
}

func (l *Lead) mean() {
	if n := float64(l.Fired); n > 0 {
		l.Before, l.At, l.After, l.Mean = l.Before/n, l.At/n, l.After/n, l.Mean/n
	}
}
