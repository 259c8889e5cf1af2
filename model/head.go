package model

import (
	"heddle/compute"
	"heddle/mesh"
	"heddle/parallel"
	"heddle/param"
	"heddle/tensor"
)

// embedding looks tokens up and puts them on the residual stream.
type embedding struct {
	block
	lo int // id of this rank's first row
}

// Forward is Exit(w[ids]): with a sharded vocabulary each rank has its own ids' rows and zeros elsewhere.
func (e *embedding) Forward(w, ids tensor.Tensor) tensor.Tensor {
	return e.residual.Exit(e.grp, "embedding exit", e.dev.Embed(ids, w, e.lo))
}

// Backward adds the gradient of the rows.
func (e *embedding) Backward(gr, ids, dx tensor.Tensor) {
	e.dev.EmbedBack(gr, e.residual.ExitGrad(e.grp, "embedding exit", dx), ids, e.lo)
}

// head is the final norm, the logits and the loss over a vocabulary cut over the tp ranks. Forward and Backward follow each
// other at once, so that what lies between is kept, not rebuilt.
type head struct {
	block
	cut   mesh.Set // axes that cut the vocabulary
	vocab compute.Vocab
}

// newHead finds this rank's part of the vocabulary from the row of the weight.
func newHead(b block, s *parallel.Scheme, r *param.Row) head {
	box := r.Box(s.Mesh, b.dev.Rank)
	lo := min(box.Lo[0], r.Valid)
	return head{block: b, cut: s.TP.KV | s.TP.Rep, vocab: compute.Vocab{Lo: box.Lo[0], Valid: min(box.Hi[0], r.Valid) - lo}}
}

// keptHead is what lies between Forward and Backward.
type keptHead struct {
	x, rstd, h tensor.Tensor // [B, S', H], [B, S'], [B, S or S/C, H]
	logits     tensor.Tensor // [B, S or S/C, V/P]
	m, sp      tensor.Tensor // [B, S or S/C], [B, S or S/C, 2]: maximum; Σ exp and the label's logit, both less the maximum
}

// Logits are norm(x)·Wᵀ.
func (h *head) Logits(norm, w, x tensor.Tensor) *keptHead {
	k := &keptHead{x: x}
	n, rstd := h.dev.Norm(x, norm, h.cfg.Eps)
	k.rstd = rstd
	k.h = h.residual.Enter(h.grp, "head enter", n)
	k.logits = h.dev.Contract("bsv", k.h, w)
	return k
}

// Forward is the sum of the token losses, partial over every axis that cuts tokens. The maximum and the sum of exponentials
// are reduced over the vocabulary's axes, the picked logit together with the sum (Megatron-LM's vocabulary-parallel loss).
func (h *head) Forward(norm, w, x tensor.Tensor, t compute.Targets) (tensor.Tensor, *keptHead) {
	d, k := h.dev, h.Logits(norm, w, x)
	k.m = h.grp.AllReduceMax("loss maximum", d.RowMax(k.logits, h.vocab), h.cut)
	k.m = h.grp.Replicate("loss maximum", k.m, h.cut)
	sp := h.grp.AllReduce("loss sum", d.SumExp(k.logits, k.m, t.Labels, h.vocab), h.cut, mesh.I)
	loss := d.TokenLoss(sp, t.Mask)
	k.sp = h.grp.Replicate("loss sum", sp, h.cut)
	return loss, k
}

// Backward returns the gradient of x and adds those of the head's weight and the final norm. Logits become their gradient.
func (h *head) Backward(norm, w, grNorm, grW tensor.Tensor, t compute.Targets, k *keptHead) tensor.Tensor {
	d := h.dev
	dl := d.LossBack(k.logits, k.m, k.sp, t, h.vocab)
	dh := h.residual.EnterGrad(h.grp, "head enter", d.Contract("bsh", dl, w))
	weightGrad(d, grW, dl, k.h)
	return d.NormBack(grNorm, dh.Wait(), k.x, k.rstd, norm)
}
