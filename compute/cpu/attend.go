package cpu

import (
	"math"

	"heddle/compute"
	"heddle/compute/cpu/attention"
	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
	"heddle/tensor"
)

// ropeTable is cos and sin of every position's angles, [positions, D/2], from 0 to the highest that was asked for.
type ropeTable[T blas.Float] struct {
	rope     compute.Rope
	half     int
	cos, sin []T
}

// row is a position's cos and sin.
func (r *ropeTable[T]) row(p int) (cos, sin []T) {
	return r.cos[p*r.half:][:r.half], r.sin[p*r.half:][:r.half]
}

// reach makes the table hold positions below n.
func (r *ropeTable[T]) reach(n int, rope compute.Rope, half int) {
	if rope.Back = false; r.rope != rope || r.half != half {
		*r = ropeTable[T]{rope: rope, half: half}
	}
	if n <= len(r.cos)/half {
		return
	}
	turn := make([]float64, half) // from one position to the next
	for j := range turn {
		turn[j] = rope.Frequency(j, 2*half)
	}
	for p := len(r.cos) / half; p < n; p++ {
		for _, angle := range turn {
			sin, cos := math.Sincos(float64(p) * angle)
			r.cos, r.sin = append(r.cos, T(cos)), append(r.sin, T(sin))
		}
	}
}

// Rope turns every head of a token by the token's position. x is [B, S, heads…, D], pos [S] or [B, S].
func (l *Leaf[T]) Rope(y, x, pos tensor.Tensor, r compute.Rope) {
	at, top := data[T](pos), 0
	for _, p := range at {
		top = max(top, int(p))
	}
	l.rope.reach(top+1, r, x.Dims[len(x.Dims)-1]/2)
	out, in := data[T](y), data[T](x)
	tokens := x.Dim('b') * x.Dim('s')
	n := len(out) / tokens // elements of a token
	l.spread(tokens, n, func(lo, hi int) {
		copy(out[lo*n:hi*n], in[lo*n:hi*n])
		for i := lo; i < hi; i++ {
			cos, sin := l.rope.row(int(at[i%len(at)]))
			if r.Back {
				vec.RoPEBackward(out[i*n:i*n+n], cos, sin)
			} else {
				vec.RoPE(out[i*n:i*n+n], cos, sin)
			}
		}
	})
}

// NormRope is Norm, and Rope in place.
func (l *Leaf[T]) NormRope(y, rstd, x, w, pos tensor.Tensor, eps float64, r compute.Rope) {
	l.Norm(y, rstd, x, w, eps)
	l.Rope(y, y, pos, r)
}

// NormRopeAgain is NormAgain, and Rope in place.
func (l *Leaf[T]) NormRopeAgain(y, x, rstd, w, pos tensor.Tensor, r compute.Rope) {
	l.NormAgain(y, x, rstd, w)
	l.Rope(y, y, pos, r)
}

// NormRopeBack is Rope the other way, aside, and NormBack.
func (l *Leaf[T]) NormRopeBack(dx, dw, dy, x, rstd, w, pos tensor.Tensor, r compute.Rope) {
	r.Back = !r.Back
	back := dy
	back.Mem = l.Alloc(dy.Bytes())
	l.Rope(back, dy, pos, r)
	l.NormBack(dx, dw, back, x, rstd, w)
	l.Free(back.Mem, dy.Bytes())
}

// shape is attention's shape of q [B, S, G, R, D] and k [B, S, G, D] at the positions, [S] or, within documents, [B, S].
func (l *Leaf[T]) shape(q, k, pos tensor.Tensor) attention.Shape {
	l.ints = l.ints[:0]
	s := attention.Shape{B: q.Dims[0], Sq: q.Dims[1], Sk: k.Dims[1], G: q.Dims[2], R: q.Dims[3], D: q.Dims[4]}
	documents := pos.Has('b')
	for i, p := range data[T](pos) {
		if documents {
			l.ints = append(l.ints, i%s.Sq-int(p))
		} else {
			l.ints = append(l.ints, int(p))
		}
	}
	if documents {
		s.From = l.ints
	} else {
		s.QPos, s.KPos = l.ints, l.ints
	}
	if n := attention.ScratchLen[T](l.pool, s); len(l.work) < n {
		l.work = make([]T, n)
	}
	return s
}

// Attention is attention.Forward.
func (l *Leaf[T]) Attention(o, lse, q, k, v, pos tensor.Tensor) {
	s := l.shape(q, k, pos)
	attention.Forward(l.pool, s, attention.Tensors[T]{Q: data[T](q), K: data[T](k), V: data[T](v), O: data[T](o), LSE: data[T](lse)}, l.work)
}

// Delta is Σ_d o·do a head.
func (l *Leaf[T]) Delta(delta, o, do tensor.Tensor) {
	x, y, n := data[T](o), data[T](do), o.Dims[len(o.Dims)-1]
	out := data[T](delta)
	l.spread(len(out), n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = vec.Dot(x[i*n:i*n+n], y[i*n:i*n+n])
		}
	})
}

// AttentionBack is attention.Backward.
func (l *Leaf[T]) AttentionBack(g compute.AttentionGrad, in compute.AttentionSaved) {
	s := l.shape(in.Q, in.K, in.Pos)
	t := attention.Tensors[T]{Q: data[T](in.Q), K: data[T](in.K), V: data[T](in.V), LSE: data[T](in.LSE)}
	attention.Backward(l.pool, s, t, attention.Grads[T]{DO: data[T](in.DO), Delta: data[T](in.Delta), DQ: data[T](g.DQ), DK: data[T](g.DK), DV: data[T](g.DV)}, l.work)
}
