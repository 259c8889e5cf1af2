// Package tensor is the handle of a tensor: the letters and sizes of its dims, its type, its places on the mesh and where its
// data lie. It has no arithmetic; Device (package compute) makes tensors and computes with them.
package tensor

import (
	"fmt"
	"strings"
	"unsafe"

	"heddle/mesh"
)

// DType is the type of a tensor's elements.
type DType uint8

const (
	F32 DType = iota
	F64
	I32
	BF16 // the upper half of a float32; on GPUs only
)

// Size is the bytes of one element.
func (d DType) Size() int {
	switch d {
	case F64:
		return 8
	case BF16:
		return 2
	}
	return 4
}

func (d DType) String() string { return [...]string{"f32", "f64", "i32", "bf16"}[d] }

// Wide is the type of sums and statistics over values of type d, of master weights, gradients and moments: float32 where d is narrower.
func (d DType) Wide() DType {
	if d == BF16 {
		return F32
	}
	return d
}

// Mem says where data lie in the memory of the machine that computes. Ptr is nil on a machine that only counts (dry); a machine with one arena says in At at
// which of its bytes they start.
type Mem struct {
	Ptr unsafe.Pointer
	At  int
}

// Tensor is a value: copying it copies the handle. Dims are this rank's sizes, row-major, outermost first.
type Tensor struct {
	Letters string
	Dims    []int
	Type    DType
	At      mesh.Places
	Const   bool // data without a gradient (mesh.Operand)
	Alloc   int  // the allocation that holds the data, shared by views of it
	Mem     Mem
}

// Elems is the number of elements this rank holds.
func (t Tensor) Elems() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Bytes is the size of the data this rank holds.
func (t Tensor) Bytes() int { return t.Elems() * t.Type.Size() }

// Has tells whether t has a dim of that letter.
func (t Tensor) Has(letter byte) bool { return strings.IndexByte(t.Letters, letter) >= 0 }

// Dim is the size of the dim with that letter; it panics where t has none.
func (t Tensor) Dim(letter byte) int { return t.Dims[t.Index(letter)] }

// Index is the position of the dim with that letter; it panics where t has none.
func (t Tensor) Index(letter byte) int {
	i := strings.IndexByte(t.Letters, letter)
	if i < 0 {
		panic(fmt.Sprintf("tensor: %s has no dim %c", t.Letters, letter))
	}
	return i
}

// Operand is what the place rules see of t.
func (t Tensor) Operand() mesh.Operand {
	return mesh.Operand{Letters: t.Letters, At: t.At, Const: t.Const}
}

// As is t seen with other letters and sizes from element offset on; the data are shared. It panics out of bounds.
func (t Tensor) As(letters string, dims []int, offset int) Tensor {
	v := t
	v.Letters, v.Dims = letters, dims
	if offset < 0 || offset+v.Elems() > t.Elems() || len(letters) != len(dims) {
		panic(fmt.Sprintf("tensor: view %s%v at %d of %s%v", letters, dims, offset, t.Letters, t.Dims))
	}
	v.Mem.At += offset * t.Type.Size()
	if t.Mem.Ptr != nil && v.Elems() > 0 { // an empty view at the end would point behind the memory
		v.Mem.Ptr = unsafe.Add(t.Mem.Ptr, offset*t.Type.Size())
	}
	return v
}

// View is t's data as a slice, nil on a dry machine. T must be the Go type of t.Type.
func View[T float32 | float64 | int32](t Tensor) []T {
	if t.Mem.Ptr == nil {
		return nil
	}
	return unsafe.Slice((*T)(t.Mem.Ptr), t.Elems())
}
