package safetensors

import (
	"fmt"
	"math"

	"heddle/num"
)

// encodeFloats appends v as type d; see encodeFloat.
func encodeFloats[T float32 | float64](dst []byte, d DType, v []T) ([]byte, error) {
	if v, ok := any(v).([]float32); ok && d.isFloat() {
		return encodeFloat32s(dst, d, v), nil
	}
	var err error
	for i, x := range v {
		if dst, err = encodeFloat(dst, d, float64(x)); err != nil {
			return dst, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return dst, nil
}

func encodeInts(dst []byte, d DType, v []int64) ([]byte, error) {
	var err error
	for i, x := range v {
		if dst, err = encodeInt(dst, d, x); err != nil {
			return dst, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return dst, nil
}

// encodeFloat32s is encodeFloat for floats that are float32 already: no second rounding can happen, so the conversions of num serve.
func encodeFloat32s(dst []byte, d DType, v []float32) []byte {
	switch d {
	case F64:
		for _, x := range v {
			dst = le.AppendUint64(dst, math.Float64bits(float64(x)))
		}
	case F32:
		for _, x := range v {
			dst = le.AppendUint32(dst, math.Float32bits(x))
		}
	case BF16:
		for _, x := range v {
			dst = le.AppendUint16(dst, num.ToBF16(x))
		}
	case F16:
		for _, x := range v {
			dst = le.AppendUint16(dst, num.ToF16(x))
		}
	case F8E5M2:
		for _, x := range v {
			dst = append(dst, num.ToE5M2(x))
		}
	case F8E4M3:
		for _, x := range v {
			dst = append(dst, num.ToE4M3(x))
		}
	}
	return dst
}

// encodeFloat appends v as type d, rounded once from float64 to nearest even. What overflows becomes what PyTorch makes of it: infinity, or NaN in
// F8_E4M3, which has none. An integer type takes only whole numbers in its range.
func encodeFloat(dst []byte, d DType, v float64) ([]byte, error) {
	switch d {
	case F64:
		return le.AppendUint64(dst, math.Float64bits(v)), nil
	case F32:
		return le.AppendUint32(dst, math.Float32bits(float32(v))), nil
	case BF16:
		return le.AppendUint16(dst, uint16(narrow(v, 8, 7, true))), nil
	case F16:
		return le.AppendUint16(dst, uint16(narrow(v, 5, 10, true))), nil
	case F8E5M2:
		return append(dst, byte(narrow(v, 5, 2, true))), nil
	case F8E4M3:
		return append(dst, byte(narrow(v, 4, 3, false))), nil
	}
	if v != math.Trunc(v) || math.Abs(v) > 1<<53 { // NaN too
		return dst, fmt.Errorf("%g is not a whole number that %s holds", v, d)
	}
	return encodeInt(dst, d, int64(v))
}

// encodeInt appends v as type d, which may be a float type if it holds v exactly.
func encodeInt(dst []byte, d DType, v int64) ([]byte, error) {
	bits := uint(8 * d.Size())
	switch d {
	case Bool:
		bits = 1
		fallthrough
	case U32, U16, U8:
		if v < 0 || v>>bits != 0 {
			return dst, fmt.Errorf("%d does not fit %s", v, d)
		}
	case U64:
		if v < 0 {
			return dst, fmt.Errorf("%d does not fit %s", v, d)
		}
	case I64, I32, I16, I8:
		if s := v >> (bits - 1); s != 0 && s != -1 {
			return dst, fmt.Errorf("%d does not fit %s", v, d)
		}
	default:
		return encodeIntAsFloat(dst, d, v)
	}
	switch d.Size() {
	case 8:
		return le.AppendUint64(dst, uint64(v)), nil
	case 4:
		return le.AppendUint32(dst, uint32(v)), nil
	case 2:
		return le.AppendUint16(dst, uint16(v)), nil
	}
	return append(dst, byte(v)), nil
}

func encodeIntAsFloat(dst []byte, d DType, v int64) ([]byte, error) {
	if v > 1<<53 || v < -1<<53 {
		return dst, fmt.Errorf("%d is not exact in %s", v, d)
	}
	n := len(dst)
	dst, _ = encodeFloat(dst, d, float64(v))
	var back [1]float64
	if decodeFloats(d, dst[n:], back[:]); back[0] != float64(v) {
		return dst[:n], fmt.Errorf("%d is not exact in %s", v, d)
	}
	return dst, nil
}

// narrow rounds v to a float of 1 sign, e exponent and m fraction bits with IEEE 754 layout and bias. infinite: the top exponent holds infinity and NaN;
// else only the all-ones pattern is NaN and the rest of that exponent are numbers.
func narrow(v float64, e, m int, infinite bool) uint32 {
	bias := 1<<(e-1) - 1
	sign := uint32(math.Float64bits(v)>>63) << (e + m)
	top := uint32(1<<e-1) << m // exponent all ones, fraction zero
	nan := top | 1<<(m-1)
	over := top
	if !infinite {
		nan, over = top|(1<<m-1), top|(1<<m-1)
	}
	a := math.Abs(v)
	if a != a {
		return sign | nan
	}
	if math.IsInf(a, 0) {
		return sign | over
	}
	exp := max(math.Ilogb(a), 1-bias) // below the smallest normal the spacing stays
	if a == 0 {
		return sign
	}
	units := math.RoundToEven(math.Ldexp(a, m-exp)) // a in units of the last place: exact scaling, one rounding
	if units == 0 {
		return sign
	}
	// With the hidden bit left in, a fraction that rounded up to 2^(m+1) carries into the exponent by itself.
	code := uint32(int(units) + (exp+bias-1)<<m)
	if code >= over {
		return sign | over
	}
	return sign | code
}
