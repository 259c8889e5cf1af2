package model

import (
	"heddle/comm"
	"heddle/tensor"
)

// mlp is the second sub-block of a layer: x + (silu(h·Wgateᵀ)·(h·Wupᵀ))·Wdownᵀ with h = norm(x). P is the tp ranks.
type mlp struct{ block }

// savedMLP is what Backward reads.
type savedMLP struct {
	x, rstd  tensor.Tensor // [B, S', H], [B, S']
	gate, up tensor.Tensor // [B, S or S/C, F/P]

	n, a tensor.Tensor // kept only where nothing is to be rebuilt: the normed input, silu(gate)·up
}

func (s *savedMLP) tensors() []tensor.Tensor {
	return present(s.x, s.rstd, s.gate, s.up, s.n, s.a)
}

// Save computes what Backward will read.
func (m *mlp) Save(w []tensor.Tensor, x tensor.Tensor) *savedMLP {
	d, s := m.dev, &savedMLP{x: x}
	n, rstd := d.Norm(x, w[rowNorm2], m.cfg.Eps)
	s.rstd = rstd
	h := m.residual.Enter(m.grp, "mlp enter", n)
	s.gate, s.up = d.Contract("bsf", h, w[rowGate]), d.Contract("bsf", h, w[rowUp])
	if m.keep {
		s.n, s.a = n, d.SwiGLU(s.gate, s.up)
	}
	return s
}

// Forward is Save and the tail: x + Exit(swiglu·Wdownᵀ).
func (m *mlp) Forward(w []tensor.Tensor, x tensor.Tensor) (tensor.Tensor, *savedMLP) {
	d, s := m.dev, m.Save(w, x)
	y := m.residual.Exit(m.grp, "mlp exit", d.Contract("bsh", m.product(s), w[rowDown]))
	return d.Add(x, y), s
}

// product is silu(gate)·up, kept or computed.
func (m *mlp) product(s *savedMLP) tensor.Tensor {
	if m.keep {
		return s.a
	}
	return m.dev.SwiGLU(s.gate, s.up)
}

// owedMLP is what the weight gradients need besides saved.
type owedMLP struct {
	g, dgate, dup tensor.Tensor
	dh            *comm.Handle
}

// Backward returns the gradient of x and adds those of the weights to gr.
func (m *mlp) Backward(w, gr []tensor.Tensor, dy tensor.Tensor, s *savedMLP) tensor.Tensor {
	owed := m.BackwardInput(w, dy, s)
	m.BackwardWeight(w, gr, s, owed)
	dx := m.dev.NormBack(gr[rowNorm2], owed.dh.Wait(), s.x, s.rstd, w[rowNorm2])
	return m.dev.Add(dy, dx)
}

// BackwardInput undoes Forward up to the seam.
func (m *mlp) BackwardInput(w []tensor.Tensor, dy tensor.Tensor, s *savedMLP) *owedMLP {
	d, owed := m.dev, &owedMLP{}
	owed.g = m.residual.ExitGrad(m.grp, "mlp exit", dy)
	owed.dgate, owed.dup = d.SwiGLUBack(d.Contract("bsf", owed.g, w[rowDown]), s.gate, s.up)
	dh := d.Contract("bsh", owed.dgate, w[rowGate])
	d.ContractAdd(dh, owed.dup, w[rowUp])
	owed.dh = m.residual.EnterGrad(m.grp, "mlp enter", dh)
	return owed
}

// BackwardWeight adds the gradients of the three weights, from a rebuilt input and a rebuilt product.
func (m *mlp) BackwardWeight(w, gr []tensor.Tensor, s *savedMLP, owed *owedMLP) {
	d := m.dev
	weightGrad(d, gr[rowDown], owed.g, m.product(s))
	n := s.n
	if !m.keep {
		n = d.NormAgain(s.x, s.rstd, w[rowNorm2])
	}
	h := m.residual.Enter(m.grp, "mlp enter again", n)
	weightGrad(d, gr[rowGate], owed.dgate, h)
	weightGrad(d, gr[rowUp], owed.dup, h)
}
