package gemm

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Block-scaled fp8 (DeepSeek-V3, arXiv 2412.19437, section 3.3): each 128 elements of a row of A, and each 128 × 128 of B, have a float32 factor of their own. A k step is
// one block deep; its product starts from zero, is scaled and added to float32 sums by the CUDA cores, which also mends the tensor cores' short fp8 accumulators.

const blockDepth = 128

// scales is the parameters of a block-scaled kernel.
type scales struct {
	ScaleA ptx.ParamMap // [K/128, M] float32: one box is a stage's factors of the tile's rows
	ScaleB ptx.ParamPtr // [⌈N/128⌉, K/128] float32
}

// scaleBytes is the factors of A in a stage.
func (c Config) scaleBytes() int {
	if !c.Blocks {
		return 0
	}
	return c.BM * 4
}

// refuseBlocks says what block scales do not go with, or "".
func (c Config) refuseBlocks() string {
	switch {
	case !c.Blocks:
		return ""
	case c.elem() != 1 || c.BK != blockDepth:
		return fmt.Sprintf("operands of type %v in stages %d deep, want fp8, 128 deep", c.In, c.BK)
	case c.rows() != 64 || c.BN > blockDepth:
		return fmt.Sprintf("%d×%d sums beside the accumulators of one consumer, want 64×128 at most", c.rows(), c.BN)
	case c.StreamK || c.Groups != Alone || c.Zigzag:
		return "stream-K, groups or a zigzag"
	}
	return ""
}

// loadScales brings a stage's factors of A, with the stage's bytes, from the producer.
func (b *builder) loadScales(stage, step, row ptx.U32, full ptx.Bar) {
	if b.c.Blocks {
		b.p.ScaleA.Load2(b.sScale.At(stage.Times(b.c.scaleBytes())), row, step, full)
	}
}

// promoted is the main loop of one consumer with block scales, and the source of its sums.
func (b *builder) promoted(at kernel.Cursor, acc *ptx.Acc, mine ptx.U32, step func() ptx.U32, release func(ptx.U32)) (mainLoop, kernel.Source) {
	k, c := b.k, b.c
	sums := make([]*ptx.Var[ptx.F32], acc.Len())
	for i := range sums {
		sums[i] = ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	}
	line := mine.Add(k.WarpInGroup().Shl(4)).Add(k.Lane().Shr(2)).Shl(2)
	loop := func(w work, yield func()) {
		for _, s := range sums {
			s.Set(k.F32(0))
		}
		scaleB := b.p.ScaleB.At(w.col.Shr(7).Mul(b.p.Steps.U32).Shl(2).U64())
		k.For(w.first, w.end, k.U32(1), func(i ptx.U32) {
			y := scaleB.At(i.Shl(2).U64()).LoadF32() // on its way while the stage is awaited
			s := step()
			x := b.sScale.At(s.Times(c.scaleBytes())).At(line)
			factors := [2]ptx.F32{x.LoadF32().Mul(y), x.Plus(32).LoadF32().Mul(y)} // rows l/4 and l/4 + 8
			k.WgmmaWait(0)
			k.WarpSync() // the other lanes have read their factors
			release(s)
			for e, sum := range sums {
				sum.Set(acc.F32(e).FMA(factors[e/2%2], sum.Get()))
			}
		})
		yield()
	}
	return loop, func(_, first, _ int) func(int) ptx.F32 {
		return func(e int) ptx.F32 { return sums[first+e].Get() }
	}
}

// putScales puts the factors' parameters.
func (g *Gemm) putScales(a *ptx.Args, p Problem) error {
	steps := ceil(p.K, blockDepth)
	if p.ScaleA == nil || p.ScaleB == nil || p.ScaleB.Size() < ceil(p.N, blockDepth)*steps*4 {
		return fmt.Errorf("gemm: no block scales, want [%d, %d] and [%d, %d] float32", steps, p.M, ceil(p.N, blockDepth), steps)
	}
	if p.M*4%16 != 0 {
		return fmt.Errorf("gemm: scales of %d rows, want a multiple of 4", p.M)
	}
	g.ScaleA.Put(a, &ptx.Map{Type: num.F32, Buffer: p.ScaleA, Dims: []int{p.M, steps}, Strides: []int{p.M * 4}, Box: []int{g.Config.BM, 1}, L2: ptx.L2128B})
	g.ScaleB.Put(a, p.ScaleB, 0)
	return nil
}
