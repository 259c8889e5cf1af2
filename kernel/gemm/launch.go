package gemm

import (
	"fmt"
	"math"

	"heddle/num"
	"heddle/ptx"
)

// Problem is one product D = A·Bᵀ, or D += A·Bᵀ where the configuration adds. Matrices are row-major and packed; types and transposition are the configuration's.
type Problem struct {
	M, N, K int
	A       *ptx.Buffer // [M, K], or [K, M] where A is transposed
	B       *ptx.Buffer // [N, K], or [K, N]
	D       *ptx.Buffer // [M, N]
}

// Launch describes the launch for a device that runs so many CTAs of this kernel at once.
func (g *Gemm) Launch(p Problem, ctas int) (ptx.Launch, *ptx.Args, error) {
	c := g.Config
	if p.M < 1 || p.N < 1 || p.K < 1 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d×%d×%d, want positive sizes", p.M, p.N, p.K)
	}
	if ctas < c.Cluster() {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: a device that runs %d CTAs cannot hold a cluster of %d", ctas, c.Cluster())
	}
	tilesM, tilesN := ceil(p.M, c.BM*c.ClusterM), ceil(p.N, c.BN*c.ClusterN)
	if float64(tilesM)*float64(tilesN)*float64(c.Cluster()) > math.MaxInt32 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d × %d cluster tiles do not fit 31 bits", tilesM, tilesN)
	}
	a, err := g.maps(p)
	if err != nil {
		return ptx.Launch{}, nil, err
	}
	g.TilesM.Put(a, uint32(tilesM))
	g.TilesN.Put(a, uint32(tilesN))
	g.Steps.Put(a, uint32(ceil(p.K, c.BK)))
	clusters := tilesM * tilesN
	if !c.OneTile {
		clusters = min(ctas/c.Cluster(), clusters)
	}
	return ptx.Launch{Entry: g.Entry.Name, Grid: ptx.Dim3{X: clusters * c.Cluster()}, PDL: c.Overlap != Serial}, a, nil
}

// maps are the arguments of a launch with the tensor maps in them.
func (g *Gemm) maps(p Problem) (*ptx.Args, error) {
	c := g.Config
	a, err := c.operand("A", p.A, p.M, p.K, c.BM/c.ClusterN, c.TransA)
	if err != nil {
		return nil, err
	}
	b, err := c.operand("B", p.B, p.N, p.K, c.BN/c.ClusterM, c.TransB)
	if err != nil {
		return nil, err
	}
	d, err := matrix("D", c.Out, p.D, p.M, p.N, 64)
	if err != nil {
		return nil, err
	}
	args := g.Entry.NewArgs()
	g.A.Put(args, a)
	g.B.Put(args, b)
	g.D.Put(args, d)
	return args, nil
}

// operand is the tensor map of A or B, [rows, k] as the product sees it. K-major it moves boxes of so many rows, one slab wide; transposed, chunks of 64 rows, a stage deep.
func (c Config) operand(name string, b *ptx.Buffer, rows, k, box int, trans bool) (m *ptx.Map, err error) {
	if trans {
		m, err = matrix(name, c.In, b, k, rows, c.BK)
	} else if m, err = matrix(name, c.In, b, rows, k, box); err == nil {
		m.Box[0], m.Swizzle = c.slab(), c.swizzle()
	}
	if err == nil {
		m.L2 = c.L2
	}
	return m, err
}

// matrix is the tensor map of a row-major matrix, moved in boxes of so many rows by 128 bytes.
func matrix(name string, t num.DType, b *ptx.Buffer, rows, cols, box int) (*ptx.Map, error) {
	if cols*t.Size()%16 != 0 {
		return nil, fmt.Errorf("gemm: rows of %s, %d × %v, are no multiple of 16 bytes, the unit of TMA", name, cols, t)
	}
	return &ptx.Map{
		Type: t, Buffer: b, Dims: []int{cols, rows}, Strides: []int{cols * t.Size()}, Box: []int{128 / t.Size(), box},
		Swizzle: ptx.Swizzle128, L2: ptx.L2128B,
	}, nil
}

func ceil(x, unit int) int { return (x + unit - 1) / unit }
