package grpo

import "math"

// Metrics describe a loss.
type Metrics struct {
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
	tokens := 0.0
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
			tokens++
			m.add(ratio, t, x, capped)
		}
	}
	m.mean(tokens)
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

func (m *Metrics) mean(tokens float64) {
	if tokens == 0 {
		return
	}
	for _, x := range []*float64{&m.KL, &m.Ratio, &m.Drift, &m.ClipLow, &m.ClipHigh, &m.Capped} {
		*x /= tokens
	}
}
