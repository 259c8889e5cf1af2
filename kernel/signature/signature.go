// Package signature says once what a kernel accepts, and makes of it a typed handle whose launches are checked and packed without allocation or reflection.
//
// A signature names its tensors: element type, sizes, strides, alignment. Sizes are symbols, m, n, k, with a divisor where the kernel wants one; equal symbols must
// agree in every call. One compiled kernel serves all sizes that pass: what a launch needs for one set of sizes (grid, scalars, tensor maps) is laid out the first
// time the set is met, later calls change nothing but addresses.
//
// Start with New, which declares one beside its kernel's Launch, then Bind, which makes it a Handle, and Handle.Launch. It knows no driver: Block is what it asks of one.
package signature

import (
	"fmt"
	"unsafe"

	"heddle/num"
	"heddle/ptx"
)

// MaxRank is the most dimensions of a tensor: what a tensor map can hold.
const MaxRank = 5

// maxSizes bounds the symbols of a signature.
const maxSizes = 8

// Tensor is an argument: memory on the device and how elements lie in it. It is a value and is never kept.
type Tensor struct {
	Addr    uint64
	Type    num.DType
	Rank    int
	Dims    [MaxRank]int // elements, outermost first
	Strides [MaxRank]int // elements
}

// Packed is a tensor without gaps, the last dimension innermost.
func Packed(addr uint64, t num.DType, dims ...int) Tensor {
	x := Tensor{Addr: addr, Type: t, Rank: len(dims)}
	stride := 1
	for i := len(dims) - 1; i >= 0; i-- {
		x.Dims[i], x.Strides[i] = dims[i], stride
		stride *= dims[i]
	}
	return x
}

// Size is a dimension or stride in a signature: a symbol, or a number that never changes. The zero Size is none.
type Size struct {
	symbol int // index of the symbol + 1; 0 for a number
	number int
}

// Fixed is a dimension of exactly n elements.
func Fixed(n int) Size { return Size{number: n} }

// Spec is what a signature asks of a tensor.
type Spec struct {
	Type  num.DType
	Dims  []Size
	Align int // bytes that divide the address; 0: the element's size
	// Order lists the dimensions from the outermost in memory to the innermost; nil is the order of Dims.
	Order []int
	// Strides are nil where no gaps are allowed. Otherwise there is one a dimension, in elements: a symbol binds the stride, which may then leave a gap; none wants no gap.
	Strides []Size
}

// Signature is what a kernel accepts; A is the struct of its arguments.
type Signature[A any] struct {
	name    string
	symbols []symbol
	tensors []tensor
	scalars []scalar
	plan    Plan
	fault   error // of the declaration, found by Bind
}

type symbol struct {
	name    string
	divisor int
}

type tensor struct {
	name   string
	offset uintptr // of the field in A
	Spec
	align  uint64
	rank   int
	order  [MaxRank]int // innermost first
	stride [MaxRank]Size
}

type scalar struct {
	name   string
	offset uintptr
	kind   ptx.ParamKind
}

// Plan describes the launch for the sizes of a Shape. It must depend on nothing else: it is asked once for a set of sizes.
type Plan func(s *Shape) (ptx.Launch, *ptx.Args, error)

// New starts a signature.
func New[A any](kernel string) *Signature[A] { return &Signature[A]{name: kernel} }

// Size adds a symbol whose values divisor divides; 1 allows all.
func (s *Signature[A]) Size(name string, divisor int) Size {
	if len(s.symbols) == maxSizes || divisor < 1 {
		s.fail("size %s with divisor %d, want at most %d symbols and divisors of 1 or more", name, divisor, maxSizes)
		return Fixed(0)
	}
	s.symbols = append(s.symbols, symbol{name, divisor})
	return Size{symbol: len(s.symbols)}
}

// Slot names a tensor of the signature to its Plan.
type Slot int

// Tensor adds a tensor, which field finds in the arguments.
func (s *Signature[A]) Tensor(name string, field func(*A) *Tensor, spec Spec) Slot {
	var zero A
	t := tensor{name: name, Spec: spec, align: uint64(max(spec.Align, spec.Type.Size())), rank: len(spec.Dims)}
	t.offset = uintptr(unsafe.Pointer(field(&zero))) - uintptr(unsafe.Pointer(&zero))
	if t.rank < 1 || t.rank > MaxRank || spec.Type.Size() == 0 || spec.Strides != nil && len(spec.Strides) != t.rank {
		s.fail("tensor %s has %d dims of %v and %d strides, want 1 to %d of a type, and as many strides or none", name, t.rank, spec.Type, len(spec.Strides), MaxRank)
		return 0
	}
	copy(t.stride[:], spec.Strides)
	if spec.Order != nil && !permutation(spec.Order, t.rank) {
		s.fail("tensor %s: order %v is none of its %d dims", name, spec.Order, t.rank)
		return 0
	}
	for i := range t.rank {
		t.order[i] = t.rank - 1 - i
		if spec.Order != nil {
			t.order[i] = spec.Order[t.rank-1-i]
		}
	}
	s.checkOffset(name, t.offset, unsafe.Sizeof(Tensor{}))
	s.tensors = append(s.tensors, t)
	return Slot(len(s.tensors) - 1)
}

func permutation(order []int, n int) bool {
	seen := 0
	for _, d := range order {
		if d >= 0 && d < n {
			seen |= 1 << d
		}
	}
	return len(order) == n && seen == 1<<n-1
}

// U32 adds a scalar that changes from call to call: the kernel's parameter of that name.
func (s *Signature[A]) U32(name string, field func(*A) *uint32) {
	var zero A
	s.scalar(name, uintptr(unsafe.Pointer(field(&zero)))-uintptr(unsafe.Pointer(&zero)), ptx.KindU32)
}

// U64 adds a scalar.
func (s *Signature[A]) U64(name string, field func(*A) *uint64) {
	var zero A
	s.scalar(name, uintptr(unsafe.Pointer(field(&zero)))-uintptr(unsafe.Pointer(&zero)), ptx.KindU64)
}

// F32 adds a scalar.
func (s *Signature[A]) F32(name string, field func(*A) *float32) {
	var zero A
	s.scalar(name, uintptr(unsafe.Pointer(field(&zero)))-uintptr(unsafe.Pointer(&zero)), ptx.KindF32)
}

func (s *Signature[A]) scalar(name string, offset uintptr, kind ptx.ParamKind) {
	s.checkOffset(name, offset, uintptr(kind.Size()))
	s.scalars = append(s.scalars, scalar{name, offset, kind})
}

// checkOffset refuses a field that is not in A itself.
func (s *Signature[A]) checkOffset(name string, offset, size uintptr) {
	var zero A
	if offset+size > unsafe.Sizeof(zero) || offset+size < size {
		s.fail("the field of %s lies outside of the arguments; hint: return &args.Field", name)
	}
}

// Plan says how launches are laid out.
func (s *Signature[A]) Plan(p Plan) { s.plan = p }

func (s *Signature[A]) fail(format string, args ...any) {
	if s.fault == nil {
		s.fault = fmt.Errorf("signature: %s: %s", s.name, fmt.Sprintf(format, args...))
	}
}

// Shape is a set of sizes that passed the signature, with a stand-in for each tensor.
type Shape struct {
	sizes   [maxSizes]int
	buffers []*ptx.Buffer
}

// Size is the value of a symbol, or the number.
func (s *Shape) Size(d Size) int {
	if d.symbol == 0 {
		return d.number
	}
	return s.sizes[d.symbol-1]
}

// Buffer stands for a tensor in the launch's arguments.
func (s *Shape) Buffer(t Slot) *ptx.Buffer { return s.buffers[t] }
