package cuda

import (
	"fmt"
	"unsafe"
)

// TensorMap is an encoded tensor map: 128 bytes, aligned to 64, passed to kernels by value.
type TensorMap struct{ raw [192]byte }

func (m *TensorMap) pointer() unsafe.Pointer {
	p := unsafe.Pointer(&m.raw)
	return unsafe.Add(p, -uintptr(p)&63)
}

// Bytes is the encoded map.
func (m *TensorMap) Bytes() []byte { return unsafe.Slice((*byte)(m.pointer()), 128) }

// Element is the element type of a tensor map (CUtensorMapDataType).
type Element uint32

// The element types in use.
const (
	U8   Element = 0 // fp8 too
	U16  Element = 1
	U32  Element = 2
	I32  Element = 3
	U64  Element = 4
	I64  Element = 5
	F16  Element = 6
	F32  Element = 7
	F64  Element = 8
	BF16 Element = 9
	TF32 Element = 11
)

// Size is the element's size in bytes, 0 for an unknown type.
func (e Element) Size() int {
	switch e {
	case U8:
		return 1
	case U16, F16, BF16:
		return 2
	case U32, I32, F32, TF32:
		return 4
	case U64, I64, F64:
		return 8
	}
	return 0
}

// Tiled describes a tensor in device memory and the box that one TMA instruction moves. Innermost dimension first.
type Tiled struct {
	Element   Element
	Addr      Ptr
	Dims      []uint64 // elements
	Strides   []uint64 // bytes, of dimensions 1 and up
	Box       []uint32 // elements
	Swizzle   int      // 0, 32, 64 or 128 bytes
	Promotion int      // L2 sector promotion: 0, 64, 128 or 256 bytes
	NaNFill   bool     // elements outside the tensor are read as NaN, not as 0
}

// EncodeTiled encodes a tensor map.
func (dev *Device) EncodeTiled(t Tiled) (*TensorMap, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	m, rank := new(TensorMap), len(t.Dims)
	strides := append(append([]uint64{}, t.Strides...), 0) // never empty
	steps := []uint32{1, 1, 1, 1, 1}
	swizzle := map[int]uintptr{0: 0, 32: 1, 64: 2, 128: 3}[t.Swizzle]
	promotion := map[int]uintptr{0: 0, 64: 1, 128: 2, 256: 3}[t.Promotion]
	var fill uintptr
	if t.NaNFill {
		fill = 1
	}
	err := dev.driver.check("cuTensorMapEncodeTiled", dev.driver.api.tensorMapEncodeTiled, uintptr(m.pointer()), uintptr(t.Element), uintptr(rank), uintptr(t.Addr),
		uintptr(unsafe.Pointer(&t.Dims[0])), uintptr(unsafe.Pointer(&strides[0])), uintptr(unsafe.Pointer(&t.Box[0])), uintptr(unsafe.Pointer(&steps[0])), 0, swizzle, promotion, fill)
	if err != nil {
		return nil, fmt.Errorf("%w: %+v", err, t)
	}
	return m, nil
}

// check holds the rules of cuTensorMapEncodeTiled (driver API, tensor maps), which the driver itself reports without saying which one was broken.
func (t *Tiled) check() error {
	rank, size := len(t.Dims), t.Element.Size()
	switch {
	case size == 0:
		return fmt.Errorf("cuda: tensor map: unknown element type %d", t.Element)
	case rank < 1 || rank > 5 || len(t.Strides) != rank-1 || len(t.Box) != rank:
		return fmt.Errorf("cuda: tensor map: %d dims, %d strides, %d box sides; want 1 to 5 dims, one stride fewer, as many sides", rank, len(t.Strides), len(t.Box))
	case t.Addr%16 != 0:
		return fmt.Errorf("cuda: tensor map: address %#x is not a multiple of 16", uint64(t.Addr))
	case t.Swizzle != 0 && t.Swizzle != 32 && t.Swizzle != 64 && t.Swizzle != 128:
		return fmt.Errorf("cuda: tensor map: swizzle %d; want 0, 32, 64 or 128 bytes", t.Swizzle)
	case t.Promotion != 0 && t.Promotion != 64 && t.Promotion != 128 && t.Promotion != 256:
		return fmt.Errorf("cuda: tensor map: L2 promotion %d; want 0, 64, 128 or 256 bytes", t.Promotion)
	}
	for i, s := range t.Strides {
		if s%16 != 0 || s >= 1<<40 {
			return fmt.Errorf("cuda: tensor map: stride %d of dim %d is not a multiple of 16 below 2^40; hint: TMA needs a 16-byte pitch", s, i+1)
		}
	}
	for i := range rank {
		if t.Dims[i] == 0 || t.Dims[i] > 1<<32 || t.Box[i] == 0 || t.Box[i] > 256 {
			return fmt.Errorf("cuda: tensor map: dim %d has %d elements and box %d; want 1..2^32 and 1..256", i, t.Dims[i], t.Box[i])
		}
	}
	inner := int(t.Box[0]) * size
	if inner%16 != 0 || t.Swizzle != 0 && inner > t.Swizzle {
		return fmt.Errorf("cuda: tensor map: box row of %d bytes; want a multiple of 16, at most the swizzle (%d)", inner, t.Swizzle)
	}
	return nil
}
