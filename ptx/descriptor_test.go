package ptx_test

import (
	"testing"

	"heddle/ptx"
	"heddle/tile"
)

// Package tile derives descriptors from layouts, element by element; this package states them. Both must say the same, for every tile that TMA writes.
func TestDescriptorsAgreeWithThoseDerivedFromLayouts(t *testing.T) {
	modes := map[ptx.Swizzle]tile.SwizzleMode{ptx.Swizzle32: tile.Swizzle32, ptx.Swizzle64: tile.Swizzle64, ptx.Swizzle128: tile.Swizzle128}
	for mine, theirs := range modes {
		for x := range uint32(4096) {
			if got, want := mine.Apply(x), uint32(theirs.Bytes().Apply(int(x))); got != want {
				t.Fatalf("%v moves byte %d to %d, tile to %d", mine, x, got, want)
			}
		}
		for _, size := range [][2]int{{64, 64}, {128, 64}, {256, 128}} {
			rows, k := size[0], size[1]
			l := tile.Must(tile.OperandLayout(rows, k, 2, theirs, false))
			if got, want := ptx.KMajor(mine).Fields(), tile.Must(tile.Describe(l, 2, theirs)).Fields(); got != want {
				t.Errorf("%v, K-major %v: %#x, from the layout %#x", mine, size, got, want)
			}
			l = tile.Must(tile.OperandLayout(rows, k, 2, theirs, true))
			if got, want := ptx.MNMajor(mine, k).Fields(), tile.Must(tile.Describe(l, 2, theirs)).Fields(); got != want {
				t.Errorf("%v, MN-major %v: %#x, from the layout %#x", mine, size, got, want)
			}
		}
	}
}
