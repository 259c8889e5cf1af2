package emulate

import (
	"math"

	"heddle/num"
)

func fmaF32(w *warp, c *code) {
	a, b, d := &w.r[c.a], &w.r[c.b], &w.r[c.c]
	var t lanes32
	for i := range t {
		x, y, z := f32(a[i]), f32(b[i]), f32(d[i])
		s := float64(x)*float64(y) + float64(z)
		if n := math.Float64bits(s); certain(n) {
			t[i] = math.Float32bits(float32(s))
		} else {
			t[i] = math.Float32bits(fma32(x, y, z))
		}
	}
	w.put(c.d, &t)
}

// certain tells whether a float64, rounded once already, can be rounded to float32 without going wrong: it becomes a normal float32, and it is no tie.
func certain(b uint64) bool { return b>>52&0x7ff-(1023-125) < 252 && b&(1<<29-1) != 1<<28 }

// fma32 rounds x·y + z once. The product is exact in float64; the float64 sum is rounded to odd, so that the second rounding cannot go wrong
// (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
func fma32(x, y, z float32) float32 {
	p, q := float64(x)*float64(y), float64(z)
	s := p + q
	b := math.Float64bits(s)
	if certain(b) {
		return float32(s)
	}
	if b&1 == 0 && !math.IsInf(s, 0) { // find the error of the sum (Knuth's TwoSum); where there is one, make the last bit odd
		pp := s - q
		e := (p - pp) + (q - (s - pp))
		if e != 0 && e == e {
			if (e > 0) == (s > 0) {
				b++
			} else {
				b--
			}
			s = math.Float64frombits(b)
		}
	}
	return canonical(float32(s))
}

func f32(b uint32) float32 { return math.Float32frombits(b) }

// canonical gives the one NaN that Hopper's float32 arithmetic produces.
func canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(0x7fffffff)
	}
	return x
}

func float1(f func(x float32) float32) op {
	return apply1(func(x uint32) uint32 { return math.Float32bits(canonical(f(f32(x)))) })
}

func float2(f func(x, y float32) float32) op {
	return apply2(func(x, y uint32) uint32 { return math.Float32bits(canonical(f(f32(x), f32(y)))) })
}

func compareF(f func(x, y float32) bool) op {
	return compare(func(x, y uint32) bool { return f(f32(x), f32(y)) })
}

func packBF16(hi, lo uint32) uint32 {
	return uint32(num.ToBF16(f32(hi)))<<16 | uint32(num.ToBF16(f32(lo)))
}

func packF16(hi, lo uint32) uint32 {
	return uint32(num.ToF16(f32(hi)))<<16 | uint32(num.ToF16(f32(lo)))
}

// flush replaces a subnormal by zero of its sign, as .ftz does on the way in and out.
func flush(x float32) float32 {
	if x > -0x1p-126 && x < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// approx evaluates an approximate function in float64, subnormals as zero. The card may differ by the ulps its manual states.
func approx(f func(x float64) float64) op {
	return float1(func(x float32) float32 { return flush(float32(f(float64(flush(x))))) })
}

func minF(x, y float32) float32 {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return min(x, y)
}

func maxF(x, y float32) float32 {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return max(x, y)
}

func truncU32(x uint32) uint32 {
	switch f := f32(x); {
	case f != f || f <= 0:
		return 0
	case f >= 1<<32:
		return math.MaxUint32
	default:
		return uint32(f)
	}
}

// tf32 rounds; a NaN only loses its low bits, and becomes an infinity where those were all it had (an H200 does so, conform convert 2009).
func tf32(x uint32) uint32 {
	if x&0x7f800000 == 0x7f800000 {
		return x &^ 0x1fff
	}
	return math.Float32bits(num.ToTF32Away(f32(x)))
}

// toS32 converts with a rounding, saturating; NaN gives 0.
func toS32(round func(float64) float64) op {
	return apply1(func(x uint32) uint32 {
		f := float64(f32(x))
		if f != f {
			return 0
		}
		return uint32(int32(min(max(round(f), math.MinInt32), math.MaxInt32)))
	})
}

func packE4M3(hi, lo uint32) uint32 {
	return uint32(num.SatE4M3(f32(hi)))<<8 | uint32(num.SatE4M3(f32(lo)))
}
func packE5M2(hi, lo uint32) uint32 {
	return uint32(num.SatE5M2(f32(hi)))<<8 | uint32(num.SatE5M2(f32(lo)))
}
