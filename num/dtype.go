// Package num holds the number formats of tensors: names and sizes, rounding to and from float32, and distance in units in the last place.
//
// Rounding is to nearest, ties to even, unless a name says otherwise. Every NaN converts to one canonical NaN, the one that Hopper's cvt writes
// (PTX ISA, "cvt"), so that processors agree bit for bit. Start with DType, then ToBF16.
package num

import "fmt"

// DType names the format of one tensor element. The zero value is no format.
type DType uint8

const (
	F32  DType = iota + 1
	F64        // reference arithmetic only
	BF16       // 8 exponent bits, 7 of fraction
	F16        // IEEE binary16
	TF32       // stored as float32, 10 bits of fraction used
	E4M3       // fp8 without infinities, largest finite 448
	E5M2       // fp8 with infinities, largest finite 57344
	I8
	U8
	I32
	U32
	I64
	U64
)

var dtypes = [...]struct {
	name string
	size int // bytes
}{
	F32: {"f32", 4}, F64: {"f64", 8}, BF16: {"bf16", 2}, F16: {"f16", 2}, TF32: {"tf32", 4}, E4M3: {"e4m3", 1}, E5M2: {"e5m2", 1},
	I8: {"i8", 1}, U8: {"u8", 1}, I32: {"i32", 4}, U32: {"u32", 4}, I64: {"i64", 8}, U64: {"u64", 8},
}

// Size is the number of bytes of one element; 0 for a value that names no format.
func (d DType) Size() int {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

func (d DType) String() string {
	if d == 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ParseDType reads the name that String writes.
func ParseDType(s string) (DType, error) {
	for d := F32; int(d) < len(dtypes); d++ {
		if dtypes[d].name == s {
			return d, nil
		}
	}
	return 0, fmt.Errorf("num: dtype %q, want one of f32 f64 bf16 f16 tf32 e4m3 e5m2 i8 u8 i32 u32 i64 u64", s)
}

// Float tells whether d is a floating-point format.
func (d DType) Float() bool { return d >= F32 && d <= E5M2 }
