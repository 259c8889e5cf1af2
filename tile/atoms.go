package tile

import (
	"fmt"
	"slices"
)

// Atom is a matrix instruction D = A·B + C with its thread-value layouts as data: each maps (thread, value) to the column-major
// index of an element: A to m + M·k, B to n + N·k, C to m + M·n. An operand in shared memory belongs to no thread: its threads have stride 0.
type Atom struct {
	Name             string
	M, N, K          int
	Threads          int
	A, B, C          Layout
	AInRegs, BInRegs bool
}

// WgmmaMaxN bounds n of wgmma, which is a multiple of 8.
const WgmmaMaxN = 256

// Wgmma is wgmma.mma_async.m64nNkK for operands of elemBytes (2: f16, bf16, k16; 4: tf32, k8; 1: fp8, k32), with A in registers or in
// shared memory (PTX ISA 9.7.15.5, "Register Fragments and Shared Memory Matrix Layouts").
func Wgmma(n, elemBytes int, aInRegs bool) (Atom, error) {
	if n < 8 || n > WgmmaMaxN || n%8 != 0 {
		return Atom{}, fmt.Errorf("tile: wgmma with n %d, want a multiple of 8 up to %d", n, WgmmaMaxN)
	}
	if elemBytes != 1 && elemBytes != 2 && elemBytes != 4 {
		return Atom{}, fmt.Errorf("tile: wgmma with elements of %d bytes, want 1, 2 or 4", elemBytes)
	}
	const m, threads = 64, 128
	k := 32 / elemBytes
	a := Atom{Name: fmt.Sprintf("wgmma.m64n%dk%d", n, k), M: m, N: n, K: k, Threads: threads, AInRegs: aInRegs}
	// Four lanes share a row; eight such groups, eight rows; four warps, 16 rows each. Values: a pair of columns, the row 8 further down, the next 8 columns.
	a.C = Join(
		Join(Leaf(4, 2*m), Leaf(8, 1), Leaf(4, 16)),
		Join(Leaf(2, m), Leaf(2, 8), Leaf(n/8, 8*m)))
	a.A = Join(Leaf(threads, 0), Join(Leaf(m, 1), Leaf(k, m)))
	if aInRegs {
		a.A = fragment(m, k, elemBytes, Leaf(2, 8), Leaf(4, 16))
	}
	a.B = Join(Leaf(threads, 0), Join(Leaf(n, 1), Leaf(k, n)))
	return a, nil
}

// fragment is the layout of A and B fragments, (thread, value) → row + rows·k. Four lanes go along k, each with the elements of one register, four bytes of
// neighbours in k (one element of eight bytes); eight lanes go down the rows. Further registers are first half, 8 rows further down if there is such a
// mode, and then the next four lanes' worth of k. warps are the outermost threads.
func fragment(rows, k, elemBytes int, half Layout, warps ...Layout) Layout {
	per := max(1, 4/elemBytes)
	threads := append([]Layout{Leaf(4, per*rows), Leaf(8, 1)}, warps...)
	var values []Layout
	for _, v := range []Layout{Leaf(per, rows), half, Leaf(k/(4*per), 4*per*rows)} {
		if v.shape > 1 {
			values = append(values, v)
		}
	}
	switch len(values) {
	case 0:
		return Join(Join(threads...), Leaf(1, 0))
	case 1:
		return Join(Join(threads...), values[0])
	}
	return Join(Join(threads...), Join(values...))
}

// MMA is mma.sync.m16n8kK of one warp, by k and bytes of an element: k16 or k32 of 1 byte (8-bit integers, fp8), k8 or k16 of 2 (f16, bf16), k4 or k8
// of 4 (tf32), k4, k8 or k16 of 8 (f64) (PTX ISA 9.7.14.5, "Matrix Fragments for mma.m16n8k…").
func MMA(k, elemBytes int) (Atom, error) {
	const m, n = 16, 8
	ks := map[int][]int{1: {16, 32}, 2: {8, 16}, 4: {4, 8}, 8: {4, 8, 16}}[elemBytes]
	if !slices.Contains(ks, k) {
		return Atom{}, fmt.Errorf("tile: no mma.m16n8k%d of %d-byte elements; hint: k16, k32 of 1 byte, k8, k16 of 2, k4, k8 of 4, k4, k8, k16 of 8", k, elemBytes)
	}
	return Atom{Name: fmt.Sprintf("mma.m16n8k%d", k), M: m, N: n, K: k, Threads: Lanes, AInRegs: true, BInRegs: true,
		A: fragment(m, k, elemBytes, Leaf(2, 8)),
		B: fragment(n, k, elemBytes, Leaf(1, 0)),
		C: Join(Join(Leaf(4, 2*m), Leaf(8, 1)), Join(Leaf(2, m), Leaf(2, 8))),
	}, nil
}

// MatrixCopy is ldmatrix or stmatrix of x 8 × 8 matrices of 2-byte elements. Both layouts map (thread, value) to row + 8·column + 64·matrix:
// Memory says which row a lane's address names (its values are the 8 elements of that row), Registers where the elements are in the warp.
type MatrixCopy struct {
	Name      string
	X         int
	Memory    Layout
	Registers Layout
}

// Matrices is ldmatrix.xN and stmatrix.xN, x 1, 2 or 4 (PTX ISA 9.7.14.5.15): the same layouts, read or written. With trans a register holds
// a pair of rows rather than a pair of columns.
func Matrices(x int, trans bool) (MatrixCopy, error) {
	if x != 1 && x != 2 && x != 4 {
		return MatrixCopy{}, fmt.Errorf("tile: ldmatrix and stmatrix of x%d, want x1, x2 or x4", x)
	}
	c := MatrixCopy{Name: fmt.Sprintf("matrix.x%d", x), X: x}
	c.Memory = Join(Join(Leaf(8, 1), Leaf(x, 64)), Leaf(8, 8))
	c.Registers = Join(Join(Leaf(4, 16), Leaf(8, 1)), Join(Leaf(2, 8), Leaf(x, 64)))
	if trans {
		c.Name += ".trans"
		c.Registers = Join(Join(Leaf(4, 2), Leaf(8, 8)), Join(Leaf(2, 1), Leaf(x, 64)))
	}
	return c, nil
}
