package num

import (
	"math"
	"sort"
	"testing"
)

// A narrow format under test: every finite non-negative value by bits, in order, and its conversions.
type narrow struct {
	name   string
	finite int // magnitudes 0..finite-1 are finite
	from   func(uint32) float32
	to     func(float32) uint32
	sign   uint32
	over   uint32 // bits that overflow gives
	nan    uint32
}

func narrows() []narrow {
	u16 := func(f func(uint16) float32) func(uint32) float32 {
		return func(b uint32) float32 { return f(uint16(b)) }
	}
	u8 := func(f func(uint8) float32) func(uint32) float32 { return func(b uint32) float32 { return f(uint8(b)) } }
	return []narrow{
		{"bf16", 0x7f80, u16(FromBF16), func(x float32) uint32 { return uint32(ToBF16(x)) }, 0x8000, 0x7f80, NaNBF16},
		{"f16", 0x7c00, u16(FromF16), func(x float32) uint32 { return uint32(ToF16(x)) }, 0x8000, 0x7c00, NaNF16},
		{"e4m3", 0x7f, u8(FromE4M3), func(x float32) uint32 { return uint32(ToE4M3(x)) }, 0x80, NaNE4M3, NaNE4M3},
		{"e5m2", 0x7c, u8(FromE5M2), func(x float32) uint32 { return uint32(ToE5M2(x)) }, 0x80, 0x7c, NaNE5M2},
		{"e4m3 saturating", 0x7f, u8(FromE4M3), func(x float32) uint32 { return uint32(SatE4M3(x)) }, 0x80, 0x7e, NaNE4M3},
		{"e5m2 saturating", 0x7c, u8(FromE5M2), func(x float32) uint32 { return uint32(SatE5M2(x)) }, 0x80, 0x7b, NaNE5M2},
	}
}

// Every value of every format survives widening and rounding; values are strictly increasing in their bits.
func TestEveryValueRoundTrips(t *testing.T) {
	for _, f := range narrows() {
		prev := float32(math.Inf(-1))
		for b := uint32(0); b < uint32(f.finite); b++ {
			x := f.from(b)
			if x <= prev {
				t.Fatalf("%s: value of %#x is %v, not above its neighbour %v", f.name, b, x, prev)
			}
			prev = x
			if got := f.to(x); got != b {
				t.Fatalf("%s: %v rounds to %#x, want %#x", f.name, x, got, b)
			}
			if got := f.to(-x); got != b|f.sign {
				t.Fatalf("%s: %v rounds to %#x, want %#x", f.name, -x, got, b|f.sign)
			}
		}
	}
}

// Rounding is monotone, so it is fixed by its jumps: exhaustively, the float32 just below each midpoint, the midpoint and the one just above.
func TestEveryMidpointTiesToEven(t *testing.T) {
	for _, f := range narrows() {
		for b := uint32(0); b+1 < uint32(f.finite); b++ {
			mid64 := (float64(f.from(b)) + float64(f.from(b+1))) / 2
			mid := float32(mid64)
			if float64(mid) != mid64 {
				t.Fatalf("%s: midpoint above %#x is no float32", f.name, b)
			}
			even := b + b&1
			below, above := math.Nextafter32(mid, 0), math.Nextafter32(mid, math.MaxFloat32)
			for _, c := range []struct {
				x    float32
				want uint32
			}{{below, b}, {mid, even}, {above, b + 1}} {
				if got := f.to(c.x); got != c.want {
					t.Fatalf("%s: %v (%#x) rounds to %#x, want %#x", f.name, c.x, math.Float32bits(c.x), got, c.want)
				}
				if got := f.to(-c.x); got != c.want|f.sign {
					t.Fatalf("%s: %v rounds to %#x, want %#x", f.name, -c.x, got, c.want|f.sign)
				}
			}
		}
	}
}

func TestOverflowInfinityAndNaN(t *testing.T) {
	for _, f := range narrows() {
		top, below := float64(f.from(uint32(f.finite-1))), float64(f.from(uint32(f.finite-2)))
		limit := float32(top + (top-below)/2) // half a step above the largest: the tie goes to the even neighbour
		want := uint32(f.finite - 1)
		if want&1 == 1 {
			want = f.over
		}
		if !math.IsInf(float64(limit), 0) { // for bf16 the limit itself is a float32
			if got := f.to(limit); got != want {
				t.Errorf("%s: %v gives %#x, want %#x", f.name, limit, got, want)
			}
		}
		if got := f.to(math.Nextafter32(limit, 0)); got != uint32(f.finite-1) {
			t.Errorf("%s: just below the limit gives %#x, want the largest finite", f.name, got)
		}
		for _, x := range []float32{math.MaxFloat32, float32(math.Inf(1))} {
			if got := f.to(x); got != f.over {
				t.Errorf("%s: %v gives %#x, want %#x", f.name, x, got, f.over)
			}
			if got, want := f.to(-x), f.over|f.sign; got != want && f.over != f.nan {
				t.Errorf("%s: %v gives %#x, want %#x", f.name, -x, got, want)
			}
		}
		for _, bits := range []uint32{0x7f800001, 0x7fc00000, 0xffc00000, 0x7fffffff, 0xff800001} {
			if got := f.to(math.Float32frombits(bits)); got != f.nan {
				t.Errorf("%s: NaN %#x gives %#x, want %#x", f.name, bits, got, f.nan)
			}
		}
		if !math.IsNaN(float64(f.from(f.nan))) {
			t.Errorf("%s: canonical NaN does not widen to NaN", f.name)
		}
	}
}

// Known anchors, from the OCP fp8 paper (Micikevicius et al. 2022, table 1) and IEEE 754.
func TestKnownValues(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float32
	}{
		{"e4m3 largest", FromE4M3(0x7e), 448}, {"e4m3 smallest normal", FromE4M3(0x08), 0x1p-6}, {"e4m3 smallest", FromE4M3(1), 0x1p-9},
		{"e5m2 largest", FromE5M2(0x7b), 57344}, {"e5m2 smallest normal", FromE5M2(0x04), 0x1p-14}, {"e5m2 smallest", FromE5M2(1), 0x1p-16},
		{"f16 largest", FromF16(0x7bff), 65504}, {"f16 smallest", FromF16(1), 0x1p-24}, {"bf16 one", FromBF16(0x3f80), 1},
		{"tf32 tie to even, down", ToTF32(1 + 0x1p-11), 1}, {"tf32 tie to even, up", ToTF32(1 + 3*0x1p-11), 1 + 0x1p-9},
		{"tf32 tie away", ToTF32Away(1 + 0x1p-11), 1 + 0x1p-10}, {"tf32 truncation", TruncTF32(1 + 0x1p-10 + 0x1p-11), 1 + 0x1p-10},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if math.Float32bits(ToTF32(-math.MaxFloat32)) != 0xff800000 {
		t.Error("tf32: the largest float32 does not round to infinity")
	}
}

// Tf32 against an independent rounding in float64: x is a 24-bit integer multiple of a power of two, RoundToEven does the rest.
func TestTF32AgainstRoundToEven(t *testing.T) {
	for sig := 1 << 23; sig < 1<<24; sig += 7 {
		for _, e := range []int{-100, 0, 60} {
			x := float32(math.Ldexp(float64(sig), e-23))
			want := float32(math.Ldexp(math.RoundToEven(float64(sig)/(1<<13)), e-10))
			if got := ToTF32(x); got != want {
				t.Fatalf("%v rounds to %v, want %v", x, got, want)
			}
		}
	}
}

func TestULPsCountsNeighbours(t *testing.T) {
	inf := float32(math.Inf(1))
	xs := []float32{-inf, -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, 0, math.SmallestNonzeroFloat32, 0x1p-126, 1, math.MaxFloat32}
	for _, x := range xs {
		if got := ULPs(x, math.Nextafter32(x, inf)); got != 1 {
			t.Errorf("from %v one step up counts %d", x, got)
		}
	}
	sort.Slice(xs, func(i, j int) bool { return xs[i] < xs[j] })
	for i := 2; i < len(xs); i++ { // distances along a line add up
		if ULPs(xs[i-2], xs[i]) != ULPs(xs[i-2], xs[i-1])+ULPs(xs[i-1], xs[i]) {
			t.Errorf("distances to %v do not add up", xs[i])
		}
	}
	nan := float32(math.NaN())
	if ULPs(float32(math.Copysign(0, -1)), 0) != 0 || ULPs(nan, nan) != 0 || ULPs(nan, 1) != math.MaxUint32 {
		t.Error("zeros or NaNs compare wrong")
	}
}

func TestULPIsTheSpacing(t *testing.T) {
	for _, f := range narrows()[:4] {
		d, err := ParseDType(f.name)
		if err != nil {
			t.Fatal(err)
		}
		for b := uint32(0); b+1 < uint32(f.finite); b++ {
			x, y := float64(f.from(b)), float64(f.from(b+1))
			if got := ULP(d, x); got != y-x {
				t.Fatalf("%s: spacing at %v is %v, want %v", f.name, x, got, y-x)
			}
		}
	}
	if ULP(F32, 1) != 0x1p-23 || ULP(F64, 1) != 0x1p-52 || ULP(TF32, 1.5) != 0x1p-10 || ULP(I32, 7) != 0 {
		t.Error("spacing of wide formats")
	}
}

func TestDTypeNamesAndSizes(t *testing.T) {
	for d := F32; d <= U64; d++ {
		got, err := ParseDType(d.String())
		if err != nil || got != d || d.Size() == 0 {
			t.Errorf("%v: parsed as %v, size %d, %v", d, got, d.Size(), err)
		}
	}
	if _, err := ParseDType("float"); err == nil || DType(0).Size() != 0 || DType(200).Size() != 0 {
		t.Error("an unknown name or value passes")
	}
}
