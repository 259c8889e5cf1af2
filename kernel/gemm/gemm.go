// Package gemm multiplies matrices on Hopper's tensor cores: D = A·Bᵀ, bf16 or f16 in, bf16, f16 or f32 out, float32 accumulation, any M, N, K whose rows are
// multiples of 16 bytes. A and B may each lie transposed in memory, which is what the three products of a linear layer's training need.
//
// Start with Config, then body.go, which is the kernel.
package gemm

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Config chooses one member of the family. The zero value is none; Default is measured best for large squares, Choose for a given problem.
type Config struct {
	BM       int  // rows of a CTA's tile: 64 (one consumer warpgroup), 128 or 256 (two); 0: 128
	BN       int  // columns of a tile: a multiple of 64 up to 256
	BK       int  // depth of a stage: 64
	Stages   int  // stages of the ring, 2 or more
	Cluster  int  // CTAs along M that share B tiles by multicast: 1 or 2
	PingPong bool // each consumer works on a tile of its own, so that one's epilogue runs under the other's products; else they share the tile's rows
	Order    kernel.Order

	In     num.DType // of A and B: BF16 or F16; 0: BF16
	Out    num.DType // of D: BF16, F16 or F32; 0: In
	Add    bool      // add the product to D instead of overwriting it; D is F32
	TransA bool      // A is stored [K, M]
	TransB bool      // B is stored [K, N]
}

// Default is the 128×256×64 tile with four stages, clusters of two and strips of eight cluster tiles.
func Default() Config {
	return Config{BM: 128, BN: 256, BK: 64, Stages: 4, Cluster: 2, Order: kernel.Order{Group: 8}}
}

const elem = 2 // bytes of an element of A and B

// full replaces zero fields by what they stand for.
func (c Config) full() Config {
	if c.BM == 0 {
		c.BM = 128
	}
	if c.In == 0 {
		c.In = num.BF16
	}
	if c.Out == 0 {
		c.Out = c.In
	}
	return c
}

func (c Config) String() string {
	c = c.full()
	s := fmt.Sprintf("%dx%dx%d-c%d-s%d-g%d", c.BM, c.BN, c.BK, c.Cluster, c.Stages, c.Order.Group)
	for _, x := range []struct {
		on   bool
		name string
	}{
		{c.Order.Serpentine, "serpentine"}, {c.PingPong, "pingpong"}, {c.TransA, "ta"}, {c.TransB, "tb"}, {c.In != num.BF16, c.In.String()},
		{c.Out != c.In, "to-" + c.Out.String()}, {c.Add, "add"},
	} {
		if x.on {
			s += "-" + x.name
		}
	}
	return s
}

// consumers is the number of consumer warpgroups.
func (c Config) consumers() int { return min(2, c.BM/64) }

// height is the rows that one consumer multiplies in each k step: 64 or 128.
func (c Config) height() int {
	if c.PingPong {
		return c.BM
	}
	return c.BM / c.consumers()
}

func (c Config) threads() int { return 128 * (1 + c.consumers()) }
func (c Config) aBytes() int  { return c.BM * c.BK * elem }
func (c Config) bBytes() int  { return c.BN * c.BK * elem }

// Shared is the shared memory of a configuration, in bytes.
func (c Config) Shared() int {
	return c.Stages*(c.full().aBytes()+c.bBytes()+16) + c.full().consumers()*kernel.StoreBytes
}

// Check tells why a configuration cannot be built.
func (c Config) Check() error {
	c = c.full()
	switch {
	case c.BM != 64 && c.BM != 128 && c.BM != 256:
		return fmt.Errorf("gemm: tile of %d rows, want 64, 128 or 256", c.BM)
	case c.BN%64 != 0 || c.BN < 64 || c.BN > 256:
		return fmt.Errorf("gemm: tile of %d columns, want 64, 128, 192 or 256", c.BN)
	case c.BK != 64:
		return fmt.Errorf("gemm: stages %d deep, want 64: one 128-byte swizzled row", c.BK)
	case c.Cluster != 1 && c.Cluster != 2:
		return fmt.Errorf("gemm: clusters of %d, want 1 or 2", c.Cluster)
	case c.PingPong && c.BM != 128:
		return fmt.Errorf("gemm: ping-pong with tiles of %d rows, want 128", c.BM)
	case c.height()*c.BN > 128*192:
		return fmt.Errorf("gemm: %d × %d accumulators in one warpgroup are %d registers a thread, want at most 192; hint: a narrower tile", c.height(), c.BN, c.height()*c.BN/128)
	case c.TransB && c.BN/c.Cluster%64 != 0:
		return fmt.Errorf("gemm: a transposed B in clusters of %d wants tiles of a multiple of %d columns, got %d", c.Cluster, 64*c.Cluster, c.BN)
	case c.Stages < 2 || c.Shared() > ptx.MaxShared:
		return fmt.Errorf("gemm: %d stages are %d bytes of shared memory, want at least 2 stages and at most %d bytes", c.Stages, c.Shared(), ptx.MaxShared)
	case c.Order.Group < 0:
		return fmt.Errorf("gemm: strips of %d tiles, want 0 for raster or more", c.Order.Group)
	case c.In != num.BF16 && c.In != num.F16:
		return fmt.Errorf("gemm: operands of type %v, want bf16 or f16", c.In)
	case c.Out != num.BF16 && c.Out != num.F16 && c.Out != num.F32:
		return fmt.Errorf("gemm: result of type %v, want bf16, f16 or f32", c.Out)
	case c.Add && c.Out != num.F32:
		return fmt.Errorf("gemm: adding to a result of type %v, want f32", c.Out)
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
	c = c.full()
	k := ptx.New("gemm", c.threads(), c.Cluster)
	b := newBody(k, c)
	b.write()
	e, err := k.Build()
	return &Gemm{Config: c, Entry: e, params: b.params}, err
}

// Module is the kernel alone.
func (g *Gemm) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{g.Entry}} }
