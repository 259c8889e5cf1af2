// Package formula has the closed forms of what a training step moves and keeps: the bytes that a rank receives in one gradient,
// by axis and collective, and the bytes of activations that it keeps for Backward. They are written down from the definitions
// of the schemes alone. Nothing here knows the engine; the parity tests compare what the engine counts with these numbers, to
// the byte.
//
// Letters: B sequences of a global batch, S tokens of one, H hidden width, A query heads, G key/value heads, D head size, F MLP
// width, V vocabulary, L layers; dp, fsdp, cp (Ulysses), tp the ranks of each axis. Read Bytes, then Saved, then Crossing.
package formula

// Shape is a model and one global batch.
type Shape struct {
	B, S, H, A, G, D, F, V, L int

	Tied bool // the head is the embedding
	Elem int  // bytes of an element of weights and activations
}

// Layout is the ranks of each axis, 0 counts as 1. Megatron cuts the residual stream over tp.
type Layout struct {
	DP, FSDP, CP, TP int
	Megatron         bool
}

// sizes are what the terms below are written in: all of one rank.
type sizes struct {
	Shape
	dp, fsdp, cp, tp int
	megatron         bool

	b int // sequences: B/(dp·fsdp)
	s int // tokens of a sequence where weights act on it, S/cp
	r int // tokens of a sequence on the residual stream: s/tp under Megatron, else s

	a int // query heads where weights act: A/tp
	g int // key/value heads where weights act: G/tp, and 1 where heads are fewer than ranks (each is on tp/G ranks)
	// Inside attention under Ulysses: heads over cp as well.
	ah, gh int
}

func localSizes(m Shape, l Layout) sizes {
	z := sizes{Shape: m, dp: max(1, l.DP), fsdp: max(1, l.FSDP), cp: max(1, l.CP), tp: max(1, l.TP), megatron: l.Megatron}
	z.b = m.B / (z.dp * z.fsdp)
	z.s = m.S / z.cp
	z.r = z.s
	if z.megatron {
		z.r = z.s / z.tp
	}
	z.a, z.g = m.A/z.tp, max(1, m.G/z.tp)
	z.ah, z.gh = z.a/z.cp, max(1, z.g/z.cp)
	return z
}

// layer is the elements of a layer's parameters that a rank uses: two norms of H, two of D, the projections of its heads (Wq
// and Wo, Wk and Wv), and three matrices of its share of F.
func (z *sizes) layer() int {
	return 2*z.H + 2*z.D + 2*z.a*z.D*z.H + 2*z.g*z.D*z.H + 3*z.F/z.tp*z.H
}

// root is the elements of the parameters outside the layers: the embedding's rows, padded to a multiple of tp; as many for an
// untied head; the final norm.
func (z *sizes) root() int {
	rows := (z.V + z.tp - 1) / z.tp
	n := rows*z.H + z.H
	if !z.Tied {
		n += rows * z.H
	}
	return n
}

// slice is the share of a unit of n elements that rests on one fsdp rank: rounded up, the last one's end is padding.
func (z *sizes) slice(n int) int { return (n + z.fsdp - 1) / z.fsdp }

// rests is the elements of all units that rest on one rank, padding included.
func (z *sizes) rests() int { return z.slice(z.root()) + z.L*z.slice(z.layer()) }
