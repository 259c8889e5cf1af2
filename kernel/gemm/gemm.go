// Package gemm multiplies matrices on Hopper's tensor cores: D = epilogue(A·Bᵀ), bf16, f16, tf32 or fp8 in, bf16, f16 or f32 out, float32 accumulation, any M, N, K whose rows are
// multiples of 16 bytes. A and B may each lie transposed in memory, which is what the three products of a linear layer's training need.
//
// Start with Config in config.go, then body.go, which is the kernel; choose.go picks a Config for a problem.
package gemm

import (
	"heddle/kernel"
	"heddle/ptx"
)

// Gemm is a built kernel: its entry and the handles that fill a launch.
type Gemm struct {
	Config Config
	Entry  *ptx.Entry
	params
}

type params struct {
	A, B, D        ptx.ParamMap
	TilesM, TilesN ptx.ParamU32 // cluster tiles
	Steps          ptx.ParamU32 // of BK along K
	Finish         kernel.FinishParams
	Counter, Table ptx.ParamPtr
	stream
	groups
	scales
}

// New builds the kernel.
func New(c Config) (*Gemm, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.Full()
	k := ptx.New("gemm", c.threads(), c.Cluster())
	g := &Gemm{Config: c}
	g.params = body(k, c)
	var err error
	g.Entry, err = k.Build()
	return g, err
}

// Module is the kernel alone.
func (g *Gemm) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{g.Entry}} }
