package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"heddle/num"
)

var le = binary.LittleEndian

// decodeFloats converts len(dst) elements of type d. Floats round to nearest even; a float that overflows or an integer that would change is an error.
func decodeFloats[T float32 | float64](d DType, src []byte, dst []T) error {
	switch d {
	case F32:
		for i := range dst {
			dst[i] = T(math.Float32frombits(le.Uint32(src[4*i:])))
		}
	case BF16:
		for i := range dst {
			dst[i] = T(num.FromBF16(le.Uint16(src[2*i:])))
		}
	case F16:
		for i := range dst {
			dst[i] = T(num.FromF16(le.Uint16(src[2*i:])))
		}
	case F8E5M2:
		for i := range dst {
			dst[i] = T(num.FromE5M2(src[i]))
		}
	case F8E4M3:
		for i := range dst {
			dst[i] = T(num.FromE4M3(src[i]))
		}
	case F64:
		for i := range dst {
			v := math.Float64frombits(le.Uint64(src[8*i:]))
			if dst[i] = T(v); math.IsInf(float64(dst[i]), 0) && !math.IsInf(v, 0) {
				return fmt.Errorf("element %d: %g overflows %T", i, v, dst[i])
			}
		}
	default:
		return floatsOfInts(d, src, dst)
	}
	return nil
}

func floatsOfInts[T float32 | float64](d DType, src []byte, dst []T) error {
	exact := int64(1) << 53 // every integer up to here is a T
	if _, single := any(T(0)).(float32); single {
		exact = 1 << 24
	}
	var one [1]int64
	for i := range dst {
		if err := decodeInts(d, src[i*d.Size():], one[:]); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		if one[0] > exact || one[0] < -exact {
			return fmt.Errorf("element %d: %d is not exact in %T", i, one[0], dst[i])
		}
		dst[i] = T(one[0])
	}
	return nil
}

// decodeInts converts len(dst) elements of an integer or boolean type.
func decodeInts(d DType, src []byte, dst []int64) error {
	for i := range dst {
		switch d {
		case I64:
			dst[i] = int64(le.Uint64(src[8*i:]))
		case I32:
			dst[i] = int64(int32(le.Uint32(src[4*i:])))
		case I16:
			dst[i] = int64(int16(le.Uint16(src[2*i:])))
		case I8:
			dst[i] = int64(int8(src[i]))
		case U64:
			if dst[i] = int64(le.Uint64(src[8*i:])); dst[i] < 0 {
				return fmt.Errorf("element %d: %d overflows int64", i, uint64(dst[i]))
			}
		case U32:
			dst[i] = int64(le.Uint32(src[4*i:]))
		case U16:
			dst[i] = int64(le.Uint16(src[2*i:]))
		case U8:
			dst[i] = int64(src[i])
		case Bool:
			if dst[i] = int64(src[i]); src[i] > 1 {
				return fmt.Errorf("element %d: byte %#02x is not a boolean", i, src[i])
			}
		default:
			return fmt.Errorf("%s is not an integer type", d)
		}
	}
	return nil
}
