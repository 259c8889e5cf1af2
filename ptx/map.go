package ptx

import (
	"fmt"

	"heddle/num"
	"heddle/tile"
)

// Map describes a tensor in global memory and the box that one TMA operation moves, as cuTensorMapEncodeTiled takes it:
// dimensions innermost first, element strides 1, no interleave. A driver encodes it; the emulator reads it directly.
type Map struct {
	Type    num.DType // BF16, F16, F32, TF32, U8 (fp8 too), I32, U32, I64, U64
	Buffer  *Buffer
	Offset  int      // bytes from the start of Buffer to element 0; a multiple of 16
	Dims    []int    // elements along each dim, 1 to 5 dims
	Strides []int    // bytes between neighbours along dims 1, 2, …: one fewer than Dims; multiples of 16
	Box     []int    // elements moved along each dim, 1..256; bytes along dim 0 a multiple of 16 and at most the swizzle's width
	Swizzle Swizzle  // how the box lies in shared memory
	L2      L2Sector // how much L2 fetches around a miss
	NaNFill bool     // elements outside the tensor are read as NaN instead of 0
}

// Swizzle is the XOR pattern of a tile in shared memory; the values are the driver's CUtensorMapSwizzle.
type Swizzle uint8

const (
	SwizzleNone Swizzle = iota
	Swizzle32           // 32-byte rows: address bit 4 ^= bit 7
	Swizzle64           // 64-byte rows: bits 4-5 ^= bits 7-8
	Swizzle128          // 128-byte rows: bits 4-6 ^= bits 7-9
)

// Width is the bytes of a swizzled row: 32, 64 or 128; 16, the unit, without swizzle.
func (s Swizzle) Width() int { return 16 << s }

// Tile is the same permutation in the layout algebra: of byte addresses, in units of 16 bytes.
func (s Swizzle) Tile() tile.Swizzle { return tile.Swizzle{B: int(s), M: 4, S: 3} }

// Apply maps a shared-memory byte address of the plain tile to where the swizzle puts it.
func (s Swizzle) Apply(addr uint32) uint32 { return addr ^ addr>>7&(1<<s-1)<<4 }

func (s Swizzle) String() string {
	if s == SwizzleNone {
		return "no swizzle"
	}
	return fmt.Sprintf("%d-byte swizzle", s.Width())
}

// L2Sector is the driver's CUtensorMapL2promotion.
type L2Sector uint8

const (
	L2None L2Sector = iota
	L264B
	L2128B
	L2256B
)

// EncodeType is the driver's CUtensorMapDataType, or an error for a type that TMA has not.
func (m *Map) EncodeType() (uint32, error) {
	switch m.Type {
	case num.U8, num.I8, num.E4M3, num.E5M2:
		return 0, nil
	case num.U32:
		return 2, nil
	case num.I32:
		return 3, nil
	case num.U64:
		return 4, nil
	case num.I64:
		return 5, nil
	case num.F16:
		return 6, nil
	case num.F32:
		return 7, nil
	case num.F64:
		return 8, nil
	case num.BF16:
		return 9, nil
	case num.TF32:
		return 11, nil
	}
	return 0, fmt.Errorf("ptx: tensor map: type %v has no encoding", m.Type)
}

// BoxBytes is what one load of a whole box adds to its barrier's transaction count, also where part of the box is outside the tensor.
func (m *Map) BoxBytes() int {
	n := m.Type.Size()
	for _, b := range m.Box {
		n *= b
	}
	return n
}

// Check refuses what cuTensorMapEncodeTiled would refuse with a bare CUDA_ERROR_INVALID_VALUE, and says why.
func (m *Map) Check() error {
	if _, err := m.EncodeType(); err != nil {
		return err
	}
	n := len(m.Dims)
	if n < 1 || n > 5 || len(m.Strides) != n-1 || len(m.Box) != n {
		return fmt.Errorf("ptx: tensor map: %d dims, %d strides, %d box sizes, want n in 1..5, n-1 and n", n, len(m.Strides), len(m.Box))
	}
	if m.Buffer == nil || m.Offset%16 != 0 || m.Offset < 0 {
		return fmt.Errorf("ptx: tensor map: offset %d into its buffer, want a buffer and a multiple of 16", m.Offset)
	}
	size, last := m.Type.Size(), m.Offset
	for i, d := range m.Dims {
		if d < 1 || d > 1<<32 {
			return fmt.Errorf("ptx: tensor map: dim %d has %d elements, want 1..2³²", i, d)
		}
		if m.Box[i] < 1 || m.Box[i] > 256 {
			return fmt.Errorf("ptx: tensor map: box of %d elements along dim %d, want 1..256", m.Box[i], i)
		}
		if i == 0 {
			last += d * size
			continue
		}
		if s := m.Strides[i-1]; s%16 != 0 || s <= 0 || s >= 1<<40 {
			return fmt.Errorf("ptx: tensor map: stride of dim %d is %d bytes, want a positive multiple of 16 below 2⁴⁰; hint: pad the rows", i, s)
		}
		last += (d - 1) * m.Strides[i-1]
	}
	if last > m.Buffer.Size() {
		return fmt.Errorf("ptx: tensor map: the tensor ends at byte %d, its buffer %s at %d", last, m.Buffer.Name, m.Buffer.Size())
	}
	row := m.Box[0] * size
	if row%16 != 0 || m.Swizzle != SwizzleNone && row > m.Swizzle.Width() || m.Swizzle > Swizzle128 {
		return fmt.Errorf("ptx: tensor map: box row of %d bytes under %v, want a multiple of 16 no wider than the swizzle", row, m.Swizzle)
	}
	return nil
}
