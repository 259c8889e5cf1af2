package elem

import (
	"fmt"
	"math"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Rope turns the pairs (j, j + D/2) of every head of a token by its position (Su et al. 2021):
//
//	y[j] = x[j]·cos − x[j+D/2]·sin; y[j+D/2] = x[j+D/2]·cos + x[j]·sin
//
// x and y are [Tokens, Heads, D]; the token's position in its sequence of S is pos[token mod S], a float32; table[position] holds D/2 cosines, then D/2 sines.
// Back turns the other way. y may be x.
type Rope struct {
	Config RopeConfig
	Entry  *ptx.Entry

	y, x, pos, table ptx.ParamPtr
	seq, heads, n    ptx.ParamU32
}

// RopeConfig chooses the kernel.
type RopeConfig struct {
	D    int // a multiple of 2, of 16 where Wide
	Type num.DType
	Wide bool // x and y start at multiples of 16 bytes
	Back bool
}

func (c RopeConfig) width() int {
	if c.Wide {
		return kernel.Wide
	}
	return 1
}

// NewRope builds the kernel: a thread turns width neighbouring pairs.
func NewRope(c RopeConfig) (*Rope, error) {
	half, width := c.D/2, c.width()
	if c.D < 2 || c.D%(2*width) != 0 {
		return nil, fmt.Errorf("elem: rope of heads of %d, want a multiple of %d", c.D, 2*width)
	}
	name := fmt.Sprintf("rope_%d_%v", c.D, c.Type)
	if !c.Wide {
		name += "_narrow"
	}
	if c.Back {
		name += "_back"
	}
	k := ptx.New(name, threads, 1)
	r := &Rope{Config: c, y: k.ParamPtr("y"), x: k.ParamPtr("x"), pos: k.ParamPtr("pos"), table: k.ParamPtr("table"), seq: k.ParamU32("seq"), heads: k.ParamU32("heads"), n: k.ParamU32("n")}
	i := k.CTAIndex().Times(threads).Add(k.Tid())
	k.If(i.Lt(r.n.U32), func() {
		head := i.Div(k.U32(half / width))
		j := i.Sub(head.Times(half / width)).Times(width)
		token := head.Div(r.heads.U32)
		at := kernel.At(k, num.F32, r.pos.GAddr, token.Rem(r.seq.U32)).LoadF32().TruncU32()
		angle := kernel.At(k, num.F32, r.table.GAddr, at.Times(c.D).Add(j))
		cos, sin := kernel.LoadSpan(k, num.F32, angle, width), kernel.LoadSpan(k, num.F32, angle.Plus(4*half), width)
		from := kernel.At(k, c.Type, r.x.At(head.MulWide(k.U32(c.D*c.Type.Size()))), j)
		lo, hi := kernel.LoadSpan(k, c.Type, from, width), kernel.LoadSpan(k, c.Type, from.Plus(half*c.Type.Size()), width)
		for e := range lo {
			s := sin[e]
			if c.Back {
				s = s.Neg()
			}
			lo[e], hi[e] = lo[e].Mul(cos[e]).Sub(hi[e].Mul(s)), hi[e].Mul(cos[e]).Add(lo[e].Mul(s))
		}
		to := kernel.At(k, c.Type, r.y.At(head.MulWide(k.U32(c.D*c.Type.Size()))), j)
		kernel.StoreSpan(k, c.Type, to, lo)
		kernel.StoreSpan(k, c.Type, to.Plus(half*c.Type.Size()), hi)
	})
	var err error
	r.Entry, err = k.Build()
	return r, err
}

// RopeTable is what Rope reads for positions 0 … n−1 and heads of d: cosines and sines of position·frequency(j) for the pairs j.
func RopeTable(n, d int, frequency func(j int) float64) []float32 {
	t := make([]float32, n*d)
	for p := range n {
		for j := range d / 2 {
			a := float64(p) * frequency(j)
			t[p*d+j], t[p*d+d/2+j] = float32(math.Cos(a)), float32(math.Sin(a))
		}
	}
	return t
}

// RopeOperands are one launch's memory: X, Y [Tokens, Heads, D], Pos [Seq] float32 whose values are rows of Table.
type RopeOperands struct {
	Y, X, Pos, Table   kernel.Place
	Tokens, Seq, Heads int
}

// Launch describes the launch.
func (r *Rope) Launch(o RopeOperands) (ptx.Launch, *ptx.Args, error) {
	c := r.Config
	n := o.Tokens * o.Heads * c.D / 2 / c.width()
	if o.Tokens < 1 || o.Seq < 1 || o.Heads < 1 || n >= 1<<31 || c.Wide && (!o.X.Aligned() || !o.Y.Aligned() || !o.Table.Aligned()) {
		return ptx.Launch{}, nil, fmt.Errorf("elem: %s of %d tokens in sequences of %d with %d heads does not fit the kernel", r.Entry.Name, o.Tokens, o.Seq, o.Heads)
	}
	a := r.Entry.NewArgs()
	o.Y.Put(a, r.y)
	o.X.Put(a, r.x)
	o.Pos.Put(a, r.pos)
	o.Table.Put(a, r.table)
	r.seq.Put(a, uint32(o.Seq))
	r.heads.Put(a, uint32(o.Heads))
	r.n.Put(a, uint32(n))
	return ptx.Launch{Entry: r.Entry.Name, Grid: ptx.Dim3{X: (n + threads - 1) / threads}}, a, nil
}

// Module is the kernel alone.
func (r *Rope) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{r.Entry}} }
