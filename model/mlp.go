package model

import (
	"heddle/comm"
	"heddle/tensor"
)

// mlp is the second sub-block of a layer: x + a·Wdownᵀ with h = norm(x) and a = silu(h·Wgateᵀ)·(h·Wupᵀ), or gelu(h·Wupᵀ)
// where nothing gates. P is the tp ranks.
type mlp struct{ block }

// savedMLP is what Backward reads.
type savedMLP struct {
	x, rstd  tensor.Tensor // [B, S', H], [B, S']; x less its mean under LayerNorm
	gate, up tensor.Tensor // [B, S or S/C, F/P]; no gate with GELU

	n, a tensor.Tensor // kept only where nothing is to be rebuilt: the normed input, and what Wdown reads
}

func (s *savedMLP) tensors() []tensor.Tensor {
	return present(s.x, s.rstd, s.gate, s.up, s.n, s.a)
}

// Save computes what Backward will read.
func (m *mlp) Save(w []tensor.Tensor, x tensor.Tensor) *savedMLP {
	s := &savedMLP{}
	var n tensor.Tensor
	s.x, n, s.rstd = m.norm(x, w[rowNorm2], w[rowNorm2Bias])
	h := m.residual.Enter(m.grp, "mlp enter", n)
	if m.cfg.Gated() {
		s.gate = m.project("bsf", h, w[rowGate], w[rowGateBias])
	}
	s.up = m.project("bsf", h, w[rowUp], w[rowUpBias])
	if m.keep {
		s.n, s.a = n, m.act(s)
	}
	return s
}

// Forward is Save and the tail: x + Exit(a·Wdownᵀ).
func (m *mlp) Forward(w []tensor.Tensor, x tensor.Tensor) (tensor.Tensor, *savedMLP) {
	d, s := m.dev, m.Save(w, x)
	y := m.residual.Exit(m.grp, "mlp exit", d.Contract("bsh", m.product(s), w[rowDown]))
	m.addBias(y, w[rowDownBias])
	return d.Add(x, y), s
}

// product is a, kept or computed.
func (m *mlp) product(s *savedMLP) tensor.Tensor {
	if m.keep {
		return s.a
	}
	return m.act(s)
}

func (m *mlp) act(s *savedMLP) tensor.Tensor {
	if m.cfg.Gated() {
		return m.dev.SwiGLU(s.gate, s.up)
	}
	return m.dev.GELU(s.up)
}

// owedMLP is what the weight gradients need besides saved.
type owedMLP struct {
	g          tensor.Tensor // [B, S, H] gradient of a·Wdown
	dgate, dup tensor.Tensor // of the projections
	dh         *comm.Handle
}

// Backward returns the gradient of x and adds those of the weights to gr.
func (m *mlp) Backward(w, gr []tensor.Tensor, dy tensor.Tensor, s *savedMLP) tensor.Tensor {
	m.dev.BiasBack(gr[rowDownBias], dy)
	owed := m.BackwardInput(w, dy, s)
	m.BackwardWeight(w, gr, s, owed)
	return m.normBackAdd(normGrad{gr[rowNorm2], gr[rowNorm2Bias]}, owed.dh.Wait(), s.x, s.rstd, w[rowNorm2], dy)
}

// BackwardInput undoes Forward up to the seam.
func (m *mlp) BackwardInput(w []tensor.Tensor, dy tensor.Tensor, s *savedMLP) *owedMLP {
	d, owed := m.dev, &owedMLP{}
	owed.g = m.residual.ExitGrad(m.grp, "mlp exit", dy)
	da := d.Contract("bsf", owed.g, w[rowDown])
	var dh tensor.Tensor
	if m.cfg.Gated() {
		owed.dgate, owed.dup = d.SwiGLUBack(da, s.gate, s.up)
		dh = d.Contract("bsh", owed.dgate, w[rowGate])
		d.ContractAdd(dh, owed.dup, w[rowUp])
	} else {
		owed.dup = d.GELUBack(da, s.up)
		dh = d.Contract("bsh", owed.dup, w[rowUp])
	}
	owed.dh = m.residual.EnterGrad(m.grp, "mlp enter", dh)
	return owed
}

// BackwardWeight adds the gradients of the weights, from a rebuilt input and a rebuilt product.
func (m *mlp) BackwardWeight(w, gr []tensor.Tensor, s *savedMLP, owed *owedMLP) {
	d := m.dev
	weightGrad(d, gr[rowDown], owed.g, m.product(s))
	n := s.n
	if !m.keep {
		n = m.normAgain(s.x, s.rstd, w[rowNorm2], w[rowNorm2Bias])
	}
	h := m.residual.Enter(m.grp, "mlp enter again", n)
	weightGrad(d, gr[rowGate], owed.dgate, h)
	weightGrad(d, gr[rowUp], owed.dup, h)
	d.BiasBack(gr[rowGateBias], owed.dgate)
	d.BiasBack(gr[rowUpBias], owed.dup)
}
