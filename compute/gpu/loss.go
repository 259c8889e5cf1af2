package gpu

import (
	"heddle/compute"
	"heddle/kernel"
	"heddle/kernel/row"
	"heddle/num"
	"heddle/ptx"
	"heddle/tensor"
)

// Embed is row.Embed.
func (l *Leaf) Embed(y, ids, w tensor.Tensor, lo int) {
	tokens, h := ids.Elems(), w.Dims[1]
	if tokens == 0 {
		return
	}
	key := rowKey{h, dtype(y.Type), wideRows(h, y, w)}
	k := get(l.kernels, l.kernels.embed, key, func() (*row.Embed, error) { return row.NewEmbed(key.cols, key.t, key.wide) })
	o := row.EmbedOperands{Y: l.at(y), W: l.at(w), IDs: l.at(ids), Tokens: tokens, Rows: w.Dims[0], Lo: lo}
	l.run("embed", k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(o, l.sms) })
}

// EmbedBack is row.EmbedBack.
func (l *Leaf) EmbedBack(dw, dy, ids tensor.Tensor, lo int) {
	tokens, h := ids.Elems(), dw.Dims[1]
	if tokens == 0 {
		return
	}
	key := rowKey{0, dtype(dy.Type), wideRows(h, dw, dy)}
	k := get(l.kernels, l.kernels.embedBack, key, func() (*row.EmbedBack, error) { return row.NewEmbedBack(key.t, key.wide) })
	o := row.EmbedBackOperands{DW: l.at(dw), DY: l.at(dy), IDs: l.at(ids), Tokens: tokens, Rows: dw.Dims[0], Cols: h, Lo: lo}
	l.run("embed back", k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(o) })
}

func (l *Leaf) loss(op string, p row.Piece, logits tensor.Tensor, o row.LossOperands) {
	if o.Rows, o.Cols = rowsOf(logits); o.Rows == 0 {
		return
	}
	o.X = l.at(logits)
	c := row.LossConfig{Piece: p, Type: dtype(logits.Type), Wide: wideRows(o.Cols, logits)}
	k := get(l.kernels, l.kernels.loss, c, func() (*row.Loss, error) { return row.NewLoss(c) })
	l.run(op, k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(o, l.sms) })
}

// RowMax is row.Loss's first piece.
func (l *Leaf) RowMax(m, logits tensor.Tensor, valid int) {
	l.loss("row max", row.Max, logits, row.LossOperands{M: l.at(m), Valid: valid})
}

// SumExp is the second.
func (l *Leaf) SumExp(sp, logits, m, labels tensor.Tensor, v compute.Vocab) {
	l.loss("sum exp", row.Sums, logits, row.LossOperands{M: l.at(m), Sums: l.at(sp), Labels: l.at(labels), Valid: v.Valid, Lo: v.Lo})
}

// LossBack is the third.
func (l *Leaf) LossBack(logits, m, sp tensor.Tensor, t compute.Targets, v compute.Vocab) {
	l.loss("loss back", row.Back, logits, row.LossOperands{M: l.at(m), Sums: l.at(sp), Labels: l.at(t.Labels), Mask: l.at(t.Mask), Count: l.at(t.Count), Valid: v.Valid, Lo: v.Lo})
}

// TokenLoss is row.Reduce over tokens.
func (l *Leaf) TokenLoss(loss, sp, mask tensor.Tensor) {
	l.Zero(loss)
	l.reduce("token loss", row.Tokens, loss, sp, mask, mask.Elems())
}

// SumSquares adds Σ x².
func (l *Leaf) SumSquares(out, x tensor.Tensor) {
	l.reduce("sum squares", row.Squares, out, x, tensor.Tensor{}, x.Elems())
}

// Sum adds Σ x.
func (l *Leaf) Sum(out, x tensor.Tensor) {
	l.reduce("sum", row.Plain, out, x, tensor.Tensor{}, x.Elems())
}

// reduce adds the sum of n terms to out: in parts, then over the parts.
func (l *Leaf) reduce(op string, t row.Term, out, x, mask tensor.Tensor, n int) {
	if n == 0 {
		return
	}
	c := row.ReduceConfig{Term: t, Type: dtype(x.Type), Wide: t != row.Tokens && wide(x)}
	parts := row.Parts(n, l.sms)
	sums, free := l.scratch(4 * parts)
	defer free()
	k := get(l.kernels, l.kernels.reduce, c, func() (*row.Reduce, error) { return row.NewReduce(c) })
	l.run(op, k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(sums, l.at(x), l.at(mask), n, parts) })
	c = row.ReduceConfig{Type: num.F32, Wide: true, Last: true}
	last := get(l.kernels, l.kernels.reduce, c, func() (*row.Reduce, error) { return row.NewReduce(c) })
	l.run(op, last, func() (ptx.Launch, *ptx.Args, error) { return last.Launch(l.at(out), sums, kernel.Place{}, parts, 1) })
}
