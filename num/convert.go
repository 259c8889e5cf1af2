package num

import "math"

// The canonical NaN of each narrow format: what Hopper's cvt writes for any NaN.
const (
	NaNBF16 = 0x7fff
	NaNF16  = 0x7fff
	NaNE4M3 = 0x7f
	NaNE5M2 = 0x7f
)

// ToBF16 rounds x to bfloat16 bits; overflow gives an infinity.
func ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return NaNBF16
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromBF16 widens bfloat16 bits, exactly.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// A format describes a narrow IEEE-like format for the shared rounding routine.
type format struct {
	frac   uint // bits of fraction
	bias   int
	maxFin uint32 // bits of the largest finite value
	inf    uint32 // bits that overflow gives
	nan    uint32
}

var (
	formatF16  = format{frac: 10, bias: 15, maxFin: 0x7bff, inf: 0x7c00, nan: NaNF16}
	formatE4M3 = format{frac: 3, bias: 7, maxFin: 0x7e, inf: NaNE4M3, nan: NaNE4M3} // no infinity: overflow is NaN
	formatE5M2 = format{frac: 2, bias: 15, maxFin: 0x7b, inf: 0x7c, nan: NaNE5M2}
)

// round gives the magnitude bits of |x| in f, to nearest, ties to even; x is not a NaN.
func (f *format) round(x float32) uint32 {
	b := math.Float32bits(x) & 0x7fffffff
	if b >= 0x7f800000 {
		return f.inf
	}
	e := int(b>>23) - 127
	sig := b & 0x7fffff
	if b>>23 == 0 {
		return 0 // float32 subnormals are far below half of any smallest value here
	}
	sig |= 1 << 23
	drop := 23 - int(f.frac) // bits that do not fit
	biased := e + f.bias
	if biased < 1 { // the result is subnormal: shift further right
		drop += 1 - biased
		biased = 0
		if drop > 25 {
			return 0
		}
	}
	q := sig >> drop
	rest, half := sig&(1<<drop-1), uint32(1)<<(drop-1)
	if rest > half || rest == half && q&1 == 1 {
		q++
	}
	if biased > 0 { // a carry out of the fraction runs into the exponent, as it should
		q += uint32(biased-1) << f.frac
	}
	return min(q, f.maxFin+1)
}

func (f *format) convert(x float32, width uint, saturate bool) uint32 {
	if x != x {
		return f.nan
	}
	sign := math.Float32bits(x) >> 31 << (width - 1)
	q := f.round(x)
	if q > f.maxFin {
		q = f.inf
		if saturate {
			q = f.maxFin
		}
	}
	return sign | q
}

// widen is the exact float32 value of magnitude bits m of a finite number.
func (f *format) widen(m uint32) float32 {
	e, frac := int(m>>f.frac), m&(1<<f.frac-1)
	if e == 0 {
		return float32(math.Ldexp(float64(frac), 1-f.bias-int(f.frac)))
	}
	return float32(math.Ldexp(float64(frac|1<<f.frac), e-f.bias-int(f.frac)))
}

// ToF16 rounds x to IEEE binary16 bits; overflow gives an infinity.
func ToF16(x float32) uint16 { return uint16(formatF16.convert(x, 16, false)) }

// FromF16 widens binary16 bits, exactly; a NaN stays some NaN.
func FromF16(h uint16) float32 {
	sign, e, frac := uint32(h)>>15<<31, uint32(h)>>10&31, uint32(h)&0x3ff
	switch e {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | frac<<13)
}

// ToE4M3 rounds x to fp8 e4m3 bits; beyond the largest finite value, 448, it gives NaN, as PyTorch's float8_e4m3fn does.
func ToE4M3(x float32) uint8 { return uint8(formatE4M3.convert(x, 8, false)) }

// SatE4M3 rounds x to fp8 e4m3 bits and clamps what is too large to ±448: cvt.rn.satfinite.
func SatE4M3(x float32) uint8 { return uint8(formatE4M3.convert(x, 8, true)) }

// FromE4M3 widens e4m3 bits, exactly.
func FromE4M3(h uint8) float32 {
	if h&0x7f == NaNE4M3 {
		return float32(math.NaN())
	}
	return signed(formatE4M3.widen(uint32(h&0x7f)), h)
}

// ToE5M2 rounds x to fp8 e5m2 bits; overflow gives an infinity.
func ToE5M2(x float32) uint8 { return uint8(formatE5M2.convert(x, 8, false)) }

// SatE5M2 rounds x to fp8 e5m2 bits and clamps what is too large to ±57344: cvt.rn.satfinite.
func SatE5M2(x float32) uint8 { return uint8(formatE5M2.convert(x, 8, true)) }

// FromE5M2 widens e5m2 bits, exactly.
func FromE5M2(h uint8) float32 {
	switch m := h & 0x7f; {
	case m > 0x7c:
		return float32(math.NaN())
	case m == 0x7c:
		return signed(float32(math.Inf(1)), h)
	}
	return signed(formatE5M2.widen(uint32(h&0x7f)), h)
}

func signed(x float32, h uint8) float32 {
	return math.Float32frombits(math.Float32bits(x) | uint32(h)>>7<<31)
}

// ToTF32 rounds x to 10 bits of fraction, ties to even: cvt.rn.tf32. The result is a float32 with 13 zero bits.
func ToTF32(x float32) float32 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return math.Float32frombits(0x7fffffff)
	}
	return math.Float32frombits((b + 0xfff + b>>13&1) &^ 0x1fff)
}

// ToTF32Away rounds x to 10 bits of fraction, ties away from zero: cvt.rna.tf32.
func ToTF32Away(x float32) float32 {
	b := math.Float32bits(x)
	if b&0x7fffffff >= 0x7f800000 {
		return ToTF32(x)
	}
	return math.Float32frombits((b + 0x1000) &^ 0x1fff)
}

// TruncTF32 drops the low 13 bits: how the tensor core reads a float32 operand that nobody rounded.
func TruncTF32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ 0x1fff) }
