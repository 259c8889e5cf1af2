package cpu

import (
	"math"

	"heddle/compute"
	"heddle/compute/cpu/vec"
	"heddle/tensor"
)

// Embed looks rows up; ids of other ranks give zero rows.
func (l *Leaf[T]) Embed(y, ids, w tensor.Tensor, lo int) {
	out, rows, n, h := data[T](y), data[T](w), w.Dims[0], w.Dims[1]
	for i, id := range tensor.View[int32](ids) {
		o := out[i*h : i*h+h]
		if r := int(id) - lo; r >= 0 && r < n {
			copy(o, rows[r*h:])
		} else {
			clear(o)
		}
	}
}

// EmbedBack adds each token's gradient to its row, in token order.
func (l *Leaf[T]) EmbedBack(dw, dy, ids tensor.Tensor, lo int) {
	out, in, n, h := data[T](dw), data[T](dy), dw.Dims[0], dw.Dims[1]
	for i, id := range tensor.View[int32](ids) {
		if r := int(id) - lo; r >= 0 && r < n {
			row := out[r*h : r*h+h]
			vec.Add(row, row, in[i*h:i*h+h])
		}
	}
}

// RowMax is the largest logit of a row among the first valid columns, −Inf when there are none.
func (l *Leaf[T]) RowMax(m, logits tensor.Tensor, valid int) {
	x, n := data[T](logits), logits.Dim('v')
	top := data[T](m)
	l.spread(len(top), n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			top[i] = vec.Max(x[i*n : i*n+valid])
		}
	})
}

// SumExp is Σ exp(x − m) and x[label] − m a row; the latter is 0 where the label is another rank's.
func (l *Leaf[T]) SumExp(sp, logits, m, labels tensor.Tensor, v compute.Vocab) {
	out, x, n := data[T](sp), data[T](logits), logits.Dim('v')
	label := tensor.View[int32](labels)
	tops := data[T](m)
	l.spread(len(tops), n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row, top := x[i*n:i*n+v.Valid], tops[i]
			out[2*i], out[2*i+1] = vec.SumExp(row, top), 0
			if k := int(label[i]) - v.Lo; k >= 0 && k < v.Valid {
				out[2*i+1] = row[k] - top
			}
		}
	})
}

// TokenLoss adds up in float64.
func (l *Leaf[T]) TokenLoss(loss, sp, mask tensor.Tensor) {
	x := data[T](sp)
	sum := 0.0
	for i, weight := range data[T](mask) {
		if weight != 0 {
			sum += float64(weight) * (math.Log(float64(x[2*i])) - float64(x[2*i+1]))
		}
	}
	data[T](loss)[0] = T(sum)
}

// LossBack is (softmax − onehot)·mask ÷ count in place of the logits; padding gets 0.
func (l *Leaf[T]) LossBack(logits, m, sp tensor.Tensor, t compute.Targets, v compute.Vocab) {
	x, n := data[T](logits), logits.Dim('v')
	sums, label, mask := data[T](sp), tensor.View[int32](t.Labels), data[T](t.Mask)
	whole, tops := 1/data[T](t.Count)[0], data[T](m)
	l.spread(len(tops), n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := x[i*n : i*n+n]
			if mask[i] == 0 {
				clear(row)
				continue
			}
			each := whole * mask[i]
			vec.ExpScale(row[:v.Valid], row[:v.Valid], tops[i], each/sums[2*i])
			clear(row[v.Valid:])
			if k := int(label[i]) - v.Lo; k >= 0 && k < v.Valid {
				row[k] -= each
			}
		}
	})
}

// SumSquares adds Σ x².
func (l *Leaf[T]) SumSquares(out, x tensor.Tensor) {
	data[T](out)[0] += T(vec.SumSquares(data[T](x)))
}

// Sum adds Σ x in float64.
func (l *Leaf[T]) Sum(out, x tensor.Tensor) {
	s := float64(data[T](out)[0])
	for _, v := range data[T](x) {
		s += float64(v)
	}
	data[T](out)[0] = T(s)
}

// ClipScale is min(1, limit/(√sq + 1e-6)).
func (l *Leaf[T]) ClipScale(out, sq tensor.Tensor, limit float64) {
	s := 1.0
	if limit > 0 {
		s = min(1, limit/(math.Sqrt(float64(data[T](sq)[0]))+1e-6))
	}
	data[T](out)[0] = T(s)
}

// Cast is Copy: there is one type of numbers here.
func (l *Leaf[T]) Cast(dst, src tensor.Tensor) { l.Copy(dst, src) }

// AdamW is vec.Update with the gradient scaled. There is one type of numbers, so nobody wants low.
func (l *Leaf[T]) AdamW(w, _, g, m, v, scale tensor.Tensor, a compute.AdamW) {
	h := vec.AdamW{LR: a.LR, Beta1: a.Beta1, Beta2: a.Beta2, Eps: a.Eps, Decay: a.Decay, Step: a.Step, GradScale: float64(data[T](scale)[0])}
	x, grad, mean, square := data[T](w), data[T](g), data[T](m), data[T](v)
	l.spread(len(x), 1, func(lo, hi int) { vec.Update(h, x[lo:hi], mean[lo:hi], square[lo:hi], grad[lo:hi]) })
}
