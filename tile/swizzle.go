package tile

import (
	"fmt"
	"math/bits"
	"strings"
)

// Swizzle permutes offsets: B bits from position M+S up are XORed onto the B bits from M up. The low M bits never move, so units of 2^M stay whole;
// applied twice it is the identity. The zero Swizzle changes nothing.
type Swizzle struct{ B, M, S int }

// NewSwizzle checks the three numbers: non-negative, S ≥ B (so that source and target bits are apart), at most 48 bits in all.
func NewSwizzle(b, m, s int) (Swizzle, error) {
	if b < 0 || m < 0 || s < 0 || b > 48 || m > 48 || s > 48 || b+m+s > 48 {
		return Swizzle{}, fmt.Errorf("tile: swizzle <%d,%d,%d>, want B, M, S ≥ 0 and B+M+S ≤ 48", b, m, s)
	}
	if s < b {
		return Swizzle{}, fmt.Errorf("tile: swizzle <%d,%d,%d> with S < B would XOR bits onto themselves", b, m, s)
	}
	return Swizzle{b, m, s}, nil
}

// ParseSwizzle reads "3,4,3", optionally as CuTe writes it: "Sw<3,4,3>" or "Swizzle<3,4,3>".
func ParseSwizzle(s string) (Swizzle, error) {
	t := strings.TrimSpace(s)
	for _, prefix := range []string{"Swizzle<", "Sw<", "S<"} {
		if rest, ok := strings.CutPrefix(t, prefix); ok {
			t = strings.TrimSuffix(rest, ">")
			break
		}
	}
	tuple, err := ParseTuple("(" + t + ")")
	if err != nil || len(tuple.Modes) != 3 {
		return Swizzle{}, fmt.Errorf("tile: swizzle %q; hint: write B,M,S as in 3,4,3", s)
	}
	for _, m := range tuple.Modes {
		if m.Free || m.Modes != nil {
			return Swizzle{}, fmt.Errorf("tile: swizzle %q; hint: write B,M,S as in 3,4,3", s)
		}
	}
	return NewSwizzle(tuple.Modes[0].Value, tuple.Modes[1].Value, tuple.Modes[2].Value)
}

// Apply permutes one offset.
func (s Swizzle) Apply(x int) int { return x ^ x>>s.S&((1<<s.B-1)<<s.M) }

// Recast is the same permutation counted in units of n bytes (or n of whatever the unit was): n a power of two that fits the unit 2^M.
func (s Swizzle) Recast(n int) (Swizzle, error) {
	shift := bits.TrailingZeros(uint(n))
	if n < 1 || n != 1<<shift || shift > s.M && s.B > 0 {
		return Swizzle{}, fmt.Errorf("tile: %v in units of %d: want a power of two ≤ %d", s, n, 1<<s.M)
	}
	return Swizzle{s.B, max(s.M-shift, 0), s.S}, nil
}

func (s Swizzle) String() string { return fmt.Sprintf("Sw<%d,%d,%d>", s.B, s.M, s.S) }

// Composed is a swizzled layout: i ↦ Swizzle(Offset + Layout(i)).
type Composed struct {
	Swizzle Swizzle `json:"swizzle"`
	Offset  int     `json:"offset"`
	Layout  Layout  `json:"layout"`
}

// At evaluates at one linear coordinate, or at one for each mode.
func (c Composed) At(coord ...int) int { return c.Swizzle.Apply(c.Offset + c.Layout.At(coord...)) }

// String prints as CuTe does: Sw<3,4,3> o 0 o (8,64):(64,1).
func (c Composed) String() string { return fmt.Sprintf("%v o %d o %v", c.Swizzle, c.Offset, c.Layout) }

// ParseComposed reads what Composed prints; swizzle and offset may be left out.
func ParseComposed(s string) (Composed, error) {
	var c Composed
	parts := strings.Split(s, " o ")
	if len(parts) > 1 && strings.Contains(parts[0], "<") {
		var err error
		if c.Swizzle, err = ParseSwizzle(parts[0]); err != nil {
			return Composed{}, err
		}
		parts = parts[1:]
	}
	if len(parts) == 2 {
		offset, err := ParseTuple(parts[0])
		if err != nil || offset.Free || offset.Modes != nil {
			return Composed{}, fmt.Errorf("tile: offset %.40q; hint: Sw<3,4,3> o 0 o (8,64):(64,1)", parts[0])
		}
		c.Offset, parts = offset.Value, parts[1:]
	}
	if len(parts) != 1 {
		return Composed{}, fmt.Errorf("tile: composed layout %.80q; hint: Sw<3,4,3> o 0 o (8,64):(64,1)", s)
	}
	var err error
	c.Layout, err = Parse(parts[0])
	return c, err
}

// SwizzleMode is one of the four swizzles that TMA and wgmma know; its value is the width of a row of the atom in bytes, 16 for none. An atom is 8 rows.
type SwizzleMode int

// The modes, by row width in bytes.
const (
	SwizzleNone SwizzleMode = 16
	Swizzle32   SwizzleMode = 32
	Swizzle64   SwizzleMode = 64
	Swizzle128  SwizzleMode = 128
)

// SwizzleModes lists them, widest first: a tile takes the first that divides its rows.
func SwizzleModes() []SwizzleMode {
	return []SwizzleMode{Swizzle128, Swizzle64, Swizzle32, SwizzleNone}
}

func (m SwizzleMode) check() error {
	for _, known := range SwizzleModes() {
		if m == known {
			return nil
		}
	}
	return fmt.Errorf("tile: swizzle mode of %d bytes; hint: 16 (none), 32, 64 or 128", int(m))
}

// SwizzleModeFor is the widest mode whose row divides rowBytes; ok is false if not even 16 bytes do.
func SwizzleModeFor(rowBytes int) (m SwizzleMode, ok bool) {
	for _, m := range SwizzleModes() {
		if rowBytes > 0 && rowBytes%int(m) == 0 {
			return m, true
		}
	}
	return 0, false
}

// Bytes is the mode's permutation of byte addresses; addresses must be counted from a multiple of Atom.
func (m SwizzleMode) Bytes() Swizzle { return Swizzle{bits.TrailingZeros(uint(m)) - 4, 4, 3} }

// Atom is the size of the atom in bytes, which is also the alignment of a buffer in this mode.
func (m SwizzleMode) Atom() int { return 8 * int(m) }

// TensorMap is the mode's number in cuTensorMapEncodeTiled: none 0, 32B 1, 64B 2, 128B 3.
func (m SwizzleMode) TensorMap() int { return bits.TrailingZeros(uint(m)) - 4 }

// Descriptor is the mode's number in bits 62-63 of a wgmma descriptor, the reverse order: none 0, 128B 1, 64B 2, 32B 3.
func (m SwizzleMode) Descriptor() int {
	if m == SwizzleNone {
		return 0
	}
	return 8 - bits.TrailingZeros(uint(m))
}

func (m SwizzleMode) String() string {
	if m == SwizzleNone {
		return "none"
	}
	return fmt.Sprintf("%dB", int(m))
}
