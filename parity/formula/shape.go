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

	// What the family's blocks are made of.
	LayerNorm, QKNorm, Gated  bool // norms have a bias; q and k are normed; the MLP has a gate
	QKVBias, OutBias, MLPBias bool // OutBias: of attention's output projection
	Positions                 int  // learned; 0: none
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

	micro int // micro-batches
	full  int // layers that are run forward again

	b int // sequences of a micro-batch: B/(dp·fsdp·micro)
	s int // tokens of a sequence where weights act on it, S/cp
	r int // tokens of a sequence on the residual stream: s/tp under Megatron, else s

	a int // query heads where weights act: A/tp
	g int // key/value heads where weights act: G/tp, and 1 where heads are fewer than ranks (each is on tp/G ranks)
	// Inside attention under Ulysses: heads over cp as well.
	ah, gh int
}

func localSizes(m Shape, l Layout, s Schedule) sizes {
	z := sizes{Shape: m, dp: max(1, l.DP), fsdp: max(1, l.FSDP), cp: max(1, l.CP), tp: max(1, l.TP), megatron: l.Megatron}
	z.micro, z.full = max(1, s.Micro), 0
	for i := range m.L {
		if s.full(i) {
			z.full++
		}
	}
	z.b = m.B / (z.dp * z.fsdp * z.micro)
	z.s = m.S / z.cp
	z.r = z.s
	if z.megatron {
		z.r = z.s / z.tp
	}
	z.a, z.g = m.A/z.tp, max(1, m.G/z.tp)
	z.ah, z.gh = z.a/z.cp, max(1, z.g/z.cp)
	return z
}

// part is some of a unit's elements on a rank, by what becomes of their gradients over tp.
type part struct {
	n    int
	kind kind
}

type kind uint8

const (
	cut    kind = iota // each rank has its own heads, width or words
	stream             // norms and biases of the residual stream: partial where tp ranks see other tokens, under Megatron
	heads              // norms of heads: partial, ranks have other heads
	copies             // key/value projections: partial over the copies of a head
)

// layer lists a layer's unit in order: norm, q, k, v, norms of q and k, o, norm, gate, up, down, each bias after its weight.
func (z *sizes) layer() (unit []part) {
	add := func(k kind, n int, has bool) {
		if has {
			unit = append(unit, part{n, k})
		}
	}
	q, kv, f := z.a*z.D, z.g*z.D, z.F/z.tp
	add(stream, z.H, true)
	add(stream, z.H, z.LayerNorm)
	add(cut, q*z.H, true)
	add(cut, q, z.QKVBias)
	for range 2 {
		add(copies, kv*z.H, true)
		add(copies, kv, z.QKVBias)
	}
	add(heads, 2*z.D, z.QKNorm)
	add(cut, q*z.H, true)
	add(stream, z.H, z.OutBias)
	add(stream, z.H, true)
	add(stream, z.H, z.LayerNorm)
	add(cut, f*z.H, z.Gated)
	add(cut, f, z.Gated && z.MLPBias)
	add(cut, f*z.H, true)
	add(cut, f, z.MLPBias)
	add(cut, f*z.H, true)
	add(stream, z.H, z.MLPBias)
	return unit
}

// root lists what is outside the layers: the embedding's rows, padded to a multiple of tp; learned positions; the final norm;
// as many rows for an untied head.
func (z *sizes) root() []part {
	rows := (z.V + z.tp - 1) / z.tp
	unit := []part{{rows * z.H, cut}, {z.Positions * z.H, stream}, {z.H, stream}}
	if z.LayerNorm {
		unit = append(unit, part{z.H, stream})
	}
	if !z.Tied {
		unit = append(unit, part{rows * z.H, cut})
	}
	return unit
}

// elements is the size of a unit on a rank.
func elements(unit []part) (n int) {
	for _, p := range unit {
		n += p.n
	}
	return n
}

// slice is the share of a unit of n elements that rests on one fsdp rank: rounded up, the last one's end is padding.
func (z *sizes) slice(n int) int { return (n + z.fsdp - 1) / z.fsdp }

// rests is the elements of all units that rest on one rank, padding included.
func (z *sizes) rests() int {
	return z.slice(elements(z.root())) + z.L*z.slice(elements(z.layer()))
}
