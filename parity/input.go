// Package parity compares schemes with the truth: the same weights and batch on one rank in float64. It measures gradients,
// bytes and memory, walks one layer line by line, and plants faults to see whether anything notices.
//
// Start with Compare.
package parity

import (
	"heddle/model"
	"heddle/num"
	"heddle/param"
)

// Input is a model, its weights and one global batch.
type Input struct {
	Config  model.Config
	B, S    int
	IDs     []int32   // [B, S]
	Labels  []int32   // [B, S], shifted
	Mask    []float32 // [B, S], 0 or 1
	Weights param.Source

	Segments []int32 // [B, S], documents within which attention stays; nil: every sequence is one
}

// Tiny is compare's small model: fewer key/value heads than ranks can be, and a vocabulary that no even number divides.
func Tiny() model.Config {
	return model.Config{Layers: 2, Hidden: 64, Heads: 8, KV: 2, Head: 16, MLP: 96, Vocab: 259, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.02}
}

// NewInput draws a batch of b sequences of s tokens, masked unevenly over sequences and positions, and weights away from
// their defaults, so that a skipped one shows; the last token always counts. logit scales the final norm: with about 300 the logits reach ±800,
// where a wrong row maximum overflows.
func NewInput(c model.Config, b, s int, seed uint64, logit float64) Input {
	in := Input{Config: c, B: b, S: s, Weights: weights(seed, logit)}
	for i := range b * s {
		u := func(stream uint64) float64 { return num.Uniform(seed, stream, uint64(i)) }
		in.IDs = append(in.IDs, int32(u(1<<32)*float64(c.Vocab)))
		label := int32(u(1<<32+1) * float64(c.Vocab))
		row, at := i/s, i%s
		on := float32(1)
		if i < b*s-1 && (row == 1 && at < s*3/4 || u(1<<32+2) < 0.2) {
			on, label = 0, -100
		}
		in.Labels, in.Mask = append(in.Labels, label), append(in.Mask, on)
	}
	return in
}

// weights are normal(0, 1/√fan-in) for matrices and 1 ± 0.3 for norms, the final one times logit.
func weights(seed uint64, logit float64) param.Source {
	return func(r *param.Row, b param.Box, dst []float64) error {
		var stream uint64
		for _, c := range r.Name {
			stream = stream*131 + uint64(c)
		}
		fan := 1.0
		for i, d := range r.Dims {
			if r.Letters[i] == 'h' && i == len(r.Dims)-1 || r.Letters[0] == 'h' && i > 0 {
				fan *= float64(d)
			}
		}
		i := 0
		param.Each(r.Dims, b, func(global int) {
			n := num.Normal(seed, stream, uint64(global))
			switch {
			case r.Std > 0 || r.Decay:
				dst[i] = n / sqrt(fan)
			case r.Name == "norm":
				dst[i] = logit * (1 + 0.3*n)
			default: // gains around 1, biases around 0
				dst[i] = r.Start + 0.3*n
			}
			i++
		})
		return nil
	}
}
