package study

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Estimate is a number with its 95 % interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// bootstrap resamples prompts, the unit of everything here, with all that belongs to them: of gives the statistic of a list of prompts, NaN where it is not
// defined. The interval is that of the percentiles.
func bootstrap(prompts, times int, seed uint64, of func(pick []int) float64) Estimate {
	all := make([]int, prompts)
	for i := range all {
		all[i] = i
	}
	e := Estimate{Value: of(all)}
	e.Low, e.High = e.Value, e.Value
	r := rand.New(rand.NewPCG(seed, 77))
	var values []float64
	pick := make([]int, prompts)
	for range times {
		for i := range pick {
			pick[i] = r.IntN(prompts)
		}
		if v := of(pick); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if len(values) > 0 {
		slices.Sort(values)
		e.Low, e.High = quantile(values, 0.025), quantile(values, 0.975)
	}
	return e
}

// quantile of a sorted list, between neighbours by interpolation.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// meanOf is the mean of a value a prompt, weighted.
func meanOf(value, weight []float64) func(pick []int) float64 {
	return func(pick []int) float64 {
		sum, total := 0.0, 0.0
		for _, i := range pick {
			sum, total = sum+weight[i]*value[i], total+weight[i]
		}
		return sum / total
	}
}

// ratioOf is Σ top ÷ Σ bottom over prompts.
func ratioOf(top, bottom []float64) func(pick []int) float64 {
	return func(pick []int) float64 {
		a, b := 0.0, 0.0
		for _, i := range pick {
			a, b = a+top[i], b+bottom[i]
		}
		return a / b
	}
}

// scored is one rollout with a predictor's answer.
type scored struct {
	score float64 // of success
	right bool
}

// concordance counts the pairs of a success and a failure in which the success scores higher, ties half, and all such pairs.
func concordance(list []scored) (higher, pairs float64) {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b scored) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	failures := 0.0
	for i := 0; i < len(sorted); {
		j, right, wrong := i, 0.0, 0.0
		for ; j < len(sorted) && sorted[j].score == sorted[i].score; j++ {
			if sorted[j].right {
				right++
			} else {
				wrong++
			}
		}
		higher += right * (failures + wrong/2)
		failures += wrong
		pairs += right
		i = j
	}
	return higher, pairs * failures
}

// AUC is the chance that a success scores above a failure: within prompts (pairs of the same prompt) and pooled (any pair). The pooled one also rewards telling
// easy prompts from hard ones.
type AUC struct {
	At      int      `json:"at"` // tokens seen
	Within  Estimate `json:"within"`
	Pooled  Estimate `json:"pooled"`
	Active  int      `json:"active"` // rollouts that go on after them
	Mixed   int      `json:"mixed"`  // prompts with both outcomes among those
	Prompts int      `json:"prompts"`
}

// auc measures a predictor after n tokens on the rollouts that go on.
func auc(p Predictor, groups [][]*Trace, n, times int, seed uint64) AUC {
	out := AUC{At: n}
	var higher, pairs []float64
	var lists [][]scored
	for _, g := range groups {
		var list []scored
		for _, t := range g {
			if t.Len() > n {
				list = append(list, scored{p.Predict(t, n), t.Right})
			}
		}
		if len(list) == 0 {
			continue
		}
		h, all := concordance(list)
		higher, pairs, lists = append(higher, h), append(pairs, all), append(lists, list)
		out.Active += len(list)
		if all > 0 {
			out.Mixed++
		}
	}
	out.Prompts = len(lists)
	if out.Prompts == 0 {
		return out
	}
	out.Within = bootstrap(len(lists), times, seed, ratioOf(higher, pairs))
	out.Pooled = bootstrap(len(lists), min(times, 200), seed, func(pick []int) float64 {
		var list []scored
		for _, i := range pick {
			list = append(list, lists[i]...)
		}
		h, all := concordance(list)
		return h / all
	})
	return out
}

// Calibration is how a predictor's chances compare with what happened, over all positions.
type Calibration struct {
	Brier float64 `json:"brier"`
	ECE   float64 `json:"ece"` // mean distance of said and seen over ten bins, weighted
	Bins  []Bin   `json:"bins"`
}

// Bin is the positions whose predicted chance lies within a tenth.
type Bin struct {
	Said  float64 `json:"said"`
	Seen  float64 `json:"seen"`
	Share float64 `json:"share"`
}

func calibration(p Predictor, traces []*Trace) (c Calibration) {
	var said, seen, weight [10]float64
	total := 0.0
	for _, t := range traces {
		for n := 1; n < t.Len(); n++ {
			w, x := 1/float64(t.Len()-1), p.Predict(t, n)
			i := min(9, int(x*10))
			said[i], seen[i], weight[i] = said[i]+w*x, seen[i]+w*truth(t), weight[i]+w
			c.Brier += w * (x - truth(t)) * (x - truth(t))
			total += w
		}
	}
	if total == 0 {
		return c
	}
	c.Brier /= total
	for i := range said {
		if weight[i] > 0 {
			c.Bins = append(c.Bins, Bin{said[i] / weight[i], seen[i] / weight[i], weight[i] / total})
			c.ECE += math.Abs(said[i]-seen[i]) / total
		}
	}
	return c
}

// holm adjusts p-values for being many (Holm 1979): the adjusted value of the i-th smallest of m is the largest of (m−j)·p over those up to it, at most 1.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if p[a] < p[b] {
			return -1
		}
		return 1
	})
	out, most := make([]float64, len(p)), 0.0
	for k, i := range order {
		most = max(most, min(1, float64(len(p)-k)*p[i]))
		out[i] = most
	}
	return out
}

// twoSided is the p-value of a mean over prompts being 0: mean over its cluster-robust standard error, against the normal distribution.
func twoSided(value, weight []float64) float64 {
	mean := meanOf(value, weight)(indices(len(value)))
	square, total := 0.0, 0.0
	for i, v := range value {
		square += weight[i] * weight[i] * (v - mean) * (v - mean)
		total += weight[i]
	}
	n := float64(len(value))
	se := math.Sqrt(square*n/max(1, n-1)) / total
	if se == 0 {
		if mean == 0 {
			return 1
		}
		return 0
	}
	return math.Erfc(math.Abs(mean) / se / math.Sqrt2)
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Power is what the study can see, said before it runs. The gain of an arm over the control is paired: only rollouts that were acted on differ.
type Power struct {
	Rollouts   int     `json:"rollouts"`
	Success    float64 `json:"success"` // of the control, of the policy's evaluation
	FireRate   float64 `json:"fire_rate"`
	Design     float64 `json:"design_effect"` // 1 + (group − 1)·correlation
	Detectable float64 `json:"detectable"`    // gain seen with 80 % power at 5 %, two-sided
	Unpaired   float64 `json:"detectable_unpaired"`
}

// power allows for a correlation of 0.05 between the gains of a prompt's rollouts.
func power(prompts, group int, success, fire float64) Power {
	const correlation, z = 0.05, 1.959964 + 0.841621
	n := float64(prompts * group)
	p := Power{Rollouts: prompts * group, Success: success, FireRate: fire, Design: 1 + float64(group-1)*correlation}
	differ := fire * 2 * success * (1 - success) // chance that a rollout's outcome changes, if the second draw is independent
	p.Detectable = z * math.Sqrt(p.Design*differ/n)
	p.Unpaired = z * math.Sqrt(p.Design*2*success*(1-success)/n)
	return p
}
