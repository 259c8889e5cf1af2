package elem

import (
	"testing"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx/emulate"
)

func run(t *testing.T, b kernel.Built) {
	t.Helper()
	cases, err := b.Cases(4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if err := (emulate.Emulator{}).Run(b.Module(), c.Launch, c.Args); err != nil {
			t.Fatal(b.Module().Entries[0].Name, c.Name, err)
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Heads turn as in float64, both ways.
func TestRopeTurns(t *testing.T) {
	for _, typ := range []num.DType{num.F32, num.BF16} {
		for _, c := range []RopeConfig{{D: 16, Wide: true}, {D: 128, Wide: true, Back: true}, {D: 6}, {D: 128, Back: true}} {
			c.Type = typ
			r, err := NewRope(c)
			if err != nil {
				t.Fatal(err)
			}
			run(t, r)
		}
	}
}

// Boxes land where the loops over their indices put them.
func TestBoxesAreCopied(t *testing.T) {
	for _, typ := range []num.DType{num.F32, num.BF16} {
		for _, wide := range []bool{true, false} {
			for _, add := range []bool{true, false} {
				b, err := NewBox(BoxConfig{Type: typ, Wide: wide, Add: add})
				if err != nil {
					t.Fatal(err)
				}
				run(t, b)
			}
		}
	}
}

// What lies packed on both sides is one row, and no more.
func TestShapesJoinPackedDims(t *testing.T) {
	s, ok := ShapeOf([]int{4, 6, 8}, []int{2, 6, 8}, []int{2, 6, 8}, []int{2, 0, 0}, []int{0, 0, 0})
	if !ok || s.Row != 96 || s.DstAt != 96 || s.SrcAt != 0 || !s.Wide() {
		t.Errorf("%+v", s)
	}
	s, ok = ShapeOf([]int{4, 6, 8}, []int{4, 6, 4}, []int{4, 6, 4}, []int{0, 0, 4}, []int{0, 0, 0})
	if !ok || s.Row != 4 || s.Size != [4]int{1, 1, 4, 6} || s.DstStep != [4]int{0, 0, 48, 8} || s.Wide() {
		t.Errorf("%+v", s)
	}
	six := []int{2, 2, 2, 2, 2, 2}
	if _, ok := ShapeOf([]int{3, 3, 3, 3, 3, 3}, []int{4, 4, 4, 4, 4, 4}, six, make([]int, 6), make([]int, 6)); ok {
		t.Error("six dims that cannot be joined pass")
	}
}
