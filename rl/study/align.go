package study

// Aligned is mean entropy by outcome, lined up at the start, the end and the token that lost the failures.
type Aligned struct {
	Right   []float64 `json:"right"` // token 0, 1, …
	Wrong   []float64 `json:"wrong"`
	EndR    []float64 `json:"end_right"` // the last token, the one before, …
	EndW    []float64 `json:"end_wrong"`
	Loss    []float64 `json:"loss"`         // failures: lossSpan tokens before the loss to lossSpan after
	Control []float64 `json:"loss_control"` // successes at the same positions of the same prompts, so that position and difficulty are the same
}

func align(traces []*Trace, longest int) (a Aligned) {
	mean := func(n int, at func(t *Trace, i int) int, keep func(*Trace) bool) []float64 {
		sum, count := make([]float64, n), make([]float64, n)
		for _, t := range traces {
			for i := range n {
				if k := at(t, i); keep(t) && k >= 0 && k < t.Len() {
					sum[i], count[i] = sum[i]+t.Entropy[k], count[i]+1
				}
			}
		}
		for i := range sum {
			sum[i] /= max(1, count[i])
		}
		return sum
	}
	right, wrong := func(t *Trace) bool { return t.Right }, func(t *Trace) bool { return !t.Right }
	start := func(_ *Trace, i int) int { return i }
	end := func(t *Trace, i int) int { return t.Len() - 1 - i }
	a.Right, a.Wrong = mean(longest, start, right), mean(longest, start, wrong)
	a.EndR, a.EndW = mean(longest, end, right), mean(longest, end, wrong)
	lost := func(t *Trace) bool { return !t.Right && t.Lost >= 0 }
	a.Loss = mean(2*lossSpan+1, func(t *Trace, i int) int { return t.Lost - lossSpan + i }, lost)
	a.Control = control(byPrompt(traces))
	return a
}

// control is, for every lost failure and offset, the mean entropy of its prompt's successes at the same token; prompts without successes are left out.
func control(groups [][]*Trace) []float64 {
	sum, count := make([]float64, 2*lossSpan+1), make([]float64, 2*lossSpan+1)
	for _, g := range groups {
		for _, f := range g {
			if f.Right || f.Lost < 0 {
				continue
			}
			for _, s := range g {
				for i := range sum {
					if k := f.Lost - lossSpan + i; s.Right && k >= 0 && k < s.Len() {
						sum[i], count[i] = sum[i]+s.Entropy[k], count[i]+1
					}
				}
			}
		}
	}
	for i := range sum {
		sum[i] /= max(1, count[i])
	}
	return sum
}

// baselines are 1, 2, 4, … independent samples of each prompt, from the rollouts that are there: consecutive ones make a draw.
func baselines(groups [][]*Trace) (out []Baseline) {
	for k := 1; k <= len(groups[0]); k *= 2 {
		b, draws := Baseline{K: k}, 0.0
		for _, g := range groups {
			for lo := 0; lo+k <= len(g); lo += k {
				part := g[lo : lo+k]
				draws++
				b.Mean += share(part)
				b.Vote += vote(part)
				for _, t := range part {
					b.Tokens += float64(t.Len())
				}
				if share(part) > 0 {
					b.Pass++
				}
			}
		}
		b.Mean, b.Vote, b.Pass, b.Tokens = b.Mean/draws, b.Vote/draws, b.Pass/draws, b.Tokens/draws
		out = append(out, b)
	}
	return out
}

// vote is 1 if the completion that occurs most often, the earliest of those, is right.
func vote(list []*Trace) float64 {
	count := map[string]int{}
	var most *Trace
	name := func(t *Trace) string {
		b := make([]byte, 0, 4*t.Len())
		for _, id := range t.IDs {
			b = append(b, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		}
		return string(b)
	}
	for _, t := range list {
		count[name(t)]++
	}
	for _, t := range list {
		if most == nil || count[name(t)] > count[name(most)] {
			most = t
		}
	}
	return truth(most)
}
