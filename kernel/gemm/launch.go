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

// Launch describes the launch for a device of so many SMs: a persistent grid of at most one CTA an SM.
func (g *Gemm) Launch(p Problem, sms int) (ptx.Launch, *ptx.Args, error) {
	c := g.Config
	if p.M < 1 || p.N < 1 || p.K < 1 || p.N%8 != 0 || p.K%8 != 0 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d×%d×%d, want positive sizes, N and K multiples of 8: TMA moves 16-byte units", p.M, p.N, p.K)
	}
	if sms < c.Cluster {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d SMs cannot hold a cluster of %d", sms, c.Cluster)
	}
	tilesM, tilesN := ceil(p.M, rows*c.Cluster), ceil(p.N, c.BN)
	if float64(tilesM)*float64(tilesN) > math.MaxInt32 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d × %d tiles do not fit 31 bits", tilesM, tilesN)
	}
	a := g.Entry.NewArgs()
	g.A.Put(a, matrix(p.A, p.M, p.K, rows))
	g.B.Put(a, matrix(p.B, p.N, p.K, c.BN/c.Cluster))
	g.D.Put(a, matrix(p.D, p.M, p.N, 64))
	g.TilesM.Put(a, uint32(tilesM))
	g.TilesN.Put(a, uint32(tilesN))
	g.Steps.Put(a, uint32(ceil(p.K, c.BK)))
	clusters := min(sms/c.Cluster, tilesM*tilesN)
	return ptx.Launch{Entry: g.Entry.Name, Grid: ptx.Dim3{X: clusters * c.Cluster}}, a, nil
}

// matrix is the tensor map of a row-major bf16 matrix, moved in boxes of so many rows by 64 columns.
func matrix(b *ptx.Buffer, rows, cols, box int) *ptx.Map {
	return &ptx.Map{
		Type: num.BF16, Buffer: b, Dims: []int{cols, rows}, Strides: []int{cols * elem}, Box: []int{64, box},
		Swizzle: ptx.Swizzle128, L2: ptx.L2128B,
	}
}

func ceil(x, unit int) int { return (x + unit - 1) / unit }
