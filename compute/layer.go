package compute

import "heddle/tensor"

// Norm is RMSNorm over the last dim (Zhang and Sennrich 2019): y = x·rstd·w, rstd = 1/√(mean(x²)+eps).
// x [..., h], w [h] → y [..., h], rstd [...].
func (d *Device) Norm(x, w tensor.Tensor, eps float64) (y, rstd tensor.Tensor) {
	y, rstd = d.normOut("norm", x, w)
	d.run(Call{Op: "norm", Args: d.args(y, x, w), Flops: 4 * int64(x.Elems())}, func() { d.leaf.Norm(y, rstd, x, w, eps) })
	return y, rstd
}

func (d *Device) normOut(op string, x, w tensor.Tensor) (y, rstd tensor.Tensor) {
	last := len(x.Letters) - 1
	at := d.pointwise(op, x.Letters, x.Letters[last:], x, w)
	d.sizes(op, x.Letters, x, w)
	return d.New(d.Type, x.Letters, x.Dims, at), d.New(d.Type.Wide(), x.Letters[:last], x.Dims[:last], x.At)
}

// NormAgain rebuilds Norm's y from a kept rstd.
func (d *Device) NormAgain(x, rstd, w tensor.Tensor) tensor.Tensor {
	last := len(x.Letters) - 1
	at := d.pointwise("norm again", x.Letters, x.Letters[last:], x, w, rstd)
	y := d.New(d.Type, x.Letters, x.Dims, at)
	d.run(Call{Op: "norm again", Args: d.args(y, x, w), Flops: 2 * int64(x.Elems())}, func() { d.leaf.NormAgain(y, x, rstd, w) })
	return y
}

// NormBack is the gradient of Norm: it returns dx and adds to dw, the gradient of w ([h], place dual to w's use). A dw
// without letters is not wanted (w is frozen).
func (d *Device) NormBack(dw, dy, x, rstd, w tensor.Tensor) tensor.Tensor {
	dx := d.New(d.Type, x.Letters, x.Dims, d.linear("norm back", x.Letters, dy, x, w))
	d.into("norm back", dw, dy, x)
	d.run(Call{Op: "norm back", Args: d.args(dx, dy, x, w), Flops: 8 * int64(x.Elems())}, func() { d.leaf.NormBack(dx, dw, dy, x, rstd, w) })
	return dx
}

// NormBackAdd is around + NormBack: around is the gradient that went past the norm.
func (d *Device) NormBackAdd(dw, dy, x, rstd, w, around tensor.Tensor) tensor.Tensor {
	dx := d.New(d.Type, x.Letters, x.Dims, d.linear("norm back add", x.Letters, dy, x, w))
	if around.Letters != dx.Letters || around.At != dx.At {
		d.failf("norm back add", "%s + %s", d.Describe(around), d.Describe(dx))
	}
	d.sizes("norm back add", x.Letters, x, around)
	d.into("norm back add", dw, dy, x)
	d.run(Call{Op: "norm back add", Args: d.args(dx, dy, x, w), Flops: 9 * int64(x.Elems())}, func() { d.leaf.NormBackAdd(dx, dw, dy, x, rstd, w, around) })
	return dx
}

// into checks that what in yields may be added to acc. An acc without letters takes nothing.
func (d *Device) into(op string, acc tensor.Tensor, in ...tensor.Tensor) {
	if !Wanted(acc) {
		return
	}
	if at := d.linear(op, acc.Letters, in...); at != acc.At {
		d.failf(op, "adds %s at %s to %s", acc.Letters, d.Mesh.String(at), d.Mesh.String(acc.At))
	}
}

// Wanted tells whether a gradient is to be computed: the zero Tensor stands for a frozen parameter's.
func Wanted(grad tensor.Tensor) bool { return grad.Dims != nil }

// Rope rotates heads by position (Su et al. 2021; pairs j, j+D/2 as in Llama and Qwen). x [b, s, ..., d], pos [s].
func (d *Device) Rope(x, pos tensor.Tensor, r Rope) tensor.Tensor {
	for a := range d.Mesh.Axes() {
		if x.At[a].Letter() == 'd' {
			d.failf("rope", "%s shards d", d.Describe(x))
		}
	}
	y := d.New(d.Type, x.Letters, x.Dims, d.linear("rope", x.Letters, x, pos))
	d.sizes("rope", x.Letters, x, pos)
	d.run(Call{Op: "rope", Args: d.args(y, x, pos), Flops: 3 * int64(x.Elems())}, func() { d.leaf.Rope(y, x, pos, r) })
	return y
}

// NormRope is Norm of heads and Rope of the result: x [b, s, heads…, d], w [d], pos as for Rope → y like x, rstd without d.
func (d *Device) NormRope(x, w, pos tensor.Tensor, eps float64, r Rope) (y, rstd tensor.Tensor) {
	d.turns("norm rope", x, pos)
	y, rstd = d.normOut("norm rope", x, w)
	d.run(Call{Op: "norm rope", Args: d.args(y, x, w), Flops: 7 * int64(x.Elems())}, func() { d.leaf.NormRope(y, rstd, x, w, pos, eps, r) })
	return y, rstd
}

// turns checks that x can be turned by pos.
func (d *Device) turns(op string, x, pos tensor.Tensor) {
	for a := range d.Mesh.Axes() {
		if x.At[a].Letter() == 'd' {
			d.failf(op, "%s shards d", d.Describe(x))
		}
	}
	d.linear(op, x.Letters, x, pos)
	d.sizes(op, x.Letters, x, pos)
}

// NormRopeAgain rebuilds NormRope's y from a kept rstd.
func (d *Device) NormRopeAgain(x, rstd, w, pos tensor.Tensor, r Rope) tensor.Tensor {
	d.turns("norm rope again", x, pos)
	last := len(x.Letters) - 1
	y := d.New(d.Type, x.Letters, x.Dims, d.pointwise("norm rope again", x.Letters, x.Letters[last:], x, w, rstd))
	d.run(Call{Op: "norm rope again", Args: d.args(y, x, w), Flops: 5 * int64(x.Elems())}, func() { d.leaf.NormRopeAgain(y, x, rstd, w, pos, r) })
	return y
}

// NormRopeBack is the gradient of NormRope: it returns dx and adds to dw as NormBack does. r is Forward's.
func (d *Device) NormRopeBack(dw, dy, x, rstd, w, pos tensor.Tensor, r Rope) tensor.Tensor {
	d.turns("norm rope back", dy, pos)
	dx := d.New(d.Type, x.Letters, x.Dims, d.linear("norm rope back", x.Letters, dy, x, w))
	d.into("norm rope back", dw, dy, x)
	d.run(Call{Op: "norm rope back", Args: d.args(dx, dy, x, w), Flops: 11 * int64(x.Elems())}, func() { d.leaf.NormRopeBack(dx, dw, dy, x, rstd, w, pos, r) })
	return dx
}

// SwiGLU is silu(gate)·up (Shazeer 2020). gate, up [..., f].
func (d *Device) SwiGLU(gate, up tensor.Tensor) tensor.Tensor {
	y := d.New(d.Type, gate.Letters, d.sizes("swiglu", gate.Letters, gate, up), d.pointwise("swiglu", gate.Letters, "", gate, up))
	d.run(Call{Op: "swiglu", Args: d.args(y, gate, up), Flops: 5 * int64(y.Elems())}, func() { d.leaf.SwiGLU(y, gate, up) })
	return y
}

// SwiGLUBack is its gradient, linear in dy.
func (d *Device) SwiGLUBack(dy, gate, up tensor.Tensor) (dgate, dup tensor.Tensor) {
	at := d.linear("swiglu back", dy.Letters, dy, gate, up)
	n := d.sizes("swiglu back", dy.Letters, dy, gate, up)
	dgate, dup = d.New(d.Type, dy.Letters, n, at), d.New(d.Type, dy.Letters, n, at)
	d.run(Call{Op: "swiglu back", Args: d.args(dgate, dy, gate, up), Flops: 10 * int64(dy.Elems())}, func() { d.leaf.SwiGLUBack(dgate, dup, dy, gate, up) })
	return dgate, dup
}

// Attention is causal attention with scale 1/√d: token i sees every token j with pos[j] ≤ pos[i], pos [s]. With pos [b,s] a
// sequence is documents that follow each other, whose positions start at 0: token i sees the pos[b,i] tokens before it and
// itself. It needs all of s and d. q [b,s,g,r,d], k and v [b,s,g,d] → o [b,s,g,r,d], lse [b,s,g,r] the natural log of the sum
// of exponentials.
func (d *Device) Attention(q, k, v, pos tensor.Tensor) (o, lse tensor.Tensor) {
	at := d.pointwise("attention", q.Letters, "sd", q, k, v, pos)
	d.sizes("attention", q.Letters, q, k, v, pos)
	o, lse = d.New(d.Type, q.Letters, q.Dims, at), d.New(d.Type.Wide(), q.Letters[:4], q.Dims[:4], at)
	d.run(Call{Op: "attention", Args: d.args(o, q, k, v), Flops: attentionFlops(q, 2)}, func() { d.leaf.Attention(o, lse, q, k, v, pos) })
	return o, lse
}

// attentionFlops counts products matrix products over the causal half: 2·B·A·D·S²/2 each.
func attentionFlops(q tensor.Tensor, products int64) int64 {
	return products * int64(q.Elems()) * int64(q.Dim('s'))
}

// Delta is the row sum that AttentionBack needs, Σ_d o·do [b,s,g,r] (Dao 2023, algorithm 2). It is taken where o was kept,
// before do changes its layout, so that o need not be kept in both.
func (d *Device) Delta(o, do tensor.Tensor) tensor.Tensor {
	delta := d.New(d.Type.Wide(), o.Letters[:4], d.sizes("delta", o.Letters[:4], o, do), d.linear("delta", o.Letters[:4], do, o))
	d.run(Call{Op: "delta", Args: d.args(delta, o, do), Flops: 2 * int64(o.Elems())}, func() { d.leaf.Delta(delta, o, do) })
	return delta
}

// AttentionBack is the gradient of Attention, linear in do (delta is too).
func (d *Device) AttentionBack(in AttentionSaved) (dq, dk, dv tensor.Tensor) {
	q, k := in.Q, in.K
	if in.DO.At != in.Delta.At {
		d.failf("attention back", "%s with %s", d.Describe(in.DO), d.Describe(in.Delta))
	}
	kv := d.linear("attention back", k.Letters, in.DO, q, k, in.V)
	d.sizes("attention back", q.Letters, in.DO, in.Delta, q, k, in.V, in.LSE, in.Pos)
	g := AttentionGrad{
		DQ: d.New(d.Type, q.Letters, q.Dims, d.linear("attention back", q.Letters, in.DO, q, k, in.V)),
		DK: d.New(d.Type, k.Letters, k.Dims, kv),
		DV: d.New(d.Type, k.Letters, k.Dims, kv),
	}
	d.run(Call{Op: "attention back", Args: d.args(g.DQ, in.DO, q, k, in.V), Flops: attentionFlops(q, 5)}, func() { d.leaf.AttentionBack(g, in) })
	return g.DQ, g.DK, g.DV
}
