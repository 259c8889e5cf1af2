// Package attention holds the kernels of causal attention with grouped key/value heads.
//
// Start with Simple: tiles of 32 × 32 on the CUDA cores, in float32 whatever the storage, memory linear in the sequence, sums in a fixed order.
package attention

import (
	"fmt"
	"math"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Pass is one of the three kernels of Simple.
type Pass uint8

const (
	Forward Pass = iota // o and lse from q, k, v
	QueryGrad
	KeyGrad // and that of the values
)

func (p Pass) String() string { return [...]string{"forward", "query_grad", "key_grad"}[p] }

// Config chooses a kernel.
type Config struct {
	Pass Pass
	D    int       // of a head, at most 256
	Type num.DType // of q, k, v, o and their gradients; lse and delta are float32
	Wide bool      // D is a multiple of 8 and all tensors start at multiples of 16 bytes
	// Documents share a sequence: token i of sequence b is number pos[b, i] of its own, and sees the tokens i − pos[b, i] … i.
	Documents bool
}

// Simple is attention on the CUDA cores. Token i of a sequence sees the tokens j ≤ i. With a = 1/√D and, a row, p[j] = exp(a·q·k[j] − lse):
//
//	Forward:   lse = ln Σ_j exp(a·q·k[j]);  o = Σ_j p[j]·v[j]
//	QueryGrad: ds[j] = p[j]·(do·v[j] − delta)·a;  dq = Σ_j ds[j]·k[j]
//	KeyGrad:   dv[j] = Σ_i p[i,j]·do[i];  dk[j] = Σ_i ds[i,j]·q[i], over the R query heads of a key head, one after the other
//
// q, o, do, dq are [B, S, G, R, D], k, v, dk, dv [B, S, G, D], lse, delta [B, S, G, R]; delta is Σ_d o·do.
type Simple struct {
	Config Config
	Entry  *ptx.Entry
	params
}

type params struct {
	q, k, v, o, lse, do, delta, dq, dk, dv, pos ptx.ParamPtr
	seq, g, r                                   ptx.ParamU32
}

const (
	block   = 32  // tokens of a tile
	threads = 128 // thread 8i + c has rows 2i and 2i+1 of a tile, of a product of two tiles the columns c, c+8, c+16, c+24
	log2e   = 1.4426950408889634
)

// padded is D rounded up to what the threads of a row take in 16-byte steps.
func (c Config) padded() int { return (c.D + 31) / 32 * 32 }

// pitch is the floats from one row of a tile to the next: rows start in different banks.
func (c Config) pitch() int { return c.padded() + 4 }

// NewSimple builds a kernel.
func NewSimple(c Config) (*Simple, error) {
	if c.D < 1 || c.D > 256 || c.Wide && c.D%kernel.Wide != 0 {
		return nil, fmt.Errorf("attention: heads of %d, want 1 to 256, a multiple of %d for wide accesses", c.D, kernel.Wide)
	}
	name := fmt.Sprintf("attention_%v_%d_%v", c.Pass, c.D, c.Type)
	if !c.Wide {
		name += "_narrow"
	}
	if c.Documents {
		name += "_documents"
	}
	k := ptx.New(name, threads, 1)
	s := &Simple{Config: c, params: params{q: k.ParamPtr("q"), k: k.ParamPtr("k"), v: k.ParamPtr("v"), lse: k.ParamPtr("lse"), seq: k.ParamU32("seq"), g: k.ParamU32("g"), r: k.ParamU32("r")}}
	switch c.Pass {
	case Forward:
		s.o = k.ParamPtr("o")
	case QueryGrad:
		s.do, s.delta, s.dq = k.ParamPtr("do"), k.ParamPtr("delta"), k.ParamPtr("dq")
	case KeyGrad:
		s.do, s.delta, s.dk, s.dv = k.ParamPtr("do"), k.ParamPtr("delta"), k.ParamPtr("dk"), k.ParamPtr("dv")
	}
	if c.Documents {
		s.pos = k.ParamPtr("pos")
	}
	b := &builder{k: k, s: s, c: c, pair: k.Tid().Shr(3), col: k.Tid().And(k.U32(7))}
	b.blocks = s.seq.Plus(block - 1).Shr(5)
	[]func(){b.forward, b.queryGrad, b.keyGrad}[c.Pass]()
	var err error
	s.Entry, err = k.Build()
	return s, err
}

// builder is what the phases of a kernel share.
type builder struct {
	k         *ptx.Builder
	s         *Simple
	c         Config
	pair, col ptx.U32 // of the thread: rows 2·pair, 2·pair+1; columns col+8j
	blocks    ptx.U32 // of a sequence
}

// tile reserves a tile of shared memory.
func (b *builder) tile(name string) ptx.SAddr {
	return b.k.Shared(name, 4*block*b.c.pitch(), 16).Addr()
}

// square reserves 32 × 32 floats and padding.
func (b *builder) square(name string) ptx.SAddr {
	return b.k.Shared(name, 4*block*(block+4), 16).Addr()
}

// heads are one head's rows of a tensor: token t at base + t·pitch elements.
type heads struct {
	base  ptx.GAddr
	pitch ptx.U32
}

// queries is head h of sequence n in a tensor [B, S, G·R, D].
func (b *builder) queries(p ptx.GAddr, n, h ptx.U32) heads {
	return b.rows(p, n, h, b.s.g.Mul(b.s.r.U32), b.c.D, b.c.Type)
}

// keys is key head h of sequence n in a tensor [B, S, G, D].
func (b *builder) keys(p ptx.GAddr, n, h ptx.U32) heads {
	return b.rows(p, n, h, b.s.g.U32, b.c.D, b.c.Type)
}

// scalars is query head h of sequence n in a float32 tensor [B, S, G·R].
func (b *builder) scalars(p ptx.GAddr, n, h ptx.U32) heads {
	return b.rows(p, n, h, b.s.g.Mul(b.s.r.U32), 1, num.F32)
}

func (b *builder) rows(p ptx.GAddr, n, h, all ptx.U32, d int, t num.DType) heads {
	line := b.k.U32(d * t.Size())
	return heads{p.At(n.Mul(b.s.seq.U32).Mul(all).MulWide(line)).At(h.MulWide(line)), all.Times(d)}
}

// fetch brings 32 tokens of a head from first on to a tile; what is outside the sequence or the head becomes 0.
func (b *builder) fetch(to ptx.SAddr, from heads, first ptx.U32) {
	k, c, width := b.k, b.c, 1
	if c.Wide {
		width = kernel.Wide
	}
	across := c.padded() / width
	for i := range block * across / threads {
		at := k.Tid().Plus(i * threads)
		row := at.Div(k.U32(across))
		d := at.Sub(row.Times(across)).Times(width)
		token := first.Add(row)
		in := token.Lt(b.s.seq.U32).And(d.Lt(k.U32(c.D)))
		line := from.base.At(in.SelectU32(token, k.U32(0)).MulWide(from.pitch.Times(c.Type.Size())))
		x := kernel.LoadSpan(k, c.Type, kernel.At(k, c.Type, line, in.SelectU32(d, k.U32(0))), width)
		for j := range x {
			x[j] = in.SelectF32(x[j], k.F32(0))
		}
		place := to.At(row.Times(4 * c.pitch()).Add(d.Shl(2)))
		if width == 1 {
			place.StoreF32(x[0])
			continue
		}
		place.StoreF32x4([4]ptx.F32(x[:4]))
		place.Plus(16).StoreF32x4([4]ptx.F32(x[4:]))
	}
}

// products is the thread's 2 × 4 elements of x·yᵀ, of two tiles.
func (b *builder) products(x, y ptx.SAddr) [2][4]ptx.F32 {
	k, pitch := b.k, 4*b.c.pitch()
	var sum [2][4]*ptx.Var[ptx.F32]
	for i := range sum {
		for j := range sum[i] {
			sum[i][j] = ptx.NewVarAt(k, ptx.Lane, k.F32(0))
		}
	}
	xs, ys := x.At(b.pair.Times(2*pitch)), y.At(b.col.Times(pitch))
	const unroll = 32
	k.For(k.U32(0), k.U32(4*b.c.padded()), k.U32(4*unroll), func(at ptx.U32) {
		for d := 0; d < 4*unroll; d += 16 {
			var row [2][4]ptx.F32
			for i := range row {
				row[i] = xs.At(at).Plus(i*pitch + d).LoadF32x4()
			}
			for j := range 4 {
				v := ys.At(at).Plus(8*j*pitch + d).LoadF32x4()
				for i := range row {
					s := sum[i][j].Get()
					for e := range v {
						s = row[i][e].FMA(v[e], s)
					}
					sum[i][j].Set(s)
				}
			}
		}
	})
	var out [2][4]ptx.F32
	for i := range out {
		for j := range out[i] {
			out[i][j] = sum[i][j].Get()
		}
	}
	return out
}

// acc is the thread's part of a tile that is summed up: rows 2·pair, 2·pair+1, columns 4·col + 32j … +3.
type acc [2][]*ptx.Var[ptx.F32]

func (b *builder) zeros() (a acc) {
	for i := range a {
		for range b.c.padded() / 8 {
			a[i] = append(a[i], ptx.NewVarAt(b.k, ptx.Lane, b.k.F32(0)))
		}
	}
	return a
}

// lay puts the thread's elements of a product into a square; the lanes of a warp hold whole rows, so that no other warp is waited for.
func (b *builder) lay(to ptx.SAddr, x [2][4]ptx.F32) {
	at := to.At(b.pair.Times(2 * 4 * (block + 4)).Add(b.col.Shl(2)))
	for i := range x {
		for j := range x[i] {
			at.Plus(i*4*(block+4) + 32*j).StoreF32(x[i][j])
		}
	}
}

// add is a += p·y with a square p and a tile y.
func (b *builder) add(a acc, p, y ptx.SAddr) {
	k, pitch := b.k, 4*b.c.pitch()
	ps, ys := p.At(b.pair.Times(2*4*(block+4))), y.At(b.col.Shl(4))
	const unroll = 8
	k.For(k.U32(0), k.U32(block), k.U32(unroll), func(from ptx.U32) {
		for t := range unroll {
			var w [2]ptx.F32
			for i := range w {
				w[i] = ps.At(from.Shl(2)).Plus(i*4*(block+4) + 4*t).LoadF32()
			}
			line := ys.At(from.Times(pitch)).Plus(t * pitch)
			for j := range b.c.padded() / 32 {
				v := line.Plus(128 * j).LoadF32x4()
				for i := range w {
					for e := range v {
						s := a[i][4*j+e]
						s.Set(w[i].FMA(v[e], s.Get()))
					}
				}
			}
		}
	})
}

// store writes the thread's part of a summed tile, times scale, to 32 tokens of a head.
func (b *builder) store(to heads, first ptx.U32, a acc, scale [2]ptx.F32) {
	k, c := b.k, b.c
	for i := range a {
		token := first.Add(b.pair.Shl(1)).Plus(i)
		k.If(token.Lt(b.s.seq.U32), func() {
			line := to.base.At(token.MulWide(to.pitch.Times(c.Type.Size())))
			for j := range c.padded() / 32 {
				for e := range 4 {
					d := b.col.Shl(2).Plus(32*j + e)
					x := a[i][4*j+e].Get().Mul(scale[i])
					if c.D%32 == 0 {
						kernel.StoreSpan(k, c.Type, kernel.At(k, c.Type, line, d), []ptx.F32{x})
						continue
					}
					k.If(d.Lt(k.U32(c.D)), func() { kernel.StoreSpan(k, c.Type, kernel.At(k, c.Type, line, d), []ptx.F32{x}) })
				}
			}
		})
	}
}

// scale is 1/√D times log₂e: scores become exponents of two.
func (c Config) scale() float32 { return float32(log2e / math.Sqrt(float64(c.D))) }
