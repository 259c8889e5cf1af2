package tile

import "fmt"

// Atom is a matrix instruction D = A·B + C with its thread-value layouts as data: each maps (thread, value) to the column-major
// index of an element: A to m + M·k, B to n + N·k, C to m + M·n. An operand in shared memory belongs to no thread: its threads have stride 0.
type Atom struct {
	Name             string `json:"name"`
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
		a.A = fragment(m, elemBytes, Leaf(4, 16))
	}
	a.B = Join(Leaf(threads, 0), Join(Leaf(n, 1), Leaf(k, n)))
	return a, nil
}

// fragment is an A fragment of 32-bit registers: a register holds 4/elemBytes elements that are neighbours in k; register 1 lies 8 rows further
// down, register 2 half of k further on. warps, if any, are the outermost threads.
func fragment(m, elemBytes int, warps ...Layout) Layout {
	per := 4 / elemBytes
	threads := append([]Layout{Leaf(4, per*m), Leaf(8, 1)}, warps...)
	values := []Layout{Leaf(2, 8), Leaf(2, 4*per*m)}
	if per > 1 {
		values = append([]Layout{Leaf(per, m)}, values...)
	}
	return Join(Join(threads...), Join(values...))
}

// MMA is mma.sync.m16n8kK of one warp, by k and bytes of an element: k16 and k8 of 2 bytes (f16, bf16), k8 of 4 (tf32), k32 of 1
// (8-bit integers, fp8) (PTX ISA 9.7.14.5, "Matrix Fragments for mma.m16n8k…").
func MMA(k, elemBytes int) (Atom, error) {
	const m, n = 16, 8
	a := Atom{Name: fmt.Sprintf("mma.m16n8k%d", k), M: m, N: n, K: k, Threads: Lanes, AInRegs: true, BInRegs: true}
	a.C = Join(Join(Leaf(4, 2*m), Leaf(8, 1)), Join(Leaf(2, m), Leaf(2, 8)))
	switch {
	case elemBytes == 2 && k == 8: // half the registers: no second half of k
		a.A = Join(Join(Leaf(4, 2*m), Leaf(8, 1)), Join(Leaf(2, m), Leaf(2, 8)))
		a.B = Join(Join(Leaf(4, 2*n), Leaf(8, 1)), Leaf(2, n))
	case elemBytes == 2 && k == 16, elemBytes == 1 && k == 32:
		per := 4 / elemBytes
		a.A = fragment(m, elemBytes)
		a.B = Join(Join(Leaf(4, per*n), Leaf(8, 1)), Join(Leaf(per, n), Leaf(2, 4*per*n)))
	case elemBytes == 4 && k == 8:
		a.A = fragment(m, elemBytes)
		a.B = Join(Join(Leaf(4, n), Leaf(8, 1)), Leaf(2, 4*n))
	default:
		return Atom{}, fmt.Errorf("tile: no mma.m16n8k%d of %d-byte elements; hint: k16 or k8 of 2 bytes, k8 of 4, k32 of 1", k, elemBytes)
	}
	return a, nil
}

// MatrixCopy is ldmatrix or stmatrix of x 8 × 8 matrices of 2-byte elements. Both layouts map (thread, value) to row + 8·column + 64·matrix:
// Memory says which row a lane's address names (its values are the 8 elements of that row), Registers where the elements are in the warp.
type MatrixCopy struct {
	Name      string `json:"name"`
	X         int    `json:"x"`
	Memory    Layout `json:"memory"`
	Registers Layout `json:"registers"`
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
