package study

import (
	"math"

	"heddle/rl"
)

// value is, before each token of a completion and after the last, the chance that the policy succeeds from there: the sum over all ways to succeed that share
// the prefix of the probability of the rest. It is exact.
func value(ids []int32, w *rl.Ways) []float64 {
	out := make([]float64, len(ids)+1)
	for i, way := range w.IDs {
		shared := 0
		for shared < len(way) && shared < len(ids) && way[shared] == ids[shared] {
			shared++
		}
		rest := 0.0
		for k := len(way); k >= 0; k-- {
			if k < len(way) {
				rest += w.LogProbs[i][k]
			}
			if k <= shared {
				out[k] += math.Exp(rest)
			}
		}
	}
	return out
}

// Values is what prefix values say: how fate is decided, and how much of that a prompt does not already say.
type Values struct {
	Points []ValuePoint `json:"points"`
	Losses []float64    `json:"at_loss"` // mean value before the token that lost a failure, from offset tokens before it (LossSpan) to it
}

// ValuePoint is the rollouts that go on after At tokens.
type ValuePoint struct {
	At      int     `json:"at"`
	Right   float64 `json:"right"` // mean value of those that will succeed
	Wrong   float64 `json:"wrong"`
	Within  float64 `json:"within"`  // variance within prompts
	Between float64 `json:"between"` // and of the prompts' means
	N       int     `json:"n"`
}

// lossSpan is how many tokens before the loss are shown.
const lossSpan = 4

func values(groups [][]*Trace, longest int) (out Values) {
	for n := range longest {
		p := ValuePoint{At: n}
		right, sums := 0.0, []float64{}
		var counts []float64
		for _, g := range groups {
			sum, square, m := 0.0, 0.0, 0.0
			for _, t := range g {
				if t.Len() <= n {
					continue
				}
				v := t.Value[n]
				sum, square, m = sum+v, square+v*v, m+1
				if t.Right {
					p.Right += v
					right++
				} else {
					p.Wrong += v
				}
			}
			if m > 0 {
				p.Within += square - sum*sum/m
				sums, counts = append(sums, sum/m), append(counts, m)
				p.N += int(m)
			}
		}
		if p.N == 0 {
			break
		}
		p.Right, p.Wrong = p.Right/max(1, right), p.Wrong/max(1, float64(p.N)-right)
		p.Within /= float64(p.N)
		mean := meanOf(sums, counts)(indices(len(sums)))
		for i, m := range sums {
			p.Between += counts[i] * (m - mean) * (m - mean) / float64(p.N)
		}
		out.Points = append(out.Points, p)
	}
	for back := lossSpan; back >= 0; back-- {
		sum, m := 0.0, 0.0
		for _, g := range groups {
			for _, t := range g {
				if !t.Right && t.Lost-back >= 0 {
					sum, m = sum+t.Value[t.Lost-back], m+1
				}
			}
		}
		out.Losses = append(out.Losses, sum/max(1, m))
	}
	return out
}
