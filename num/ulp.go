package num

import "math"

// ULPs is the number of float32 values between a and b: 0 where they are equal (also −0 and 0, and two NaNs), math.MaxUint32 where exactly one is a NaN.
func ULPs(a, b float32) uint32 {
	if a != a || b != b {
		if a != a && b != b {
			return 0
		}
		return math.MaxUint32
	}
	x, y := ordered(a), ordered(b)
	if x < y {
		x, y = y, x
	}
	return uint32(x - y)
}

// ordered maps float32 values to integers so that neighbours differ by one and −0 equals 0.
func ordered(x float32) int64 {
	b := math.Float32bits(x)
	if b>>31 == 1 {
		return -int64(b & 0x7fffffff)
	}
	return int64(b)
}

// ULP is the spacing of d's values at |x|: the distance from the value at or just below |x| to the next one up.
// It is d's smallest positive value near zero, and 0 for integer formats.
func ULP(d DType, x float64) float64 {
	frac, minExp := 0, 0 // bits of fraction; exponent of the smallest normal
	switch d {
	case F64:
		frac, minExp = 52, -1022
	case F32:
		frac, minExp = 23, -126
	case TF32:
		frac, minExp = 10, -126
	case BF16:
		frac, minExp = 7, -126
	case F16:
		frac, minExp = 10, -14
	case E4M3:
		frac, minExp = 3, -6
	case E5M2:
		frac, minExp = 2, -14
	default:
		return 0
	}
	if math.IsInf(x, 0) || x != x {
		return math.NaN()
	}
	_, e := math.Frexp(x) // x = m·2^e, m in [½, 1)
	if x == 0 {
		e = minExp
	}
	return math.Ldexp(1, max(e-1, minExp)-frac)
}

// Round gives the float32 value of x rounded to d, ties to even, overflow as the non-saturating conversions do.
// Formats of 32 bits or more return x unchanged.
func Round(d DType, x float32) float32 {
	switch d {
	case BF16:
		return FromBF16(ToBF16(x))
	case F16:
		return FromF16(ToF16(x))
	case TF32:
		return ToTF32(x)
	case E4M3:
		return FromE4M3(ToE4M3(x))
	case E5M2:
		return FromE5M2(ToE5M2(x))
	}
	return x
}
