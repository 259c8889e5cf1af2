package tile

import "testing"

// The three modes as their bits are documented (PTX ISA, "Swizzling Modes"): 128B bits 4-6 ^= 7-9, 64B bits 4-5 ^= 7-8, 32B bit 4 ^= 7.
func TestSwizzleModesMoveTheDocumentedBits(t *testing.T) {
	for m, want := range map[SwizzleMode]func(x int) int{
		SwizzleNone: func(x int) int { return x },
		Swizzle32:   func(x int) int { return x ^ (x>>7&1)<<4 },
		Swizzle64:   func(x int) int { return x ^ (x>>7&3)<<4 },
		Swizzle128:  func(x int) int { return x ^ (x>>7&7)<<4 },
	} {
		seen := make([]bool, 8192)
		for x := range seen {
			y := m.Bytes().Apply(x)
			if y != want(x) || seen[y] || m.Bytes().Apply(y) != x {
				t.Fatalf("%v: %d goes to %d, want %d, once, and back", m, x, y, want(x))
			}
			seen[y] = true
		}
	}
	for m, want := range map[SwizzleMode][3]int{SwizzleNone: {128, 0, 0}, Swizzle32: {256, 1, 3}, Swizzle64: {512, 2, 2}, Swizzle128: {1024, 3, 1}} {
		if got := [3]int{m.Atom(), m.TensorMap(), m.Descriptor()}; got != want {
			t.Errorf("%v: atom, tensor map, descriptor %v, want %v", m, got, want)
		}
	}
	for bytes, want := range map[int]SwizzleMode{128: Swizzle128, 384: Swizzle128, 192: Swizzle64, 64: Swizzle64, 96: Swizzle32, 48: SwizzleNone} {
		if m, ok := SwizzleModeFor(bytes); !ok || m != want {
			t.Errorf("rows of %d bytes: got %v, want %v", bytes, m, want)
		}
	}
	if m, ok := SwizzleModeFor(24); ok {
		t.Errorf("rows of 24 bytes: got %v, want none", m)
	}
}

func TestRecastSwizzlesElementsAsItSwizzlesTheirBytes(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8, 16} {
		s := Must(Swizzle128.Bytes().Recast(size))
		for x := range 4096 {
			if got, want := s.Apply(x)*size, Swizzle128.Bytes().Apply(x*size); got != want {
				t.Fatalf("element %d of %d bytes: byte %d, want %d", x, size, got, want)
			}
		}
	}
	for _, n := range []int{0, -2, 3, 32} {
		if s, err := Swizzle128.Bytes().Recast(n); err == nil {
			t.Errorf("recast by %d: got %v", n, s)
		}
	}
}

func TestParseSwizzle(t *testing.T) {
	for _, text := range []string{"3,4,3", "Sw<3,4,3>", " Swizzle<3,4,3>", "3, 4, 3"} {
		if s, err := ParseSwizzle(text); err != nil || s != (Swizzle{3, 4, 3}) {
			t.Errorf("%s: got %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "3,4", "3,4,2", "3,4,_", "3,(4),3", "49,0,49", "1,40,8", "3,4,3,3", "-1,4,3"} {
		if s, err := ParseSwizzle(text); err == nil {
			t.Errorf("%s: got %v, want an error", text, s)
		}
	}
	for _, text := range []string{"0,0,48", "0,48,0", "24,0,24"} { // the bounds themselves
		if _, err := ParseSwizzle(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	c := Composed{Swizzle{3, 4, 3}, 128, Rows(8, 128)}
	if got := c.String(); got != "Sw<3,4,3> o 128 o (8,128):(128,1)" || c.At(1, 0) != 256^2<<4 {
		t.Errorf("got %s, %d", got, c.At(1, 0))
	}
}

func TestParseComposedReadsWhatItPrints(t *testing.T) {
	for text, want := range map[string]string{
		"Sw<3,4,3> o 128 o (8,64):(64,1)": "Sw<3,4,3> o 128 o (8,64):(64,1)",
		"Sw<3,4,3> o (8,64):(64,1)":       "Sw<3,4,3> o 0 o (8,64):(64,1)",
		"16 o 8:2":                        "Sw<0,0,0> o 16 o 8:2",
		"(8,64)":                          "Sw<0,0,0> o 0 o (8,64):(1,8)",
	} {
		c, err := ParseComposed(text)
		if err != nil || c.String() != want {
			t.Errorf("%s: got %v, %v, want %s", text, c, err, want)
		}
		if again, err := ParseComposed(c.String()); err != nil || again.String() != want {
			t.Errorf("%s again: got %v, %v", want, again, err)
		}
	}
	for _, text := range []string{"", "Sw<3,4,2> o 8:1", "Sw<3,4,3> o _ o 8:1", "Sw<3,4,3> o (1) o 8:1", "1 o 2 o 8:1", "Sw<3,4,3> o 0 o", "Sw<3,4,3>", "-1 o 8:1"} {
		if c, err := ParseComposed(text); err == nil {
			t.Errorf("%q: got %v", text, c)
		}
	}
}
