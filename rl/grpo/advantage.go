package grpo

import (
	"math"
	"slices"
)

// Row is one completion that has a loss.
type Row struct {
	Group, Sample int // where it was
	Advantage     float64
	Tokens        []Token
	grad          []bool  // of tokens: among those of highest entropy, or all
	scale         float64 // of each token's loss: 1 over what Norm divides by
}

// Counts is what became of the groups and samples of a batch.
type Counts struct {
	Groups     int     `json:"groups"`
	Mixed      int     `json:"mixed"`      // groups with more than one reward
	Equal      int     `json:"equal"`      // groups whose rewards are all equal: they teach nothing
	Unscored   int     `json:"unscored"`   // groups without any reward
	Samples    int     `json:"samples"`    //
	Unscorable int     `json:"unscorable"` // samples without a finite reward
	Empty      int     `json:"empty"`      // samples without a token
	Truncated  int     `json:"truncated"`
	Rows       int     `json:"rows"`   // samples that have a loss
	Tokens     int     `json:"tokens"` // that count in the mean
	Reward     float64 `json:"reward"` // mean over scorable samples, before any penalty
}

// Batch is what Loss is taken over.
type Batch struct {
	Rows   []Row
	Counts Counts
	cfg    Config
}

// Advantages compares each completion's reward with its group's. Samples that could not be scored are left out of everything; those without a token or masked
// for their length count in the baseline alone.
func Advantages(c Config, groups []Group) *Batch {
	b := &Batch{cfg: c, Counts: Counts{Groups: len(groups)}}
	scored := 0
	for gi, g := range groups {
		rewards, sum := make([]float64, len(g)), 0.0
		n := 0
		for i, s := range g {
			b.Counts.Samples++
			rewards[i] = s.Reward + c.penalty(s)
			switch {
			case !finite(s.Reward):
				b.Counts.Unscorable++
				rewards[i] = math.NaN()
				continue
			case len(s.Tokens) == 0:
				b.Counts.Empty++
			}
			if s.Truncated {
				b.Counts.Truncated++
			}
			b.Counts.Reward += s.Reward
			sum, n = sum+rewards[i], n+1
		}
		scored += n
		advantages, mixed := c.advantages(rewards, sum, n)
		switch {
		case n == 0:
			b.Counts.Unscored++
			continue
		case mixed:
			b.Counts.Mixed++
		default:
			b.Counts.Equal++
			if c.DropEqual {
				continue
			}
		}
		for i, s := range g {
			if finite(rewards[i]) && trained(s) > 0 && !(s.Truncated && c.Overlong == Mask) {
				b.Rows = append(b.Rows, Row{Group: gi, Sample: i, Advantage: advantages[i], Tokens: s.Tokens})
			}
		}
	}
	if scored > 0 {
		b.Counts.Reward /= float64(scored)
	}
	b.normalise()
	b.mask()
	return b
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// trained counts the tokens that are trained on.
func trained(s Sample) (n int) {
	for _, t := range s.Tokens {
		if t.Weight != 0 {
			n++
		}
	}
	return n
}

// advantages are r − mean, over the population's standard deviation with Std, against the others' mean with LeaveOneOut. Equal rewards give 0.
func (c Config) advantages(rewards []float64, sum float64, n int) (out []float64, mixed bool) {
	out = make([]float64, len(rewards))
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, r := range rewards {
		if finite(r) {
			lo, hi = min(lo, r), max(hi, r)
		}
	}
	if n < 2 || lo == hi {
		return out, false
	}
	mean, square := sum/float64(n), 0.0
	for i, r := range rewards {
		if finite(r) {
			out[i] = r - mean
			square += out[i] * out[i]
		}
	}
	factor := 1.0
	switch {
	case c.Std:
		factor = 1 / math.Sqrt(square/float64(n))
	case c.LeaveOneOut: // r − (sum − r)/(n−1) = (r − mean)·n/(n−1)
		factor = float64(n) / float64(n-1)
	}
	for i := range out {
		out[i] *= factor
	}
	return out, true
}

// penalty is DAPO's soft overlong punishment (equation 13): 0 up to Length − Buffer tokens, −1 at Length, straight between.
func (c Config) penalty(s Sample) float64 {
	if c.Overlong != Penalty {
		return 0
	}
	over := len(s.Tokens) - (c.Length - c.Buffer)
	return -min(1, max(0, float64(over)/float64(c.Buffer)))
}

// normalise gives each row the factor of its tokens' losses.
func (b *Batch) normalise() {
	b.Counts.Rows = len(b.Rows)
	for _, r := range b.Rows {
		b.Counts.Tokens += trained(Sample{Tokens: r.Tokens})
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		switch b.cfg.Norm {
		case PerSequence:
			r.scale = 1 / float64(len(b.Rows)*trained(Sample{Tokens: r.Tokens}))
		case PerToken:
			r.scale = 1 / float64(b.Counts.Tokens)
		default:
			r.scale = 1 / float64(len(b.Rows)*b.cfg.Length)
		}
	}
}

// mask picks the tokens that get a gradient: those whose entropy is at least that of the TopEntropy share of the batch's trained tokens. All tokens count in
// the normaliser (2506.01939, equation 5).
func (b *Batch) mask() {
	least := math.Inf(-1)
	if q := b.cfg.TopEntropy; q > 0 && q < 1 && b.Counts.Tokens > 0 {
		var all []float64
		for _, r := range b.Rows {
			for _, t := range r.Tokens {
				if t.Weight != 0 {
					all = append(all, t.Entropy)
				}
			}
		}
		slices.Sort(all)
		least = all[len(all)-max(1, int(math.Round(q*float64(len(all)))))]
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		r.grad = make([]bool, len(r.Tokens))
		for k, t := range r.Tokens {
			r.grad[k] = t.Weight != 0 && t.Entropy >= least
		}
	}
}
