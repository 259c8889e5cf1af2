// Package tile describes how a tile lies in memory: layouts, swizzles, banks, tile orders and what fits on a chip.
//
// A Layout is a function from coordinates to offsets, written as nested shape:stride, and the algebra of such functions (compose,
// complement, divide, product, inverses) is that of CuTe (NVIDIA CUTLASS documentation, "CuTe Layout Algebra"). A Swizzle permutes offsets by
// XOR. Everything is a pure function of small values: no state, nothing of a GPU is needed.
//
// Refused, always with an error: shapes below 1, negative strides, more than MaxLeaves leaves, nesting deeper than MaxDepth, anything whose
// size or offsets pass MaxOffset, and algebra that has no answer (a stride that does not divide, a complement of overlapping modes).
//
// Start with Layout and Parse (layout.go, parse.go), then Compose and Complement (algebra.go): Divide, Product and their kin (divide.go) are built of
// those two. Apart from one another stand: Swizzle and its hardware modes (swizzle.go), wgmma descriptors (operand.go), the banks (banks.go, pattern.go,
// suggest.go), instructions as layouts (atoms.go), tile orders and what they read (schedule.go, wave.go, l2.go), and what a GEMM tile takes of a chip
// (depth.go, depthrules.go, nearest.go, epilogue.go). Package tile/view puts them before a reader.
package tile

import "math/bits"

// Bounds of every layout. They hold for results too, so that no chain of operations overflows an int.
const (
	MaxOffset = 1 << 48 // largest size and largest offset
	MaxLeaves = 256     // shape:stride pairs in one layout
	MaxDepth  = 32      // nesting
)

// Must returns v and panics on err: for layouts written in source, never for ones that came from a user.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// over marks a product or sum that left the bounds; it stays above MaxOffset under further mul and add.
const over = 1 << 62

// mul multiplies non-negative ints and saturates at over.
func mul(a, b int) int {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > over {
		return over
	}
	return int(lo)
}

// add adds ints of [0, over] and saturates at over.
func add(a, b int) int { return min(a+b, over) }

func ceilDiv(a, b int) int { return (a-1)/b + 1 } // for a >= 1, without the overflow of a+b-1
