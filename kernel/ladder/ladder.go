// Package ladder is the way from a naive matrix product to the one of package gemm, a rung at a time: each file adds one idea to the one before, says why it pays, and
// computes D = A·Bᵀ from bf16 correctly for any M and for N and K that are multiples of 8.
//
// Start with naive.go. From the pipeline on (steps.go) the rungs are configurations of package gemm, each with one field changed.
package ladder

import (
	"heddle/kernel"
	"heddle/kernel/gemm"
	"heddle/ptx"
)

// Rung is one kernel of the ladder.
type Rung struct {
	Name string
	Adds string // the idea
	Why  string // what it is good for
	// Build makes the kernel and the function that describes its launch, for a device that runs so many of its CTAs at once.
	Build func() (*ptx.Entry, Launcher, error)
	// Workspace is what the launches need as Problem.Work, on a device that runs so many CTAs; nil: nothing.
	Workspace func(ctas int) int
}

// Launcher describes a launch.
type Launcher func(p gemm.Problem, ctas int) (ptx.Launch, *ptx.Args, error)

// Rungs lists the ladder from the bottom.
func Rungs() []Rung {
	return append([]Rung{
		{Name: "naive", Adds: "a thread an element pair, straight from global memory", Why: "The start: every operand is read again for every product it is in.", Build: naive},
		{Name: "tiled", Adds: "tiles of 64×64 in shared memory, 4×4 results a thread", Why: "An operand is fetched once a tile and used 64 times, and once a thread and used 4 times.", Build: tiled},
		{Name: "async", Adds: "cp.async into two buffers", Why: "The next tile is on its way while this one is multiplied; no register holds it.", Build: async},
		{Name: "swizzled", Adds: "an XOR of the column by the row in shared memory", Why: "Threads that read down a column meet different banks.", Build: swizzled},
		{Name: "wgmma", Adds: "the tensor cores, four warps to a product of 64×128×16", Why: "Multiplication leaves the CUDA cores: sixty times their rate, operands straight from swizzled shared memory.", Build: wgmma},
		{Name: "tma", Adds: "one thread loads whole tiles by the tensor memory accelerator", Why: "No address arithmetic, no registers, bounds checked by hardware: 128 threads are free.", Build: tma},
	}, steps()...)
}

// Cases are exact products, whole and ragged, for a device of so many CTAs.
func (r Rung) Cases(ctas int) ([]kernel.Case, *ptx.Module, error) {
	e, launch, err := r.Build()
	if err != nil {
		return nil, nil, err
	}
	var all []kernel.Case
	for i, s := range [][3]int{{128, 128, 128}, {136, 200, 72}, {8, 8, 8}, {1, 16, 24}, {200, 264, 200}} {
		c, err := gemm.NewExact(s[0], s[1], s[2], int64(i)).CaseOf(func(p gemm.Problem) (ptx.Launch, *ptx.Args, error) {
			if r.Workspace != nil {
				p.Work = &ptx.Buffer{Name: "workspace", Data: make([]byte, r.Workspace(ctas))}
			}
			return launch(p, ctas)
		})
		if err != nil {
			return nil, nil, err
		}
		all = append(all, c)
	}
	return all, &ptx.Module{Entries: []*ptx.Entry{e}}, nil
}

// plain is what the rungs without tensor maps share: matrices by address.
type plain struct {
	k       *ptx.Builder
	A, B, D ptx.ParamPtr
	M, N, K ptx.ParamU32
}

func newPlain(name string, threads int) plain {
	k := ptx.New(name, threads, 1)
	return plain{k, k.ParamPtr("A"), k.ParamPtr("B"), k.ParamPtr("D"), k.ParamU32("M"), k.ParamU32("N"), k.ParamU32("K")}
}

// tileAt is the first row and column of this CTA's tile of D.
func (p plain) tileAt(rows, cols int) (row, col ptx.U32) {
	k := p.k
	across := p.N.Plus(cols - 1).Div(k.U32(cols))
	y := k.CTAIndex().Div(across)
	return y.Times(rows), k.CTAIndex().Sub(y.Mul(across)).Times(cols)
}

// build ends the kernel; its grid is a CTA a tile.
func (p plain) build(rows, cols int) (*ptx.Entry, Launcher, error) {
	e, err := p.k.Build()
	return e, func(q gemm.Problem, _ int) (ptx.Launch, *ptx.Args, error) {
		a := e.NewArgs()
		p.A.Put(a, q.A, 0)
		p.B.Put(a, q.B, 0)
		p.D.Put(a, q.D, 0)
		p.M.Put(a, uint32(q.M))
		p.N.Put(a, uint32(q.N))
		p.K.Put(a, uint32(q.K))
		return ptx.Launch{Entry: e.Name, Grid: ptx.Dim3{X: ceil(q.M, rows) * ceil(q.N, cols)}}, a, nil
	}, err
}

func ceil(x, unit int) int { return (x + unit - 1) / unit }

// at is the address of element (row, col) of a row-major bf16 matrix.
func at(base ptx.GAddr, row, col, pitch ptx.U32) ptx.GAddr {
	return base.At(row.MulWide(pitch.Shl(1))).At(col.Shl(1).U64())
}

// steps of a loop over K, unrolled pieces of so many elements.
func (p plain) loop(piece int, body func(k0 ptx.U32)) {
	p.k.For(p.k.U32(0), p.K.U32, p.k.U32(piece), body)
}

// sum is a float32 that grows.
type sum = *ptx.Var[ptx.F32]

func newSum(k *ptx.Builder) sum { return ptx.NewVarAt(k, ptx.Lane, k.F32(0)) }

// dot adds the product of two pairs.
func dot(s sum, a, b ptx.BF16x2) { s.Set(a.High().FMA(b.High(), a.Low().FMA(b.Low(), s.Get()))) }
