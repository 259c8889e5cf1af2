package safetensors

// DType is the type of a tensor's elements, spelled as in the file.
type DType string

// The types read and written. The format knows more (4- and 6-bit floats, F8_E8M0, complex); they are refused by name.
const (
	F64    DType = "F64"
	F32    DType = "F32"
	F16    DType = "F16"
	BF16   DType = "BF16"
	F8E4M3 DType = "F8_E4M3" // no infinity; S.1111.111 is the only NaN
	F8E5M2 DType = "F8_E5M2"
	I64    DType = "I64"
	I32    DType = "I32"
	I16    DType = "I16"
	I8     DType = "I8"
	U64    DType = "U64"
	U32    DType = "U32"
	U16    DType = "U16"
	U8     DType = "U8"
	Bool   DType = "BOOL" // a byte, 0 or 1
)

// byRank lists the types as the reference writer sorts them: its files start with the widest, the rest of the order is its own.
var byRank = [...]DType{U64, I64, F64, F32, U32, I32, BF16, F16, U16, I16, F8E4M3, F8E5M2, I8, U8, Bool}

// rank is the position of d in files of the reference writer, or -1 for a type that is not supported.
func (d DType) rank() int {
	for i, x := range byRank {
		if x == d {
			return i
		}
	}
	return -1
}

// Size is the number of bytes of an element, 0 for a type that is not supported.
func (d DType) Size() int {
	switch d {
	case F64, I64, U64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case F8E4M3, F8E5M2, I8, U8, Bool:
		return 1
	}
	return 0
}

func (d DType) isFloat() bool {
	switch d {
	case F64, F32, F16, BF16, F8E4M3, F8E5M2:
		return true
	}
	return false
}
