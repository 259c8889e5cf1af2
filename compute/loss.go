package compute

import (
	"heddle/mesh"
	"heddle/tensor"
)

// oneHot is what an index into rows of letter v is to the place rules: a one-hot tensor [.., v], never stored. Where v is
// sharded at, each rank owns the columns of its own rows.
func (d *Device) oneHot(op string, ids tensor.Tensor, v byte, at mesh.Places) mesh.Operand {
	oh := mesh.Operand{Letters: ids.Letters + string(v), At: ids.At, Const: true}
	for a := range d.Mesh.Axes() {
		if at[a] == mesh.S(v) {
			if p := ids.At[a]; p != mesh.R && p != mesh.I {
				d.failf(op, "index into rows sharded on %s must be replicated, is %s", d.Mesh.Axes()[a].Name, p)
			}
			oh.At[a] = mesh.S(v)
		}
	}
	return oh
}

func (d *Device) linearOperands(op, out string, in ...mesh.Operand) mesh.Places {
	at, err := d.Mesh.Linear(op, out, in...)
	if err != nil {
		d.Fail(op, err)
	}
	return at
}

// Embed looks up rows: ids [b,s], w [v,h] → [b,s,h]. A sharded v gives a partial sum; lo is the id of the first local row. The
// rows' letter is w's first: a table of positions has another than v.
func (d *Device) Embed(ids, w tensor.Tensor, lo int) tensor.Tensor {
	at := d.linearOperands("embed", ids.Letters+"h", d.oneHot("embed", ids, w.Letters[0], w.At), w.Operand())
	y := d.New(d.Type, ids.Letters+"h", append(append([]int(nil), ids.Dims...), w.Dim('h')), at)
	d.run(Call{Op: "embed", Args: d.args(y, ids, w)}, func() { d.leaf.Embed(y, ids, w, lo) })
	return y
}

// EmbedBack adds the gradient of the looked-up rows to dw [v,h].
func (d *Device) EmbedBack(dw, dy, ids tensor.Tensor, lo int) {
	if !Wanted(dw) {
		return
	}
	oh := d.oneHot("embed back", ids, dw.Letters[0], dw.At)
	if at := d.linearOperands("embed back", dw.Letters, oh, dy.Operand()); at != dw.At {
		d.failf("embed back", "adds %s to %s", d.Mesh.String(at), d.Mesh.String(dw.At))
	}
	d.run(Call{Op: "embed back", Args: d.args(dw, dy, ids)}, func() { d.leaf.EmbedBack(dw, dy, ids, lo) })
}

// RowMax is the largest logit of a row over the local columns: [b,s,v] → [b,s], a partial maximum where v is sharded.
func (d *Device) RowMax(logits tensor.Tensor, v Vocab) tensor.Tensor {
	at := d.pointwise("row max", logits.Letters, "", logits)
	for a := range d.Mesh.Axes() {
		if at[a] == mesh.S('v') {
			at[a] = mesh.M
		}
	}
	m := d.New(d.Type.Wide(), "bs", logits.Dims[:2], at)
	d.run(Call{Op: "row max", Args: d.args(m, logits)}, func() { d.leaf.RowMax(m, logits, v.Valid) })
	return m
}

// SumExp is, a row, Σ_v exp(logit − m) and the logit of the label − m, side by side so that one reduction serves both:
// [b,s,v], m [b,s], labels [b,s] → [b,s,x], x = 2.
func (d *Device) SumExp(logits, m, labels tensor.Tensor, v Vocab) tensor.Tensor {
	d.pointwise("sum exp", logits.Letters, "", logits, m) // refuses partial logits and a partial m
	at := d.linearOperands("sum exp", "bsx", logits.Operand(), m.Operand(), d.oneHot("sum exp", labels, 'v', logits.At))
	sp := d.New(d.Type.Wide(), "bsx", []int{logits.Dims[0], logits.Dims[1], 2}, at)
	d.run(Call{Op: "sum exp", Args: d.args(sp, logits, m), Flops: 3 * int64(logits.Elems())}, func() { d.leaf.SumExp(sp, logits, m, labels, v) })
	return sp
}

// TokenLoss is the sum over unmasked tokens of log Σ exp − logit of the label, from reduced pieces; the result is a scalar, a
// partial sum over every axis that shards tokens. mask [b,s] is 0 or 1, or any weight of a token's loss.
func (d *Device) TokenLoss(sp, mask tensor.Tensor) tensor.Tensor {
	at := d.pointwise("token loss", "", "", sp, mask)
	loss := d.New(d.Type.Wide(), "", nil, at)
	d.run(Call{Op: "token loss", Args: d.args(loss, sp, mask)}, func() { d.leaf.TokenLoss(loss, sp, mask) })
	return loss
}

// LossBack turns logits into their gradient in place: (softmax − onehot(label))·mask ÷ count.
func (d *Device) LossBack(logits, m, sp tensor.Tensor, t Targets, v Vocab) tensor.Tensor {
	at := d.pointwise("loss back", logits.Letters, "", logits, m, sp, t.Mask, t.Count)
	if at != logits.At {
		d.failf("loss back", "%s becomes %s", d.Describe(logits), d.Mesh.String(at))
	}
	d.run(Call{Op: "loss back", Args: d.args(logits, m, sp), Flops: 3 * int64(logits.Elems())}, func() { d.leaf.LossBack(logits, m, sp, t, v) })
	return logits
}

// SumAll is the sum of all elements, a scalar; a partial sum over every axis that shards x.
func (d *Device) SumAll(x tensor.Tensor) tensor.Tensor {
	y := d.New(d.Type.Wide(), "", nil, d.linear("sum", "", x))
	y.Const = x.Const
	d.run(Call{Op: "sum", Args: d.args(y, x)}, func() { d.leaf.Zero(y); d.leaf.Sum(y, x) })
	return y
}
