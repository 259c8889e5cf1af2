package grpo

import "math"

// Metrics describe a loss.
type Metrics struct {
	Tokens    int     `json:"tokens"` // that have a gradient
	Loss      float64 `json:"loss"`
	KL        float64 `json:"kl"`         // mean of k3 against the reference over trained tokens
	Ratio     float64 `json:"ratio"`      // mean
	RatioMost float64 `json:"ratio_most"` // the ratio furthest from 1, as max(ρ, 1/ρ)
	ClipLow   float64 `json:"clip_low"`   // share of trained tokens that clipping from below changes
	ClipHigh  float64 `json:"clip_high"`
	Drift     float64 `json:"drift"`  // mean of Drawn − Proximal: how far the drawing policy is from the one the ratio is taken to
	Capped    float64 `json:"capped"` // share of tokens whose importance was cut to the cap
}

// Loss is the loss at the policy's log-probabilities, one slice a row, one number a token, and its derivative by each of them. Both belong to one another:
// the derivative takes stopped gradients (CISPO's clipped ratio, the importance) as constants.
func (b *Batch) Loss(logProbs [][]float64) (grad [][]float64, m Metrics) {
	grad = make([][]float64, len(b.Rows))
	for i := range b.Rows {
		r := &b.Rows[i]
		grad[i] = make([]float64, len(r.Tokens))
		whole, n := r.sequenceRatio(logProbs[i])
		for k, t := range r.Tokens {
			if !r.grad[k] {
				continue
			}
			lp := logProbs[i][k]
			ratio, byToken := math.Exp(lp-t.Proximal), 1.0
			if b.cfg.Ratio == OfSequence {
				ratio, byToken = whole, 1/n // ∂ log s/∂ log π_t
			}
			x := b.cfg.term(ratio, r.Advantage, lp)
			weight, capped := b.cfg.importance(t)
			weight *= t.Weight * r.scale
			m.Loss += weight * x.loss
			if b.cfg.Objective == Clip && b.cfg.Ratio == OfSequence { // every token of the row holds the same term, and moves it in all of them
				r.spread(grad[i], weight*x.slope*byToken)
			} else {
				grad[i][k] += weight * x.slope
			}
			if b.cfg.KL > 0 {
				kl, slope := k3(lp, t.Ref)
				m.KL += kl
				m.Loss += b.cfg.KL * t.Weight * r.scale * kl
				grad[i][k] += b.cfg.KL * t.Weight * r.scale * slope
			}
			m.Tokens++
			m.add(ratio, t, x, capped)
		}
	}
	m.scale(1 / float64(max(1, m.Tokens)))
	return grad, m
}

// sequenceRatio is exp of the mean log-ratio over the trained tokens (GSPO, equation 7), and their number.
func (r *Row) sequenceRatio(logProbs []float64) (ratio, n float64) {
	sum := 0.0
	for k, t := range r.Tokens {
		if t.Weight != 0 {
			sum, n = sum+logProbs[k]-t.Proximal, n+1
		}
	}
	return math.Exp(sum / n), n
}

// spread adds to the derivative of every trained token.
func (r *Row) spread(grad []float64, x float64) {
	for k, t := range r.Tokens {
		if t.Weight != 0 {
			grad[k] += x
		}
	}
}

// term is one token's loss and its derivative by the logarithm of the ratio (clip) or of the policy (cispo).
type term struct {
	loss, slope float64
	low, high   bool // clipping changed it
}

func (c Config) term(ratio, advantage, logProb float64) term {
	held := min(max(ratio, 1-c.ClipLow), 1+c.ClipHigh)
	if c.Objective == CISPO {
		return term{-held * advantage * logProb, -held * advantage, held > ratio, held < ratio}
	}
	if ratio*advantage <= held*advantage {
		return term{loss: -ratio * advantage, slope: -ratio * advantage}
	}
	return term{-held * advantage, 0, held > ratio, held < ratio}
}

// importance is min(cap, π_proximal/π_drawn), a constant of the loss: what makes up for tokens that an older policy or another program drew
// (truncated importance sampling, Espeholt et al. 2018, 1802.01561; the decoupled objective of AReaL, 2505.24298).
func (c Config) importance(t Token) (w float64, capped bool) {
	if c.ImportanceCap == 0 {
		return 1, false
	}
	w = math.Exp(t.Proximal - t.Drawn)
	return min(w, c.ImportanceCap), w > c.ImportanceCap
}

// k3 is the estimator r − log r − 1 ≥ 0 of the divergence from the reference, with r = π_ref/π (Schulman 2020), and its derivative by log π.
func k3(logProb, ref float64) (kl, slope float64) {
	d := ref - logProb
	return math.Expm1(d) - d, -math.Expm1(d)
}

func (m *Metrics) add(ratio float64, t Token, x term, capped bool) {
	m.Ratio += ratio
	m.RatioMost = max(m.RatioMost, ratio, 1/ratio)
	m.Drift += t.Drawn - t.Proximal
	for _, c := range []struct {
		is bool
		to *float64
	}{{x.low, &m.ClipLow}, {x.high, &m.ClipHigh}, {capped, &m.Capped}} {
		if c.is {
			*c.to++
		}
	}
}

// means are the fields that are means over tokens.
func (m *Metrics) means() []*float64 {
	return []*float64{&m.KL, &m.Ratio, &m.Drift, &m.ClipLow, &m.ClipHigh, &m.Capped}
}

func (m *Metrics) scale(by float64) {
	for _, x := range m.means() {
		*x *= by
	}
}

// Merge joins the metrics of parts of a batch.
func Merge(parts ...Metrics) (m Metrics) {
	for _, p := range parts {
		for i, x := range p.means() {
			*m.means()[i] += *x * float64(p.Tokens)
		}
		m.Loss, m.Tokens, m.RatioMost = m.Loss+p.Loss, m.Tokens+p.Tokens, max(m.RatioMost, p.RatioMost)
	}
	m.scale(1 / float64(max(1, m.Tokens)))
	return m
}

// Part is the rows from lo to hi, for the rank that holds them. Loss over all parts adds up to that of the batch.
func (b *Batch) Part(lo, hi int) *Batch {
	lo, hi = min(lo, len(b.Rows)), min(hi, len(b.Rows))
	return &Batch{Rows: b.Rows[lo:hi], Counts: b.Counts, cfg: b.cfg}
}
