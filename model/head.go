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

// Forward is Exit(w[ids]): with a sharded vocabulary each rank has its own ids' rows and zeros elsewhere. Learned positions
// are added on the stream, each token's own.
func (e *embedding) Forward(w []tensor.Tensor, b Batch) tensor.Tensor {
	x := e.residual.Exit(e.grp, "embedding exit", e.dev.Embed(b.IDs, w[rowEmbed], e.lo))
	if e.cfg.Learned() {
		e.dev.AddInto(x, e.dev.Embed(b.At, w[rowPositions], 0))
	}
	return x
}

// Backward adds the gradient of the rows.
func (e *embedding) Backward(gr []tensor.Tensor, b Batch, dx tensor.Tensor) {
	if e.cfg.Learned() {
		e.dev.EmbedBack(gr[rowPositions], dx, b.At, 0)
	}
	e.dev.EmbedBack(gr[rowEmbed], e.residual.ExitGrad(e.grp, "embedding exit", dx), b.IDs, e.lo)
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
	x, rstd, h tensor.Tensor // [B, S', H], [B, S'], [B, S or S/C, H]; x less its mean under LayerNorm
	logits     tensor.Tensor // [B, S or S/C, V/P]
	m, sp      tensor.Tensor // [B, S or S/C], [B, S or S/C, 2]: maximum; Σ exp and the label's logit, both less the maximum
}

// Logits are norm(x)·Wᵀ. w are the root's slots; a tied head is the embedding.
func (h *head) Logits(w []tensor.Tensor, x tensor.Tensor) *keptHead {
	k := &keptHead{}
	var n tensor.Tensor
	k.x, n, k.rstd = h.norm(x, w[rowFinal], w[rowFinalBias])
	k.h = h.residual.Enter(h.grp, "head enter", n)
	k.logits = h.dev.Contract("bsv", k.h, w[h.row()])
	return k
}

// row is the slot of the head's weight.
func (h *head) row() int {
	if h.cfg.Tied {
		return rowEmbed
	}
	return rowHead
}

// Forward is the sum of the token losses, partial over every axis that cuts tokens. The maximum and the sum of exponentials
// are reduced over the vocabulary's axes, the picked logit together with the sum (Megatron-LM's vocabulary-parallel loss).
func (h *head) Forward(w []tensor.Tensor, x tensor.Tensor, t compute.Targets) (tensor.Tensor, *keptHead) {
	d, k := h.dev, h.Logits(w, x)
	k.m = h.grp.AllReduceMax("loss maximum", d.RowMax(k.logits, h.vocab), h.cut)
	k.m = h.grp.Replicate("loss maximum", k.m, h.cut)
	sp := h.grp.AllReduce("loss sum", d.SumExp(k.logits, k.m, t.Labels, h.vocab), h.cut, mesh.I)
	loss := d.TokenLoss(sp, t.Mask)
	k.sp = h.grp.Replicate("loss sum", sp, h.cut)
	return loss, k
}

// Backward returns the gradient of x and adds those of the head's weight and the final norm. Logits become their gradient.
func (h *head) Backward(w, gr []tensor.Tensor, t compute.Targets, k *keptHead) tensor.Tensor {
	d := h.dev
	dl := d.LossBack(k.logits, k.m, k.sp, t, h.vocab)
	dh := h.residual.EnterGrad(h.grp, "head enter", d.Contract("bsh", dl, w[h.row()]))
	weightGrad(d, gr[h.row()], dl, k.h)
	return h.normBack(normGrad{gr[rowFinal], gr[rowFinalBias]}, dh.Wait(), k.x, k.rstd, w[rowFinal])
}
