package parity

import (
	"math"
	"sort"
	"strings"
)

// judge compares our answers with the peer's.
func (p *peer) judge(v *Verification, got *answers) error {
	logits, err := p.floats("logits")
	if err != nil {
		return err
	}
	loss, err := p.floats("loss")
	if err != nil {
		return err
	}
	v.Logits, v.Loss = relative(got.logits, logits), relative(got.losses[:1], loss)
	if !p.steps {
		return nil
	}
	losses, err := p.floats("adamw_losses")
	if err != nil {
		return err
	}
	norm, err := p.floats("grad_norm")
	if err != nil {
		return err
	}
	v.Losses, v.GradNorm = relative(got.losses[:], losses), relative([]float64{got.norm}, norm)
	if got.grads, err = p.stored(got.grads); err != nil {
		return err
	}
	if got.after, err = p.stored(got.after); err != nil {
		return err
	}
	grads, err := p.judgeGrads(v, got)
	if err != nil {
		return err
	}
	if err := p.judgeWeights(v, got, grads); err != nil {
		return err
	}
	sort.Slice(v.Tensors, func(i, j int) bool { return strings.Compare(v.Tensors[i].Name, v.Tensors[j].Name) < 0 })
	return nil
}

// judgeGrads compares gradients and returns the peer's.
func (p *peer) judgeGrads(v *Verification, got *answers) (map[string][]float64, error) {
	grads := map[string][]float64{}
	for name := range got.grads {
		var err error
		if grads[name], err = p.floats("grad." + name); err != nil {
			return nil, err
		}
		e := TensorError{"grad." + name, relative(got.grads[name], grads[name])}
		v.Tensors = append(v.Tensors, e)
		if e.Error > v.Grad.Error {
			v.Grad = e
		}
	}
	return grads, nil
}

// judgeWeights compares stepped weights where the first gradient is large enough for Adam not to amplify its noise.
func (p *peer) judgeWeights(v *Verification, got *answers, grads map[string][]float64) error {
	top := 0.0
	for _, g := range grads {
		top = max(top, largest(g))
	}
	clear, all := 0, 0
	for name, a := range got.after {
		b, err := p.floats("after3." + name)
		if err != nil {
			return err
		}
		diff, scale := 0.0, largest(b)
		for i, g := range grads[name] {
			d := math.Abs(a[i] - b[i])
			if math.IsNaN(d) {
				d = math.Inf(1)
			}
			if all++; math.Abs(g) >= 1e-5*top {
				clear++
				diff = max(diff, d)
			} else {
				v.Rest = max(v.Rest, d)
			}
		}
		e := TensorError{"after3." + name, diff / scale}
		v.Tensors = append(v.Tensors, e)
		if e.Error > v.After.Error {
			v.After = e
		}
	}
	v.Share = float64(clear) / float64(all)
	return nil
}

// relative is max|a−b| ÷ max|b|, infinite where sizes differ.
func relative(a, b []float64) float64 {
	if len(a) != len(b) || len(b) == 0 {
		return math.Inf(1)
	}
	d := 0.0
	for i := range a {
		if math.IsNaN(a[i]) {
			return math.Inf(1)
		}
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d / largest(b)
}

func largest(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}
