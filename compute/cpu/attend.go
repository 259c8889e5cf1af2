package cpu

import (
	"math"

	"heddle/compute"
	"heddle/compute/cpu/attention"
	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
	"heddle/tensor"
)

// ropeTable is cos and sin of pos·theta^(−2j/D), [S, D/2], kept while positions, theta and D stay the same.
type ropeTable[T blas.Float] struct {
	pos      []T
	theta    float64
	half     int
	cos, sin []T
}

func (r *ropeTable[T]) fill(pos []T, theta float64, half int) {
	if r.theta == theta && r.half == half && len(r.pos) == len(pos) {
		same := true
		for i, p := range pos {
			same = same && r.pos[i] == p
		}
		if same {
			return
		}
	}
	*r = ropeTable[T]{pos: append([]T(nil), pos...), theta: theta, half: half, cos: make([]T, len(pos)*half), sin: make([]T, len(pos)*half)}
	for i, p := range pos {
		for j := range half {
			a := float64(p) * math.Pow(theta, -float64(j)/float64(half))
			r.cos[i*half+j], r.sin[i*half+j] = T(math.Cos(a)), T(math.Sin(a))
		}
	}
}

// Rope turns every head of a token by the token's position. x is [B, S, heads…, D].
func (l *Leaf[T]) Rope(y, x, pos tensor.Tensor, r compute.Rope) {
	half := x.Dims[len(x.Dims)-1] / 2
	l.rope.fill(data[T](pos), r.Theta, half)
	out, in := data[T](y), data[T](x)
	s := x.Dim('s')
	token := len(out) / (x.Dim('b') * s)
	l.spread(len(out)/token, token, func(lo, hi int) {
		copy(out[lo*token:hi*token], in[lo*token:hi*token])
		for i := lo; i < hi; i++ {
			t := out[i*token : i*token+token]
			c, sn := l.rope.cos[i%s*half:][:half], l.rope.sin[i%s*half:][:half]
			if r.Back {
				vec.RoPEBackward(t, c, sn)
			} else {
				vec.RoPE(t, c, sn)
			}
		}
	})
}

// shape is attention's shape of q [B, S, G, R, D] and k [B, S, G, D] at the positions.
func (l *Leaf[T]) shape(q, k, pos tensor.Tensor) attention.Shape {
	l.ints = l.ints[:0]
	for _, p := range data[T](pos) {
		l.ints = append(l.ints, int(p))
	}
	s := attention.Shape{B: q.Dims[0], Sq: q.Dims[1], Sk: k.Dims[1], G: q.Dims[2], R: q.Dims[3], D: q.Dims[4], QPos: l.ints, KPos: l.ints}
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
