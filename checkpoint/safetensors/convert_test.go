package safetensors

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// floatFormats lists the narrow floats: exponent bits, fraction bits, whether the top exponent holds infinity and NaN only.
var floatFormats = []struct {
	d        DType
	e, m     int
	infinite bool
}{{F16, 5, 10, true}, {BF16, 8, 7, true}, {F8E5M2, 5, 2, true}, {F8E4M3, 4, 3, false}}

// definition is the value of a code by the definition of a binary float, computed with Ldexp and no bit tricks.
func definition(code uint32, e, m int, infinite bool) float64 {
	exp, frac := int(code>>m)&(1<<e-1), int(code)&(1<<m-1)
	bias := 1<<(e-1) - 1
	v := math.Ldexp(1+float64(frac)/float64(int(1)<<m), exp-bias)
	top := exp == 1<<e-1
	switch {
	case exp == 0:
		v = math.Ldexp(float64(frac), 1-bias-m)
	case top && infinite && frac == 0:
		v = math.Inf(1)
	case top && infinite, top && frac == 1<<m-1:
		v = math.NaN()
	}
	if code>>(e+m)&1 == 1 {
		v = -v
	}
	return v
}

func encoded(t *testing.T, d DType, v float64) []byte {
	t.Helper()
	b, err := encodeFloat(nil, d, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every code of every narrow float reads as its definition says, and is written back as itself (NaN as some NaN).
func TestEveryCodeReadsByDefinitionAndWritesBack(t *testing.T) {
	for _, f := range floatFormats {
		for code := range uint32(1) << (1 + f.e + f.m) {
			src := []byte{byte(code), byte(code >> 8)}[:f.d.Size()]
			var got [1]float64
			if err := decodeFloats(f.d, src, got[:]); err != nil {
				t.Fatal(err)
			}
			want := definition(code, f.e, f.m, f.infinite)
			if math.Float64bits(got[0]) != math.Float64bits(want) && !(got[0] != got[0] && want != want) {
				t.Fatalf("%s %#x: got %g, want %g", f.d, code, got[0], want)
			}
			var single [1]float32
			decodeFloats(f.d, src, single[:])
			if float64(single[0]) != want && want == want {
				t.Fatalf("%s %#x: got float32 %g, want %g", f.d, code, single[0], want)
			}
			back := encoded(t, f.d, want)
			if want != want {
				decodeFloats(f.d, back, got[:])
				if got[0] == got[0] {
					t.Fatalf("%s: NaN written as %g", f.d, got[0])
				}
			} else if !bytes.Equal(back, src) {
				t.Fatalf("%s %g: got code %x, want %x", f.d, want, back, src)
			}
		}
	}
}

// Between every two neighbours of a narrow float, a value rounds down below the middle, up above it, and to the even code on it. That is rounding to
// nearest even by its definition. Past the largest number the next "neighbour" is the overflow code.
func TestRoundingIsToNearestEven(t *testing.T) {
	for _, f := range floatFormats {
		over := uint32(1<<f.e-1) << f.m // the code of infinity
		if !f.infinite {
			over |= 1<<f.m - 1 // NaN, where 480 would be
		}
		for code := range over {
			lo := definition(code, f.e, f.m, f.infinite)
			hi := definition(code+1, f.e, f.m, f.infinite)
			if code+1 == over {
				hi = lo + lo - definition(code-1, f.e, f.m, f.infinite)
			}
			mid := lo + (hi-lo)/2 // exact: a float64 has bits to spare
			even := code + code&1
			for _, c := range []struct {
				v    float64
				want uint32
			}{{math.Nextafter(mid, lo), code}, {mid, even}, {math.Nextafter(mid, hi), code + 1}} {
				for sign := range uint32(2) {
					v := c.v
					if sign == 1 {
						v = -v
					}
					want := c.want | sign<<(f.e+f.m)
					if got := narrow(v, f.e, f.m, f.infinite); got != want {
						t.Fatalf("%s: %.17g: got code %#x, want %#x", f.d, v, got, want)
					}
				}
			}
		}
		for _, v := range []float64{math.Inf(1), math.MaxFloat64} {
			if got := narrow(v, f.e, f.m, f.infinite); got != over {
				t.Errorf("%s: %g: got %#x, want %#x", f.d, v, got, over)
			}
		}
		if got := narrow(5e-324, f.e, f.m, f.infinite); got != 0 {
			t.Errorf("%s: 5e-324: got %#x, want 0", f.d, got)
		}
	}
}

// The fast path from float32 equals the general one: on random bits, on every code's value, and around the middle of every pair of neighbours.
func TestFloat32PathEqualsNarrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, math.SmallestNonzeroFloat32}
	for range 100_000 {
		random = append(random, math.Float32frombits(rng.Uint32()))
	}
	for _, f := range floatFormats {
		values := random
		for code := range uint32(1) << (f.e + f.m) {
			lo, hi := definition(code, f.e, f.m, f.infinite), definition(code+1, f.e, f.m, f.infinite)
			mid := float32(lo + (hi-lo)/2)
			values = append(values, float32(lo), mid, math.Nextafter32(mid, float32(lo)), math.Nextafter32(mid, float32(hi)), -mid)
		}
		got := encodeFloat32s(nil, f.d, values)
		for i, v := range values {
			b := got[i*f.d.Size() : (i+1)*f.d.Size()]
			want := narrow(float64(v), f.e, f.m, f.infinite)
			var back [1]float32
			decodeFloats(f.d, b, back[:])
			if v != v {
				if back[0] == back[0] {
					t.Fatalf("%s: NaN became %g", f.d, back[0])
				}
			} else if !bytes.Equal(b, []byte{byte(want), byte(want >> 8)}[:len(b)]) {
				t.Fatalf("%s: %g (%#x): got % x, want %#x", f.d, v, math.Float32bits(v), b, want)
			}
		}
	}
}

// An integer comes back as it was or is an error: at the ends of each type and one past them.
func TestIntegersAreKeptOrRefused(t *testing.T) {
	ends := map[DType][2]int64{
		I64: {math.MinInt64, math.MaxInt64}, I32: {math.MinInt32, math.MaxInt32}, I16: {math.MinInt16, math.MaxInt16}, I8: {-128, 127},
		U64: {0, math.MaxInt64}, U32: {0, math.MaxUint32}, U16: {0, math.MaxUint16}, U8: {0, 255}, Bool: {0, 1},
		F64: {-1 << 53, 1 << 53},
	}
	for d, e := range ends {
		for i, v := range e {
			b, err := encodeInt(nil, d, v)
			if err != nil {
				t.Errorf("%s: %d refused: %v", d, v, err)
				continue
			}
			var back [1]int64
			if d == F64 {
				var f [1]float64
				decodeFloats(d, b, f[:])
				back[0] = int64(f[0])
			} else if err := decodeInts(d, b, back[:]); err != nil {
				t.Error(err)
			}
			if back[0] != v {
				t.Errorf("%s: %d came back as %d", d, v, back[0])
			}
			past := v + int64(2*i-1)
			if (past > v) != (i == 1) { // beyond int64 itself
				continue
			}
			if _, err := encodeInt(nil, d, past); err == nil {
				t.Errorf("%s: %d accepted", d, past)
			}
		}
	}
	if _, err := encodeInt(nil, F32, 1<<24+1); err == nil {
		t.Error("F32: 2^24+1 accepted")
	}
	for _, v := range []float64{0.5, math.NaN(), math.Inf(1), 300} {
		if _, err := encodeFloat(nil, U8, v); err == nil {
			t.Errorf("U8: %g accepted", v)
		}
	}
}

func TestLossyReadsAreRefused(t *testing.T) {
	cases := []struct {
		name string
		err  error
		says string
	}{
		{"F64 too large for float32", decodeFloats(F64, le.AppendUint64(nil, math.Float64bits(1e300)), make([]float32, 1)), "overflows float32"},
		{"I32 above 2^24 in float32", decodeFloats(I32, le.AppendUint32(nil, 1<<24+1), make([]float32, 1)), "not exact in float32"},
		{"I64 above 2^53 in float64", decodeFloats(I64, le.AppendUint64(nil, 1<<53+1), make([]float64, 1)), "not exact in float64"},
		{"U64 above 2^63", decodeInts(U64, le.AppendUint64(nil, 1<<63), make([]int64, 1)), "overflows int64"},
		{"float as integer", decodeInts(F32, make([]byte, 4), make([]int64, 1)), "not an integer type"},
		{"boolean 2", decodeInts(Bool, []byte{2}, make([]int64, 1)), "not a boolean"},
	}
	for _, c := range cases {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.name, c.err, c.says)
		}
	}
}
