package tile

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// Suggestion is a swizzle with what a writer and a reader then cost.
type Suggestion struct {
	Swizzle    Swizzle     `json:"swizzle"`
	Wavefronts int         `json:"wavefronts"`
	Least      int         `json:"least"`
	Mode       SwizzleMode `json:"mode"` // the TMA and wgmma mode that this is, in bytes; 0 if none
}

// Suggest finds the swizzles under which the accesses take the fewest wavefronts, best first: among equals one that TMA and wgmma know, then
// the one that moves the fewest bits. Only bits below size, a power of two that the buffer is a multiple of, take part; the widest access stays whole.
func Suggest(accesses []Access, size int) ([]Suggestion, error) {
	top := bits.TrailingZeros(uint(size))
	if size < 1 || size > 1<<20 || len(accesses) == 0 {
		return nil, fmt.Errorf("tile: suggest a swizzle for %d accesses on %d bytes: want at least one access and a size of [1, 2^20]", len(accesses), size)
	}
	widest := WordBytes
	for _, a := range accesses {
		widest = max(widest, a.Width)
	}
	low := bits.TrailingZeros(uint(widest))
	var out []Suggestion
	for _, s := range candidates(low, top) {
		moved := make([]Access, len(accesses))
		for i, a := range accesses {
			moved[i] = a.Through(s)
		}
		n, least, err := Cost(moved)
		if err != nil {
			return nil, err
		}
		out = append(out, Suggestion{s, n, least, s.mode()})
	}
	slices.SortStableFunc(out, func(x, y Suggestion) int {
		return cmp.Or(cmp.Compare(x.Wavefronts, y.Wavefronts), cmp.Compare(y.Mode, x.Mode)*known(x, y), cmp.Compare(x.Swizzle.B, y.Swizzle.B))
	})
	return out, nil
}

// known is 1 if exactly one of the two is a hardware mode.
func known(x, y Suggestion) int {
	if (x.Mode == 0) != (y.Mode == 0) {
		return 1
	}
	return 0
}

// candidates lists the identity and all swizzles with bits of [low, top) whose targets pick a bank (bits 2 to 6 of the address).
func candidates(low, top int) []Swizzle {
	out := []Swizzle{{0, 4, 3}}
	for b := 1; b <= 5; b++ {
		for m := low; m+b <= 7; m++ {
			for s := b; b+m+s <= top; s++ {
				out = append(out, Swizzle{b, m, s})
			}
		}
	}
	return out
}

func (s Swizzle) mode() SwizzleMode {
	for _, m := range SwizzleModes() {
		if m.Bytes() == s {
			return m
		}
	}
	return 0
}
