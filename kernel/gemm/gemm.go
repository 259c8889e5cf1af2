// Package gemm multiplies matrices on Hopper's tensor cores: D = A·Bᵀ, bf16 in and out, float32 accumulation, any M, N, K with 16-byte rows.
//
// Start with Config, then body.go, which is the kernel.
package gemm

import (
	"fmt"

	"heddle/kernel"
	"heddle/ptx"
)

// Config chooses one member of the family. The zero value is none; Default is measured best for large squares.
type Config struct {
	BN      int // columns of a tile: 64, 128, 192 or 256; rows are 64 a consumer
	BK      int // depth of a stage: 64
	Stages  int // stages of the ring, 2 or more
	Cluster int // CTAs along M that share B tiles by multicast: 1 or 2
	Order   kernel.Order
}

// Default is the 128×256×64 tile with four stages, clusters of two and strips of eight cluster tiles.
func Default() Config {
	return Config{BN: 256, BK: 64, Stages: 4, Cluster: 2, Order: kernel.Order{Group: 8}}
}

const (
	consumers = 2
	rows      = 64 * consumers // of a CTA's tile
	threads   = 128 * (1 + consumers)
	elem      = 2 // bytes of bf16
)

func (c Config) String() string {
	return fmt.Sprintf("%dx%dx%d-c%d-s%d-g%d", rows, c.BN, c.BK, c.Cluster, c.Stages, c.Order.Group)
}

func (c Config) aBytes() int { return rows * c.BK * elem }
func (c Config) bBytes() int { return c.BN * c.BK * elem }

// Check tells why a configuration cannot be built.
func (c Config) Check() error {
	switch {
	case c.BN%64 != 0 || c.BN < 64 || c.BN > 256:
		return fmt.Errorf("gemm: tile of %d columns, want 64, 128, 192 or 256", c.BN)
	case c.BK != 64:
		return fmt.Errorf("gemm: stages %d deep, want 64: one 128-byte swizzled row of bf16", c.BK)
	case c.Stages < 2 || c.Stages > 16:
		return fmt.Errorf("gemm: %d stages, want 2..16", c.Stages)
	case c.Cluster != 1 && c.Cluster != 2:
		return fmt.Errorf("gemm: clusters of %d, want 1 or 2", c.Cluster)
	case c.Order.Group < 0:
		return fmt.Errorf("gemm: strips of %d tiles, want 0 for raster or more", c.Order.Group)
	}
	return nil
}

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
}

// New builds the kernel.
func New(c Config) (*Gemm, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	k := ptx.New("gemm_bf16", threads, c.Cluster)
	g := &Gemm{Config: c}
	g.params = body(k, c)
	var err error
	g.Entry, err = k.Build()
	return g, err
}

// Module is the kernel alone.
func (g *Gemm) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{g.Entry}} }
