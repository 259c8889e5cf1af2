package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Reduce adds up what each element of a vector contributes, in two launches: Parts, a partial sum a CTA, then Sum over those. Orders are fixed by the length and
// the number of CTAs.
//
//	Plain:   Σ x[i]
//	Squares: Σ x[i]²
//	Tokens:  Σ mask[i]·(ln x[2i] − x[2i+1]), the loss from Loss's sums, whatever x is where mask is 0; x and mask float32
type Reduce struct {
	Config ReduceConfig
	Entry  *ptx.Entry

	x, mask, y ptx.ParamPtr
	n          ptx.ParamU32
}

// Term is what an element contributes to a Reduce.
type Term uint8

const (
	Plain Term = iota
	Squares
	Tokens
)

func (t Term) String() string { return [...]string{"plain", "squares", "tokens"}[t] }

// ReduceConfig chooses the kernel.
type ReduceConfig struct {
	Term Term
	Type num.DType
	Wide bool
	Last bool // one CTA adds its sum to y[0]; else every CTA stores its sum in y
}

// NewReduce builds the kernel.
func NewReduce(c ReduceConfig) (*Reduce, error) {
	name := fmt.Sprintf("reduce_%v_%v", c.Term, c.Type)
	for _, o := range []struct {
		on   bool
		word string
	}{{!c.Wide, "_narrow"}, {c.Last, "_last"}} {
		if o.on {
			name += o.word
		}
	}
	if c.Term == Tokens && (c.Wide || c.Type != num.F32) {
		return nil, fmt.Errorf("row: %s: tokens are narrow and float32", name)
	}
	k := ptx.New(name, threads, 1)
	r := &Reduce{Config: c, x: k.ParamPtr("x"), y: k.ParamPtr("y"), n: k.ParamU32("n")}
	if c.Term == Tokens {
		r.mask = k.ParamPtr("mask")
	}
	way := newLong(k, c.Type, c.Wide)
	sum := ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	whole := r.n.U32
	if c.Wide {
		whole = whole.And(k.U32(-kernel.Wide))
	}
	first := k.CTAIndex().Times(threads).Add(k.Tid())
	all := k.NumCTAs().Times(threads)
	k.For(first.Times(way.width), whole, all.Times(way.width), func(i ptx.U32) { sum.Set(sum.Get().Add(r.term(k, i, way.width))) })
	if c.Wide {
		k.For(whole.Add(first), r.n.U32, all, func(i ptx.U32) { sum.Set(sum.Get().Add(r.term(k, i, 1))) })
	}
	s := way.join(sum.Get(), add)
	k.If(k.Tid().Eq(k.U32(0)), func() {
		at := kernel.At(k, num.F32, r.y.GAddr, k.CTAIndex())
		if c.Last {
			s = s.Add(at.LoadF32())
		}
		at.StoreF32(s)
	})
	var err error
	r.Entry, err = k.Build()
	return r, err
}

// term is the sum of what n elements from i on contribute.
func (r *Reduce) term(k *ptx.Builder, i ptx.U32, n int) ptx.F32 {
	if r.Config.Term == Tokens {
		pair, on := r.x.At(i.MulWide(k.U32(8))), kernel.At(k, num.F32, r.mask.GAddr, i).LoadF32()
		loss := pair.LoadF32().Log2Approx().Mul(k.F32(0.6931471805599453)).Sub(pair.Plus(4).LoadF32())
		return on.Eq(k.F32(0)).SelectF32(k.F32(0), loss.Mul(on)) // what is masked may be no number
	}
	x := kernel.LoadSpan(k, r.Config.Type, kernel.At(k, r.Config.Type, r.x.GAddr, i), n)
	if r.Config.Term == Squares {
		for j := range x {
			x[j] = x[j].Mul(x[j])
		}
	}
	return total(x)
}

// Parts is how many partial sums of n elements there are on a device of so many SMs.
func Parts(n, sms int) int { return max(1, min((n+16*threads-1)/(16*threads), 4*sms)) }

// Launch describes the launch for n elements in so many parts.
func (r *Reduce) Launch(y, x, mask kernel.Place, n, parts int) (ptx.Launch, *ptx.Args, error) {
	if n < 0 || n >= 1<<31 || parts < 1 || r.Config.Last && parts != 1 || r.Config.Wide && !x.Aligned() {
		return ptx.Launch{}, nil, fmt.Errorf("row: %s of %d elements from byte %d on in %d parts does not fit the kernel", r.Entry.Name, n, x.Offset, parts)
	}
	a := r.Entry.NewArgs()
	x.Put(a, r.x)
	y.Put(a, r.y)
	if r.Config.Term == Tokens {
		mask.Put(a, r.mask)
	}
	r.n.Put(a, uint32(n))
	return ptx.Launch{Entry: r.Entry.Name, Grid: ptx.Dim3{X: parts}}, a, nil
}

// Module is the kernel alone.
func (r *Reduce) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{r.Entry}} }
