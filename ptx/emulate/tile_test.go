package emulate

import (
	"math/rand"
	"testing"

	"heddle/ptx"
	"heddle/tile"
)

// The swizzles of tensor maps are those of the layout algebra.
func TestSwizzlesAreTheTilesOwn(t *testing.T) {
	for s := ptx.SwizzleNone; s <= ptx.Swizzle128; s++ {
		for a := range 4096 {
			if got, want := int(s.Apply(uint32(a))), s.Tile().Apply(a); got != want {
				t.Fatalf("%v of %d is %d, want %d", s, a, got, want)
			}
		}
	}
}

// Where this package keeps each element of an accumulator is what the layout algebra's atom says.
func TestAccumulatorsLieAsTheAtomSays(t *testing.T) {
	for _, n := range []int{8, 64, 136, 256} {
		atom, err := tile.Wgmma(n, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		for thread := range 128 {
			for value := range n / 2 {
				at := atom.C.At(thread, value) // m + 64·n
				row, col := thread/32*16+thread%32/4+value/2%2*8, value/4*8+thread%4*2+value%2
				if want := row + 64*col; at != want {
					t.Fatalf("n %d thread %d value %d: atom has %d, the emulator %d", n, thread, value, at, want)
				}
			}
		}
	}
}

// Fragments of mma.sync, and of A in registers, lie as the atoms say: mmaBF16 and registers gather by the formulas here.
func TestFragmentsLieAsTheAtomsSay(t *testing.T) {
	atom, err := tile.MMA(16, 2)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := tile.Wgmma(64, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	for l := range 32 {
		for v := range 8 { // value 2·(register) + half; register 2h+g
			h, g, e := v/4, v/2%2, v%2
			row, col := l/4+8*g, 2*(l%4)+8*h+e
			if got, want := atom.A.At(l, v), row+16*col; got != want {
				t.Fatalf("A lane %d value %d: atom has %d, the emulator %d", l, v, got, want)
			}
			if got, want := wide.A.At(l+32, v), row+16+64*col; got != want {
				t.Fatalf("wgmma A thread %d value %d: atom has %d, the emulator %d", l+32, v, got, want)
			}
		}
		for v := range 4 {
			if got, want := atom.B.At(l, v), l/4+8*(2*(l%4)+8*(v/2)+v%2); got != want {
				t.Fatalf("B lane %d value %d: atom has %d, the emulator %d", l, v, got, want)
			}
			if got, want := atom.C.At(l, v), l/4+8*(v/2)+16*(2*(l%4)+v%2); got != want {
				t.Fatalf("C lane %d value %d: atom has %d, the emulator %d", l, v, got, want)
			}
		}
	}
}

// Bank conflicts of a running program: a column of 16-byte pieces under row pitches and swizzles costs what the model says.
func TestWavefrontsOfARunningProgram(t *testing.T) {
	for _, c := range []struct {
		pitch   int
		swizzle ptx.Swizzle
		want    int64 // of the 8-row column access, in each of the warp's four phases
	}{{128, ptx.SwizzleNone, 8}, {64, ptx.SwizzleNone, 4}, {32, ptx.SwizzleNone, 2}, {128, ptx.Swizzle128, 1}, {64, ptx.Swizzle64, 1}, {32, ptx.Swizzle32, 1}} {
		k := ptx.New("banks", 32, 1)
		s := k.Shared("s", 4096, 1024).Addr()
		at := k.Lane().And(k.U32(7)).Times(c.pitch) // each eight lanes the same column
		at = at.Xor(at.Shr(7).And(k.U32(1<<c.swizzle - 1)).Shl(4))
		s.At(at).StoreMatrix4([4]ptx.U32{k.Lane(), k.Lane(), k.Lane(), k.Lane()})
		e, err := k.Build()
		if err != nil {
			t.Fatal(err)
		}
		var n Counts
		run := Emulator{After: func(c *Counts) { n = *c }}
		run.Run(&ptx.Module{Entries: []*ptx.Entry{e}}, ptx.Launch{Entry: "banks"}, e.NewArgs()) // lanes overwrite each other: only the count matters
		if n.Wavefront != 4*c.want || n.Least != 4 || n.Shared != 1 || n.Executed[ptx.OpStMatrix4] != 1 {
			t.Errorf("pitch %d, %v: %d wavefronts of at least %d, want %d of 4", c.pitch, c.swizzle, n.Wavefront, n.Least, 4*c.want)
		}
	}
}

// The shortcut for dense accesses counts what the model counts.
func TestDenseAccessesCostWhatTheModelSays(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, width := range []int{4, 8, 16} {
		a := tile.Access{Width: width}
		base := 16 * r.Intn(64)
		for l := range a.Addr {
			a.Addr[l] = base + l*width
		}
		if fronts, phases := a.Wavefronts(); fronts != max(1, width/4) || phases != fronts {
			t.Errorf("width %d: %d wavefronts in %d phases", width, fronts, phases)
		}
	}
}
