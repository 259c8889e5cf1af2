package gemm

import (
	"fmt"
	"math"

	"heddle/num"
	"heddle/ptx"
)

// Problem is one product D = A·Bᵀ over row-major matrices of bf16.
type Problem struct {
	M, N, K int
	A       *ptx.Buffer // [M, K]
	B       *ptx.Buffer // [N, K]
	D       *ptx.Buffer // [M, N]
}

// Launch describes the launch for a device that runs so many CTAs of this kernel at once.
func (g *Gemm) Launch(p Problem, ctas int) (ptx.Launch, *ptx.Args, error) {
	c := g.Config
	if p.M < 1 || p.N < 1 || p.K < 1 || p.N%8 != 0 || p.K%8 != 0 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d×%d×%d, want positive sizes, N and K multiples of 8: TMA moves 16-byte units", p.M, p.N, p.K)
	}
	if ctas < c.Cluster() {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: a device that runs %d CTAs cannot hold a cluster of %d", ctas, c.Cluster())
	}
	tilesM, tilesN := ceil(p.M, c.BM*c.ClusterM), ceil(p.N, c.BN*c.ClusterN)
	if float64(tilesM)*float64(tilesN)*float64(c.Cluster()) > math.MaxInt32 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d × %d cluster tiles do not fit 31 bits", tilesM, tilesN)
	}
	a := g.Entry.NewArgs()
	g.A.Put(a, c.operand(p.A, p.M, p.K, c.BM/c.ClusterN))
	g.B.Put(a, c.operand(p.B, p.N, p.K, c.BN/c.ClusterM))
	g.D.Put(a, matrix(p.D, p.M, p.N, 64))
	g.TilesM.Put(a, uint32(tilesM))
	g.TilesN.Put(a, uint32(tilesN))
	g.Steps.Put(a, uint32(ceil(p.K, c.BK)))
	clusters := tilesM * tilesN
	if !c.OneTile {
		clusters = min(ctas/c.Cluster(), clusters)
	}
	return ptx.Launch{Entry: g.Entry.Name, Grid: ptx.Dim3{X: clusters * c.Cluster()}, PDL: c.Overlap != Serial}, a, nil
}

// operand is the tensor map of A or B: boxes one slab wide.
func (c Config) operand(b *ptx.Buffer, rows, cols, box int) *ptx.Map {
	m := matrix(b, rows, cols, box)
	m.Box[0], m.Swizzle, m.L2 = c.slab(), c.swizzle(), c.L2
	return m
}

// matrix is the tensor map of a row-major bf16 matrix, moved in boxes of so many rows by 64 columns.
func matrix(b *ptx.Buffer, rows, cols, box int) *ptx.Map {
	return &ptx.Map{
		Type: num.BF16, Buffer: b, Dims: []int{cols, rows}, Strides: []int{cols * elem}, Box: []int{64, box},
		Swizzle: ptx.Swizzle128, L2: ptx.L2128B,
	}
}

func ceil(x, unit int) int { return (x + unit - 1) / unit }
