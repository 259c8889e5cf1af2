package tile

import "testing"

// covers demands that a thread-value layout reaches every element of a tile of the given size exactly once.
func covers(t *testing.T, name string, l Layout, size int) {
	t.Helper()
	if l.Size() != size || l.Cosize() != size || len(distinct(l)) != size {
		t.Errorf("%s: %v has %d coordinates for %d elements, want each of %d once", name, l, l.Size(), len(distinct(l)), size)
		return
	}
	inverse := Must(l.RightInverse()) // element → (thread, value)
	for e := range size {
		if l.At(inverse.At(e)) != e {
			t.Errorf("%s: element %d is held at %d, which holds %d", name, e, inverse.At(e), l.At(inverse.At(e)))
		}
	}
}

// The formulas are PTX ISA 8.5's own: groupID = lane>>2, threadID_in_group = lane%4.
func TestWgmmaLayoutsAgainstTheISA(t *testing.T) {
	for n := 8; n <= 256; n += 8 {
		a := Must(Wgmma(n, 2, false))
		covers(t, a.Name+" C", a.C, 64*n)
		for thread := range 128 {
			for i := range n / 2 {
				warp, group, in := thread/32, thread%32>>2, thread%4
				row, col := 16*warp+group, i/4*8+in*2+i&1
				if i%4 >= 2 {
					row += 8
				}
				if got := a.C.At(thread, i); got != row+64*col {
					t.Fatalf("%s: thread %d d%d is element %d, want (%d,%d)", a.Name, thread, i, got, row, col)
				}
			}
		}
		if got := a.B.Mode(1).Size(); got != n*16 {
			t.Errorf("%s: B has %d elements", a.Name, got)
		}
	}
	for bytes, at := range map[int]func(in, i int) (down, k int){
		2: func(in, i int) (int, int) { return i / 2 % 2 * 8, in*2 + i&1 + i/4*8 },  // a0,a1 | a2,a3 8 rows down | a4.. 8 in k
		1: func(in, i int) (int, int) { return i / 4 % 2 * 8, in*4 + i&3 + i/8*16 }, // four to a register
		4: func(in, i int) (int, int) { return i % 2 * 8, in + i/2*4 },
	} {
		a := Must(Wgmma(64, bytes, true))
		covers(t, a.Name+" A", a.A, 64*a.K)
		for thread := range 128 {
			for i := range a.A.Mode(1).Size() {
				down, k := at(thread%4, i)
				if got, want := a.A.At(thread, i), 16*(thread/32)+thread%32>>2+down+64*k; got != want {
					t.Fatalf("%s of %d bytes: thread %d a%d is element %d, want %d", a.Name, bytes, thread, i, got, want)
				}
			}
		}
	}
}

// In 16 bits the accumulator of two neighbouring 8-column blocks is the A fragment of the next product: attention's P needs no shuffle.
func TestAccumulatorIsTheNextAFragment(t *testing.T) {
	c, a := Must(Wgmma(64, 2, false)).C, Must(Wgmma(8, 2, true)).A
	for thread := range 128 {
		for v := range 32 {
			if got, want := c.At(thread, v), a.At(thread, v%8)+v/8*16*64; got != want {
				t.Fatalf("thread %d value %d: accumulator %d, fragment %d", thread, v, got, want)
			}
		}
	}
}

func TestMMALayoutsAgainstTheISA(t *testing.T) {
	type at func(group, in, i int) (mn, k int)
	for _, c := range []struct {
		k, bytes int
		a, b     at
	}{
		{16, 2,
			func(g, in, i int) (int, int) { return g + pick(i%4 >= 2, 8), in*2 + i&1 + pick(i >= 4, 8) },
			func(g, in, i int) (int, int) { return g, in*2 + i&1 + pick(i >= 2, 8) }},
		{8, 2,
			func(g, in, i int) (int, int) { return g + pick(i >= 2, 8), in*2 + i&1 },
			func(g, in, i int) (int, int) { return g, in*2 + i }},
		{8, 4,
			func(g, in, i int) (int, int) { return g + pick(i == 1 || i == 3, 8), in + pick(i >= 2, 4) },
			func(g, in, i int) (int, int) { return g, in + pick(i == 1, 4) }},
		{32, 1,
			func(g, in, i int) (int, int) {
				return g + pick(i >= 4 && i < 8 || i >= 12, 8), in*4 + i&3 + pick(i >= 8, 16)
			},
			func(g, in, i int) (int, int) { return g, in*4 + i&3 + pick(i >= 4, 16) }},
		{16, 1,
			func(g, in, i int) (int, int) { return g + pick(i >= 4, 8), in*4 + i&3 },
			func(g, in, i int) (int, int) { return g, in*4 + i }},
		{4, 4,
			func(g, in, i int) (int, int) { return g + pick(i == 1, 8), in },
			func(g, in, i int) (int, int) { return g, in }},
		{4, 8,
			func(g, in, i int) (int, int) { return g + pick(i == 1, 8), in },
			func(g, in, i int) (int, int) { return g, in }},
		{8, 8,
			func(g, in, i int) (int, int) { return g + pick(i&1 == 1, 8), in + pick(i >= 2, 4) },
			func(g, in, i int) (int, int) { return g, in + 4*i }},
		{16, 8,
			func(g, in, i int) (int, int) { return g + pick(i&1 == 1, 8), in + i/2*4 },
			func(g, in, i int) (int, int) { return g, in + 4*i }},
	} {
		m := Must(MMA(c.k, c.bytes))
		covers(t, m.Name+" A", m.A, 16*c.k)
		covers(t, m.Name+" B", m.B, 8*c.k)
		covers(t, m.Name+" C", m.C, 16*8)
		for lane := range 32 {
			group, in := lane>>2, lane%4
			for i := range m.A.Mode(1).Size() {
				if row, k := c.a(group, in, i); m.A.At(lane, i) != row+16*k {
					t.Errorf("%s of %d bytes: lane %d a%d is %d, want (%d,%d)", m.Name, c.bytes, lane, i, m.A.At(lane, i), row, k)
				}
			}
			for i := range m.B.Mode(1).Size() {
				if n, k := c.b(group, in, i); m.B.At(lane, i) != n+8*k {
					t.Errorf("%s of %d bytes: lane %d b%d is %d, want (%d,%d)", m.Name, c.bytes, lane, i, m.B.At(lane, i), k, n)
				}
			}
			for i := range 4 {
				if row, col := group+pick(i >= 2, 8), in*2+i&1; m.C.At(lane, i) != row+16*col {
					t.Errorf("%s: lane %d c%d is %d, want (%d,%d)", m.Name, lane, i, m.C.At(lane, i), row, col)
				}
			}
		}
	}
}

func pick(yes bool, n int) int {
	if yes {
		return n
	}
	return 0
}

func TestMatrixCopyLayoutsAgainstTheISA(t *testing.T) {
	for _, x := range []int{1, 2, 4} {
		for _, trans := range []bool{false, true} {
			c := Must(Matrices(x, trans))
			covers(t, c.Name+" memory", c.Memory, 64*x)
			covers(t, c.Name+" registers", c.Registers, 64*x)
			for lane := range 8 * x {
				for col := range 8 { // lane 8i + r holds the address of row r of matrix i
					if got := c.Memory.At(lane, col); got != lane%8+8*col+64*(lane/8) {
						t.Errorf("%s: lane %d column %d is %d", c.Name, lane, col, got)
					}
				}
			}
			for lane := range 32 {
				for v := range 2 * x {
					row, col := lane/4, lane%4*2+v%2
					if trans {
						row, col = col, row
					}
					if got := c.Registers.At(lane, v); got != row+8*col+64*(v/2) {
						t.Errorf("%s: lane %d value %d is %d, want (%d,%d)", c.Name, lane, v, got, row, col)
					}
				}
			}
		}
	}
}

func TestImpossibleAtomsAreRefused(t *testing.T) {
	for name, f := range map[string]func() error{
		"n 0":    func() error { _, err := Wgmma(0, 2, false); return err },
		"n 12":   func() error { _, err := Wgmma(12, 2, false); return err },
		"n 264":  func() error { _, err := Wgmma(264, 2, false); return err },
		"3 byte": func() error { _, err := Wgmma(64, 3, false); return err },
		"k 16":   func() error { _, err := MMA(16, 4); return err },
		"f16 k4": func() error { _, err := MMA(4, 2); return err },
		"x3":     func() error { _, err := Matrices(3, false); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
