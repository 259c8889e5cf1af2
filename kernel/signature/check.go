package signature

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// unset marks a symbol that no tensor has bound yet.
const unset = -1

// bind gives the symbols their values in args, and tells whether every tensor is as the signature says. It says no more, so that it stays small: refusal asks again.
func (s *Signature[A]) bind(args *A, sizes *[maxSizes]int) bool {
	*sizes = [maxSizes]int{unset, unset, unset, unset, unset, unset, unset, unset}
	for i := range s.tensors {
		t := &s.tensors[i]
		if !t.bind(t.of(unsafe.Pointer(args)), sizes) {
			return false
		}
	}
	for i := range s.symbols {
		if d := s.symbols[i].divisor; d > 1 && sizes[i]%d != 0 {
			return false
		}
	}
	return true
}

// of is the tensor's value in the arguments.
func (t *tensor) of(args unsafe.Pointer) *Tensor { return (*Tensor)(unsafe.Add(args, t.offset)) }

// bind is Signature.bind for one tensor, without divisors.
func (t *tensor) bind(x *Tensor, sizes *[maxSizes]int) bool {
	if x.Type != t.Type || x.Rank != t.rank || x.Addr%t.align != 0 || x.Addr == 0 {
		return false
	}
	for i, d := range t.Dims {
		if x.Dims[i] < 1 || x.Dims[i] != d.bind(x.Dims[i], sizes) {
			return false
		}
	}
	return t.strided(x, sizes) < 0
}

// bind is what the size must be; a symbol without a value takes n.
func (d Size) bind(n int, sizes *[maxSizes]int) int {
	if d.symbol == 0 {
		return d.number
	}
	v := &sizes[d.symbol-1]
	if *v == unset {
		*v = n
	}
	return *v
}

// strided finds the first dimension, from the innermost on, whose stride is not allowed; -1 for none. Of a dimension of one element a stride that is no symbol says nothing.
func (t *tensor) strided(x *Tensor, sizes *[maxSizes]int) int {
	room := 1 // elements that the dimensions so far take up
	for i := range t.rank {
		d := t.order[i]
		n, stride, want := x.Dims[d], x.Strides[d], room
		if s := t.stride[d]; s != (Size{}) {
			if want = s.bind(stride, sizes); want < room {
				return d
			}
		} else if n == 1 {
			continue
		}
		if stride != want {
			return d
		}
		room = stride * n
	}
	return -1
}

// refusal says what is wrong with arguments that bind has turned down: the first fault, with the symbol and both values.
func (s *Signature[A]) refusal(args *A) error {
	var sizes, from [maxSizes]int
	for i := range sizes {
		sizes[i] = unset
	}
	for i := range s.tensors {
		t := &s.tensors[i]
		if what := s.fault1(t, i, t.of(unsafe.Pointer(args)), &sizes, &from); what != "" {
			return fmt.Errorf("signature: %s: %s", s.name, what)
		}
	}
	for i, y := range s.symbols {
		if sizes[i]%y.divisor != 0 {
			return fmt.Errorf("signature: %s: %s is %d in %s, want a multiple of %d", s.name, y.name, sizes[i], s.shape(&s.tensors[from[i]]), y.divisor)
		}
	}
	return fmt.Errorf("signature: %s: no fault found in refused arguments", s.name)
}

// fault1 is what is wrong with one tensor; from holds which tensor bound each symbol.
func (s *Signature[A]) fault1(t *tensor, index int, x *Tensor, sizes, from *[maxSizes]int) string {
	switch {
	case x.Type != t.Type:
		return fmt.Sprintf("%s is %v, want %v", t.name, x.Type, t.Type)
	case x.Rank != t.rank:
		return fmt.Sprintf("%s has %d dims, want %d: %s", t.name, x.Rank, t.rank, s.shape(t))
	case x.Addr == 0:
		return fmt.Sprintf("%s has no address", t.name)
	case x.Addr%t.align != 0:
		return fmt.Sprintf("%s lies at %#x, want a multiple of %d bytes", t.name, x.Addr, t.align)
	}
	for i, d := range t.Dims {
		n := x.Dims[i]
		switch {
		case n < 1:
			return fmt.Sprintf("%s is %d in %s, want 1 or more", s.dim(d), n, s.shape(t))
		case d.symbol == 0 && n != d.number:
			return fmt.Sprintf("dim %d of %s is %d, want %d", i, t.name, n, d.number)
		case d.symbol > 0 && sizes[d.symbol-1] == unset:
			sizes[d.symbol-1], from[d.symbol-1] = n, index
		case d.symbol > 0 && sizes[d.symbol-1] != n:
			return fmt.Sprintf("%s is %d in %s but %d in %s", s.dim(d), sizes[d.symbol-1], s.shape(&s.tensors[from[d.symbol-1]]), n, s.shape(t))
		}
	}
	before := *sizes
	if d := t.strided(x, sizes); d >= 0 { // cloned, or all arguments would escape to the heap
		return fmt.Sprintf("%s has strides %v for dims %v, that of dim %d does not fit; want %s", t.name, slices.Clone(x.Strides[:x.Rank]), slices.Clone(x.Dims[:x.Rank]), d, s.layout(t, &before))
	}
	for i := range sizes {
		if sizes[i] != before[i] {
			from[i] = index
		}
	}
	return ""
}

// shape is "A [m, k]".
func (s *Signature[A]) shape(t *tensor) string {
	names := make([]string, t.rank)
	for i, d := range t.Dims {
		names[i] = s.dim(d)
	}
	return t.name + " [" + strings.Join(names, ", ") + "]"
}

func (s *Signature[A]) dim(d Size) string {
	if d.symbol == 0 {
		return fmt.Sprint(d.number)
	}
	return s.symbols[d.symbol-1].name
}

// layout is a tensor's demand on strides, in words; symbols that are bound come with their value.
func (s *Signature[A]) layout(t *tensor, sizes *[maxSizes]int) string {
	var words []string
	for _, d := range t.order[:t.rank] {
		y := t.stride[d]
		switch {
		case y.symbol == 0 && y.number == 0:
			words = append(words, fmt.Sprintf("dim %d without a gap", d))
		case y.symbol > 0 && sizes[y.symbol-1] != unset:
			words = append(words, fmt.Sprintf("dim %d every %s = %d", d, s.dim(y), sizes[y.symbol-1]))
		default:
			words = append(words, fmt.Sprintf("dim %d every %s", d, s.dim(y)))
		}
	}
	return strings.Join(words, ", around it ") + ", no overlap"
}
