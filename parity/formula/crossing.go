package formula

// Line is bytes that a rank receives in a step as a function of the tokens on each rank: PerToken·tokens + Fixed.
type Line struct {
	PerToken int64 `json:"per_token"`
	Fixed    int64 `json:"fixed"`
}

// Crossing compares Megatron's sequence parallelism with Ulysses on the same p ranks and the same residual stream [B, S/p, H].
type Crossing struct {
	Ranks    int     `json:"ranks"`
	Megatron Line    `json:"megatron"`
	Ulysses  Line    `json:"ulysses"`
	Tokens   float64 `json:"tokens_per_rank"` // where the lines cross: above it Ulysses moves fewer bytes; 0: it never does
}

// Cross is the crossing for p ranks. With t = B·S/p tokens a rank, e bytes an element and all terms of Bytes:
//
//	Megatron  e·(p−1)·((10L+4)·H + 6)·t                     ten times a layer the stream, whatever the heads; the loss
//	          + e·2(p−1)/p·(norms, copied heads)            once a step
//	Ulysses   e·(p−1)·L·((4D+1)·A/p + 4D·max(G/p, 1))·t     heads, cut by p: q, k, v and o forward, as much backward
//	          + e·2(p−1)/p·N                                all N parameters' gradients, once a step
//
// Megatron's term per token does not shrink with p, Ulysses' does; Ulysses pays for every weight, Megatron for its norms. So
// Ulysses moves fewer bytes when a step has many tokens a rank for the size of the model.
func Cross(m Shape, p int) Crossing {
	c := Crossing{Ranks: p}

	z := localSizes(m, Layout{TP: p, Megatron: true}, Schedule{})
	c.Megatron.PerToken = int64(m.Elem * (p - 1) * ((10*m.L+4)*m.H + 6))
	c.Megatron.Fixed = int64(m.Elem * (z.packedSums(z.packed(0)) + reduced(1, p))) // and the norm's scalar

	z = localSizes(m, Layout{CP: p}, Schedule{})
	c.Ulysses.PerToken = int64(m.Elem * (p - 1) * m.L * ((4*m.D+1)*(m.A/p) + 4*m.D*max(m.G/p, 1)))
	c.Ulysses.Fixed = int64(m.Elem * (reduced(z.rests(), p) + 3*reduced(1, p))) // the norm's scalar, the loss, the count

	if d := c.Megatron.PerToken - c.Ulysses.PerToken; d > 0 {
		c.Tokens = max(0, float64(c.Ulysses.Fixed-c.Megatron.Fixed)/float64(d))
	}
	return c
}
