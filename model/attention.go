package model

import (
	"heddle/comm"
	"heddle/compute"
	"heddle/parallel"
	"heddle/tensor"
)

// block is what a sub-block computes with: a machine, its group and the two seams. Blocks hold no activations.
type block struct {
	cfg      Config
	dev      *compute.Device
	grp      *comm.Group
	residual parallel.Residual
	attend   parallel.Attend
	keep     bool // nothing is rebuilt in Backward
}

// attention is the first sub-block of a layer: x + o·Wo of attention over norm(x).
//
// Shapes on one rank. P is the tp ranks that cut heads, C the cp ranks; S' is the residual stream's share of the sequence:
// S/P under Megatron, S/C under Ulysses, else S. Between Enter and Exit the sequence is S (S/C under Ulysses), between
// ToHeads and ToTokens it is always S.
type attention struct{ block }

// savedAttention is what Backward reads: the activation budget of the sub-block.
type savedAttention struct {
	x, rstd tensor.Tensor // [B, S', H], [B, S']; x less its mean under LayerNorm
	q       tensor.Tensor // [B, S, G, R, D] / (P·C) heads; before norm and RoPE where heads are normed, else as attention read it
	k, v    tensor.Tensor // [B, S, G, D]
	qr, kr  tensor.Tensor // [B, S, G, R], [B, S, G]: 1/rms of q and k where heads are normed
	o       tensor.Tensor // [B, S or S/C, G, R, D]: what Wo reads
	lse     tensor.Tensor // [B, S, G, R]

	// Kept only where nothing is to be rebuilt (Policy mode all): the normed input; q and k as attention read them, where
	// heads are normed.
	n, qt, kt tensor.Tensor
}

func (s *savedAttention) tensors() []tensor.Tensor {
	return present(s.x, s.rstd, s.q, s.k, s.v, s.qr, s.kr, s.o, s.lse, s.n, s.qt, s.kt)
}

// present leaves out tensors that were not kept.
func present(ts ...tensor.Tensor) []tensor.Tensor {
	out := ts[:0]
	for _, t := range ts {
		if t.Dims != nil {
			out = append(out, t)
		}
	}
	return out
}

// Save computes what Backward will read. w are the layer's slots.
func (a *attention) Save(w []tensor.Tensor, x, pos tensor.Tensor) *savedAttention {
	d, s := a.dev, &savedAttention{}
	var n tensor.Tensor
	s.x, n, s.rstd = a.norm(x, w[rowNorm1], w[rowNorm1Bias])
	h := a.residual.Enter(a.grp, "attention enter", n)
	q := a.project("bsgrd", h, w[rowQ], w[rowQBias])
	k := a.project("bsgd", h, w[rowK], w[rowKBias])
	v := a.project("bsgd", h, w[rowV], w[rowVBias])
	heads := a.attend.ToHeads(a.grp, "attention heads", q, k, v)
	s.q, s.k, s.v = heads[0], heads[1], heads[2]
	qt, kt := a.turned(w, pos, s)
	var o tensor.Tensor
	o, s.lse = d.Attention(qt, kt, s.v, pos)
	if a.keep {
		s.n = n
	}
	s.o = a.attend.ToTokens(a.grp, "attention tokens", o)[0]
	return s
}

// turned are q and k as attention reads them: normed where the family norms heads, turned by their positions. Heads that are
// not normed are kept as turned: nothing is to be rebuilt.
func (a *attention) turned(w []tensor.Tensor, pos tensor.Tensor, s *savedAttention) (q, k tensor.Tensor) {
	d := a.dev
	if !a.cfg.QKNorm() {
		s.q, s.k = a.turn(s.q, pos, false), a.turn(s.k, pos, false)
		return s.q, s.k
	}
	q, s.qr = d.NormRope(s.q, w[rowQNorm], pos, a.cfg.Eps, a.cfg.rope())
	if k, s.kr = d.NormRope(s.k, w[rowKNorm], pos, a.cfg.Eps, a.cfg.rope()); a.keep {
		s.qt, s.kt = q, k
	}
	return q, k
}

// turnedAgain are the same in Backward.
func (a *attention) turnedAgain(w []tensor.Tensor, pos tensor.Tensor, s *savedAttention) (q, k tensor.Tensor) {
	switch d := a.dev; {
	case !a.cfg.QKNorm():
		return s.q, s.k
	case a.keep:
		return s.qt, s.kt
	default:
		return d.NormRopeAgain(s.q, s.qr, w[rowQNorm], pos, a.cfg.rope()), d.NormRopeAgain(s.k, s.kr, w[rowKNorm], pos, a.cfg.rope())
	}
}

// turn rotates heads by their positions, unless positions are an embedding.
func (a *attention) turn(x, pos tensor.Tensor, back bool) tensor.Tensor {
	if a.cfg.Learned() {
		return x
	}
	r := a.cfg.rope()
	r.Back = back
	return a.dev.Rope(x, pos, r)
}

// Forward is Save and the tail: x + Exit(o·Wo).
func (a *attention) Forward(w []tensor.Tensor, x, pos tensor.Tensor) (tensor.Tensor, *savedAttention) {
	s := a.Save(w, x, pos)
	y := a.residual.Exit(a.grp, "attention exit", a.dev.Contract("bsh", s.o, w[rowO]))
	a.addBias(y, w[rowOBias])
	return a.dev.Add(x, y), s
}

// owedAttention is what the weight gradients need besides saved.
type owedAttention struct {
	g          tensor.Tensor // [B, S, H] gradient of o·Wo
	dq, dk, dv tensor.Tensor // gradients of the projections
	dh         *comm.Handle  // of norm(x), on its way through the seam
}

// Backward returns the gradient of x and adds those of the weights to gr. What the wire needs comes first: the weight
// gradients are computed while dh is on its way.
func (a *attention) Backward(w, gr []tensor.Tensor, dy, pos tensor.Tensor, s *savedAttention) tensor.Tensor {
	owed := a.BackwardInput(w, gr, dy, pos, s)
	a.BackwardWeight(w, gr, s, owed)
	return a.normBackAdd(normGrad{gr[rowNorm1], gr[rowNorm1Bias]}, owed.dh.Wait(), s.x, s.rstd, w[rowNorm1], dy)
}

// BackwardInput undoes Forward from the tail to the head up to the seam, one line for each of Save's.
func (a *attention) BackwardInput(w, gr []tensor.Tensor, dy, pos tensor.Tensor, s *savedAttention) *owedAttention {
	d, owed := a.dev, &owedAttention{}
	d.BiasBack(gr[rowOBias], dy)
	owed.g = a.residual.ExitGrad(a.grp, "attention exit", dy)
	do := d.Contract("bsgrd", owed.g, w[rowO])
	back := a.attend.ToHeads(a.grp, "attention tokens grad", do, d.Delta(s.o, do))
	q, k := a.turnedAgain(w, pos, s)
	dq, dk, dv := d.AttentionBack(compute.AttentionSaved{DO: back[0], Delta: back[1], Q: q, K: k, V: s.v, LSE: s.lse, Pos: pos})
	if a.cfg.QKNorm() {
		dq = d.NormRopeBack(gr[rowQNorm], dq, s.q, s.qr, w[rowQNorm], pos, a.cfg.rope())
		dk = d.NormRopeBack(gr[rowKNorm], dk, s.k, s.kr, w[rowKNorm], pos, a.cfg.rope())
	} else {
		dq, dk = a.turn(dq, pos, true), a.turn(dk, pos, true)
	}
	tokens := a.attend.ToTokens(a.grp, "attention heads grad", dq, dk, dv)
	owed.dq, owed.dk, owed.dv = tokens[0], tokens[1], tokens[2]
	dh := d.Contract("bsh", owed.dq, w[rowQ])
	d.ContractAdd(dh, owed.dk, w[rowK])
	d.ContractAdd(dh, owed.dv, w[rowV])
	owed.dh = a.residual.EnterGrad(a.grp, "attention enter", dh)
	return owed
}

// BackwardWeight adds the gradients of the projections. The input of the projections is rebuilt: normed and entered again.
func (a *attention) BackwardWeight(w, gr []tensor.Tensor, s *savedAttention, owed *owedAttention) {
	d := a.dev
	n := s.n
	if !a.keep {
		n = a.normAgain(s.x, s.rstd, w[rowNorm1], w[rowNorm1Bias])
	}
	h := a.residual.Enter(a.grp, "attention enter again", n)
	weightGrad(d, gr[rowO], owed.g, s.o)
	weightGrad(d, gr[rowQ], owed.dq, h)
	weightGrad(d, gr[rowK], owed.dk, h)
	weightGrad(d, gr[rowV], owed.dv, h)
	d.BiasBack(gr[rowQBias], owed.dq)
	d.BiasBack(gr[rowKBias], owed.dk)
	d.BiasBack(gr[rowVBias], owed.dv)
}

// weightGrad adds dyᵀ·x to the gradient of a weight unless it is frozen.
func weightGrad(d *compute.Device, grad, dy, x tensor.Tensor) {
	if compute.Wanted(grad) {
		d.ContractAdd(grad, dy, x)
	}
}
