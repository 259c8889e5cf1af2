package study

import "math"

// A predictor sees, after t tokens, what a server would: the prompt's difficulty, t, and what was known of tokens 0 to t−1. Fitting and serving call the same
// function, so that they cannot differ, and nothing here reads the rollout's length or later tokens.

// window is the tokens that VIX-like features look back over.
type window int

// level is the prompt's difficulty as a feature of its own for each level.
func level(t *Trace, levels int) []float64 {
	x := make([]float64, levels)
	x[t.Level] = 1
	return x
}

// logProbs are mean, last and least log-probability so far.
func logProbs(t *Trace, n int) []float64 {
	mean, least := 0.0, 0.0
	for _, v := range t.LogProb[:n] {
		mean, least = mean+v/float64(n), min(least, v)
	}
	return []float64{mean, t.LogProb[n-1], least}
}

// entropies are mean, last, largest and smallest of a series so far.
func entropies(h []float64, n int) []float64 {
	mean, most, least := 0.0, math.Inf(-1), math.Inf(1)
	for _, v := range h[:n] {
		mean, most, least = mean+v/float64(n), max(most, v), min(least, v)
	}
	return []float64{mean, h[n-1], most, least}
}

// vix are the window's root mean square of entropy differences, their mean, the root mean squares of their positive and negative parts, how far the last
// entropy is above the window's least and below its largest, and the largest root mean square of any window so far. Before there are two tokens all are 0.
func (w window) vix(h []float64, n int) []float64 {
	largest := 0.0
	for k := 2; k < n; k++ {
		largest = max(largest, w.at(h, k)[0])
	}
	now := w.at(h, n)
	return append(now, max(largest, now[0]))
}

func (w window) at(h []float64, n int) []float64 {
	part := h[max(0, n-int(w)):n]
	if len(part) < 2 {
		return make([]float64, 6)
	}
	square, drift, up, down := 0.0, 0.0, 0.0, 0.0
	lo, hi := part[0], part[0]
	m := float64(len(part) - 1)
	for i := 1; i < len(part); i++ {
		d := part[i] - part[i-1]
		square, drift = square+d*d/m, drift+d/m
		up, down = up+max(0, d)*max(0, d)/m, down+min(0, d)*min(0, d)/m
		lo, hi = min(lo, part[i]), max(hi, part[i])
	}
	last := part[len(part)-1]
	return []float64{math.Sqrt(square), drift, math.Sqrt(up), math.Sqrt(down), last - lo, hi - last}
}

// Kind is a rung of the ladder of predictors.
type Kind string

const (
	Prior    Kind = "prompt prior"    // difficulty alone
	Length   Kind = "length"          // difficulty and tokens so far
	LogProbs Kind = "log-probability" // each of those from here on knows difficulty and length too
	Entropy  Kind = "entropy"
	TopK     Kind = "top-3 entropy"
	VIX      Kind = "vix"
	Window   Kind = "window logistic" // all of the above
	Network  Kind = "small MLP"       // the same features
	Probe    Kind = "hidden state"
	Exact    Kind = "exact value" // the policy's own chance of success, by enumeration: no predictor beats it
)

// Ladder lists the rungs that are fitted, in order.
func Ladder(hidden bool) []Kind {
	out := []Kind{Prior, Length, LogProbs, Entropy, TopK, VIX, Window, Network}
	if hidden {
		out = append(out, Probe)
	}
	return out
}

// view says what features are made of.
type view struct {
	levels int
	window window
}

// features of a rung after n tokens, n ≥ 1.
func (v view) features(k Kind, t *Trace, n int) []float64 {
	x := level(t, v.levels)
	if k == Prior {
		return x
	}
	x = append(x, float64(n))
	switch k {
	case LogProbs:
		x = append(x, logProbs(t, n)...)
	case Entropy:
		x = append(x, entropies(t.Entropy, n)...)
	case TopK:
		x = append(x, entropies(t.Top, n)...)
	case VIX:
		x = append(x, v.window.vix(t.Entropy, n)...)
	case Window, Network:
		x = append(x, logProbs(t, n)...)
		x = append(x, entropies(t.Entropy, n)...)
		x = append(x, entropies(t.Top, n)...)
		x = append(x, v.window.vix(t.Entropy, n)...)
	case Probe:
		for _, h := range t.Hidden[n-1] {
			x = append(x, float64(h))
		}
	}
	return x
}
