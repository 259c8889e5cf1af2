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

// Launch describes the launch for a device of so many SMs: a persistent grid of at most one CTA an SM.
func (g *Gemm) Launch(p Problem, sms int) (ptx.Launch, *ptx.Args, error) {
	c := g.Config
	if p.M < 1 || p.N < 1 || p.K < 1 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d×%d×%d, want positive sizes", p.M, p.N, p.K)
	}
	if sms < c.Cluster {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d SMs cannot hold a cluster of %d", sms, c.Cluster)
	}
	a, err := operand(c, "A", p.A, p.M, p.K, c.BM, c.TransA)
	if err != nil {
		return ptx.Launch{}, nil, err
	}
	b, err := operand(c, "B", p.B, p.N, p.K, c.BN/c.Cluster, c.TransB)
	if err != nil {
		return ptx.Launch{}, nil, err
	}
	d, err := matrix("D", c.Out, p.D, p.M, p.N, 64)
	if err != nil {
		return ptx.Launch{}, nil, err
	}
	tilesM, tilesN := ceil(p.M, c.BM*c.Cluster), ceil(p.N, c.BN)
	if float64(tilesM)*float64(tilesN) > math.MaxInt32 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %d × %d tiles do not fit 31 bits", tilesM, tilesN)
	}
	args := g.Entry.NewArgs()
	g.A.Put(args, a)
	g.B.Put(args, b)
	g.D.Put(args, d)
	g.TilesM.Put(args, uint32(tilesM))
	g.TilesN.Put(args, uint32(tilesN))
	g.Steps.Put(args, uint32(ceil(p.K, c.BK)))
	clusters := min(sms/c.Cluster, tilesM*tilesN)
	return ptx.Launch{Entry: g.Entry.Name, Grid: ptx.Dim3{X: clusters * c.Cluster}, PDL: true}, args, nil
}

// operand is the tensor map of A or B, [rows, k] as the product sees it, moved a tile of so many rows at a time.
func operand(c Config, name string, b *ptx.Buffer, rows, k, tile int, trans bool) (*ptx.Map, error) {
	if trans {
		return matrix(name, c.In, b, k, rows, 64)
	}
	return matrix(name, c.In, b, rows, k, tile)
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
