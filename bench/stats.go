package bench

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is an estimate with its 95 % interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Median of x; NaN for none.
func Median(x []float64) float64 { return Quantile(x, 0.5) }

// Quantile q of x, linear between neighbours; NaN for none.
func Quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(x))
	at := q * float64(len(s)-1)
	i := int(at)
	if i+1 == len(s) {
		return s[i]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// MedianRatio is median(num)/median(den) of paired samples, with a percentile bootstrap over the pairs (Efron and Tibshirani, An Introduction to the Bootstrap, §13): pairs are drawn, not
// sides, so that drift common to both sides does not widen the interval.
func MedianRatio(num, den []float64) Interval {
	n := min(len(num), len(den))
	num, den = num[:n], den[:n]
	const draws = 4000
	rng := rand.New(rand.NewPCG(uint64(n), draws))
	a, b, ratios := make([]float64, n), make([]float64, n), make([]float64, draws)
	for d := range ratios {
		for i := range n {
			k := rng.IntN(n)
			a[i], b[i] = num[k], den[k]
		}
		ratios[d] = Median(a) / Median(b)
	}
	return Interval{Median(num) / Median(den), Quantile(ratios, 0.025), Quantile(ratios, 0.975)}
}

// MeanRatio is the geometric mean of num/den over rounds, with Student's t interval of the logarithms: for few, long, paired rounds.
func MeanRatio(num, den []float64) Interval {
	n := min(len(num), len(den))
	if n == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	var sum, squares float64
	for i := range n {
		sum += math.Log(num[i] / den[i])
	}
	mean := sum / float64(n)
	for i := range n {
		d := math.Log(num[i]/den[i]) - mean
		squares += d * d
	}
	if n == 1 { // one round has no spread to judge by
		return Interval{math.Exp(mean), 0, math.Inf(1)}
	}
	// the 97.5 % quantile of Student's t for 1 to 30 degrees of freedom
	t975 := [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
		2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}
	half := t975[min(n-2, len(t975)-1)] * math.Sqrt(squares/float64(n-1)/float64(n))
	return Interval{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)}
}
