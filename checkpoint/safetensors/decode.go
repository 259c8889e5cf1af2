package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
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
			dst[i] = T(math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16))
		}
	case F16:
		for i := range dst {
			dst[i] = T(fromF16(le.Uint16(src[2*i:])))
		}
	case F8E5M2: // the upper byte of an F16
		for i := range dst {
			dst[i] = T(fromF16(uint16(src[i]) << 8))
		}
	case F8E4M3:
		for i := range dst {
			dst[i] = T(fromE4M3(src[i]))
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

// fromF16 widens an IEEE 754 binary16: S.EEEEE.MMMMMMMMMM.
func fromF16(b uint16) float32 {
	sign, exp, frac := uint32(b>>15)<<31, uint32(b>>10&31), uint32(b&0x3ff)
	switch exp {
	case 31: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	case 0: // zero or subnormal: frac · 2^-24, exact in float32
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// fromE4M3 widens S.EEEE.MMM with bias 7 (Micikevicius et al. 2022, table 1).
func fromE4M3(b uint8) float32 {
	exp, frac := int(b>>3&15), float64(b&7)
	v := math.Ldexp(1+frac/8, exp-7)
	switch {
	case b&0x7f == 0x7f:
		v = math.NaN()
	case exp == 0:
		v = math.Ldexp(frac, -9)
	}
	if b&0x80 != 0 {
		v = -v
	}
	return float32(v)
}
