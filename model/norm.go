package model

import (
	"heddle/compute"
	"heddle/tensor"
)

// norm is what stands before a sub-block: RMSNorm, or, where there is a bias, LayerNorm, which is RMSNorm of x less its mean,
// and the bias. read is what the gradient needs in place of x.
func (b *block) norm(x, w, bias tensor.Tensor) (read, n, rstd tensor.Tensor) {
	if read = x; compute.Wanted(bias) {
		read = b.dev.Center(x)
	}
	n, rstd = b.dev.Norm(read, w, b.cfg.Eps)
	b.addBias(n, bias)
	return read, n, rstd
}

// normAgain rebuilds n.
func (b *block) normAgain(read, rstd, w, bias tensor.Tensor) tensor.Tensor {
	n := b.dev.NormAgain(read, rstd, w)
	b.addBias(n, bias)
	return n
}

// normGrad is where a norm's gradients go.
type normGrad struct{ w, bias tensor.Tensor }

// normBack returns the gradient of x and adds those of the norm's parameters.
func (b *block) normBack(g normGrad, dn, read, rstd, w tensor.Tensor) tensor.Tensor {
	b.dev.BiasBack(g.bias, dn)
	dx := b.dev.NormBack(g.w, dn, read, rstd, w)
	if b.cfg.LayerNorm() {
		return b.dev.Center(dx)
	}
	return dx
}

// normBackAdd is around + normBack.
func (b *block) normBackAdd(g normGrad, dn, read, rstd, w, around tensor.Tensor) tensor.Tensor {
	if b.cfg.LayerNorm() {
		return b.dev.Add(around, b.normBack(g, dn, read, rstd, w))
	}
	return b.dev.NormBackAdd(g.w, dn, read, rstd, w, around)
}

// addBias adds a bias in place where the family has one.
func (b *block) addBias(x, bias tensor.Tensor) {
	if compute.Wanted(bias) {
		b.dev.AddBias(x, bias)
	}
}

// project is x·wᵀ + bias.
func (b *block) project(out string, x, w, bias tensor.Tensor) tensor.Tensor {
	y := b.dev.Contract(out, x, w)
	b.addBias(y, bias)
	return y
}
