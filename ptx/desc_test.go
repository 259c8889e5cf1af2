package ptx_test

import (
	"strings"
	"testing"

	"heddle/ptx"
	"heddle/tile"
)

// The layouts that TMA makes are found again from the algebra, and nothing else passes.
func TestDescriptorsComeFromLayouts(t *testing.T) {
	for s := ptx.Swizzle32; s <= ptx.Swizzle128; s++ {
		wide := s.Width() / 2 // elements of bf16
		kmajor := tile.Join(tile.Join(tile.Leaf(8, wide), tile.Leaf(8, 8*wide)), tile.Leaf(wide, 1))
		got, err := ptx.OperandTile{Layout: kmajor, Elem: 2, Swizzle: s}.Desc()
		if err != nil || got != ptx.KMajor(s) {
			t.Errorf("%v: K-major is %+v, %v; want %+v", s, got, err, ptx.KMajor(s))
		}
		mn := tile.Join(tile.Join(tile.Leaf(wide, 1), tile.Leaf(2, 64*wide)), tile.Join(tile.Leaf(8, wide), tile.Leaf(8, 8*wide)))
		got, err = ptx.OperandTile{Layout: mn, Elem: 2, Swizzle: s}.Desc()
		if err != nil || got != ptx.MNMajor(s, 64) {
			t.Errorf("%v: MN-major is %+v, %v; want %+v", s, got, err, ptx.MNMajor(s, 64))
		}
	}
	for want, l := range map[string]tile.Layout{
		"element (1,0) lies at byte 144": tile.Join(tile.Join(tile.Leaf(8, 72), tile.Leaf(8, 8*72)), tile.Leaf(64, 1)), // padded rows
		"element (0,1) lies at byte 4":   tile.Join(tile.Leaf(64, 128), tile.Leaf(64, 2)),
		"want (rows, k)":                 tile.Leaf(64, 1),
		"element (0,1) lies at byte 256": tile.Join(tile.Leaf(64, 1), tile.Leaf(64, 128)), // chunks of 128 columns
	} {
		if _, err := (ptx.OperandTile{Layout: l, Elem: 2, Swizzle: ptx.Swizzle128}).Desc(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", l, err, want)
		}
	}
}
