package model

import (
	"math"

	"heddle/compute"
	"heddle/mesh"
	"heddle/tensor"
)

// Weigh turns the log-probabilities of the labels into the weights of their losses: minus the derivative of the objective's loss by each log-probability. Both
// are this rank's part of [B, S], row-major; positions that Batch.Mask leaves out come with a 0 and get one. It is called once in each PolicyGradients, between
// forward and backward, on every rank: ranks that hold the same tokens must answer the same.
type Weigh func(logProbs []float64) (weights []float64)

// PolicyGradients runs one micro-batch forward and backward for a loss that depends on the model through the log-probabilities of the labels alone, as all
// policy gradients do. It adds the gradients to the shards and returns the summed negative log-likelihood, partial over the axes that cut tokens.
func (m *Model) PolicyGradients(b Batch, weigh Weigh) tensor.Tensor {
	return m.gradients(b, m.one(), weigh)
}

// LogProbs are the log-probabilities of the labels, this rank's part of [B, S], 0 where the mask is.
func (m *Model) LogProbs(b Batch) []float64 {
	d := m.dev
	step := d.Open()
	root, x := m.run(b)
	_, kept := m.head.Forward(spread(m.Config.root(), root.Rows), x, compute.Targets{Labels: b.Labels, Mask: b.Mask})
	out := m.logProbs(kept.sp, b.Mask)
	m.Shards.Release(root)
	d.Close(step)
	return out
}

// logProbs reads the label's logit − m and Σ exp(logit − m) that the loss is made of. The difference is taken in the type of the activations: sampling takes
// it so too, and the ratio of a policy to itself is then exactly 1.
func (m *Model) logProbs(sp, mask tensor.Tensor) []float64 {
	x, on := m.dev.Download(sp), m.dev.Download(mask)
	for i := range on {
		if on[i] != 0 {
			on[i] = x[2*i+1] - math.Log(x[2*i])
		}
	}
	return on
}

// weights asks weigh and puts its answer where the mask was.
func (m *Model) weights(weigh Weigh, sp, mask tensor.Tensor) tensor.Tensor {
	w := m.dev.NewIn(compute.Constant, mask.Type, mask.Letters, mask.Dims, mask.At)
	w.Const = true
	m.dev.Upload(w, weigh(m.logProbs(sp, mask)))
	return w
}

// one is the count that divides nothing.
func (m *Model) one() tensor.Tensor {
	n := m.dev.NewIn(compute.Constant, m.dev.Type.Wide(), "", nil, m.dev.Mesh.Uniform(mesh.R))
	n.Const = true
	m.dev.Upload(n, []float64{1})
	return n
}
