package tile

import (
	"math/rand/v2"
	"testing"
)

// column is the access of an 8 × 8 matrix of 16-bit elements: eight rows, 16 bytes each at one column, pitch bytes apart; the other lanes are off.
func column(pitch, col int) Access {
	a := Access{Width: 16}
	for lane := range a.Addr {
		if a.Addr[lane] = -1; lane < 8 {
			a.Addr[lane] = lane*pitch + col
		}
	}
	return a
}

func TestColumnAccessConflictsUntilTheMatchingSwizzle(t *testing.T) {
	for _, c := range []struct {
		mode SwizzleMode
		want int
	}{{Swizzle128, 8}, {Swizzle64, 4}, {Swizzle32, 2}, {SwizzleNone, 1}} {
		for col := 0; col < int(c.mode); col += 16 {
			plain := Must(column(int(c.mode), col).Conflicts())
			swizzled := Must(column(int(c.mode), col).Through(c.mode.Bytes()).Conflicts())
			if plain.Wavefronts != c.want || swizzled.Wavefronts != 1 || len(swizzled.Conflicts) != 0 {
				t.Errorf("pitch %d, column %d: %d wavefronts, %d swizzled, want %d and 1", int(c.mode), col, plain.Wavefronts, swizzled.Wavefronts, c.want)
			}
			for _, x := range plain.Conflicts {
				if len(x.Lanes) != c.want {
					t.Errorf("pitch %d: bank %d is wanted by lanes %v, want %d", int(c.mode), x.Bank, x.Lanes, c.want)
				}
			}
		}
	}
}

func TestPhasesAndBroadcast(t *testing.T) {
	lanes := func(width int, addr func(lane int) int) Access {
		a := Access{Width: width}
		for i := range a.Addr {
			a.Addr[i] = addr(i)
		}
		return a
	}
	for _, c := range []struct {
		name               string
		a                  Access
		wavefronts, phases int
	}{
		{"4 bytes in a row", lanes(4, func(i int) int { return 4 * i }), 1, 1},
		{"8 bytes in a row", lanes(8, func(i int) int { return 8 * i }), 2, 2},
		{"16 bytes in a row", lanes(16, func(i int) int { return 16 * i }), 4, 4},
		{"one word for all", lanes(4, func(int) int { return 64 }), 1, 1},
		{"bytes of one word", lanes(1, func(i int) int { return i % 4 }), 1, 1},
		{"two-byte columns", lanes(2, func(i int) int { return 128 * i }), 32, 1},
		{"stride of two words", lanes(4, func(i int) int { return 8 * i }), 2, 1},
		{"stride of 33 words", lanes(4, func(i int) int { return 132 * i }), 1, 1},
		{"stride of 32 words", lanes(4, func(i int) int { return 128 * i }), 32, 1},
		{"all lanes off", lanes(4, func(int) int { return -1 }), 0, 0},
		{"half the lanes on", lanes(8, func(i int) int { return 8*(i%16) - 1024*(i/16) }), 1, 1},
		// Lanes i and i+16 share a bank but not a phase: 8-byte accesses do not conflict across half-warps.
		{"conflict across phases", lanes(8, func(i int) int { return 8*(i%16) + 4096*(i/16) }), 2, 2},
	} {
		r, err := c.a.Conflicts()
		if err != nil || r.Wavefronts != c.wavefronts || r.Phases != c.phases {
			t.Errorf("%s: got %d wavefronts in %d phases, %v, want %d in %d", c.name, r.Wavefronts, r.Phases, err, c.wavefronts, c.phases)
		}
	}
	for name, a := range map[string]Access{
		"misaligned": lanes(8, func(i int) int { return 4 * i }), "width 3": lanes(3, func(i int) int { return 3 * i }), "width 32": lanes(32, func(i int) int { return 32 * i }),
	} {
		if r, err := a.Conflicts(); err == nil {
			t.Errorf("%s: got %+v, want an error", name, r)
		}
	}
}

// TestConflictsAgainstBruteForce serves the words of each phase greedily, one word a bank and pass, and counts the passes.
func TestConflictsAgainstBruteForce(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		a := Access{Width: 1 << r.IntN(5)}
		span := 1 << (5 + r.IntN(8))
		for i := range a.Addr {
			if a.Addr[i] = r.IntN(span) / a.Width * a.Width; r.IntN(8) == 0 {
				a.Addr[i] = -1
			}
		}
		group, passes := map[int]int{1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[a.Width], 0
		for from := 0; from < 32; from += group {
			left := map[int]bool{}
			for _, x := range a.Addr[from : from+group] {
				for b := 0; b < a.Width && x >= 0; b++ {
					left[(x+b)/4] = true
				}
			}
			for ; len(left) > 0; passes++ {
				taken := map[int]bool{}
				for w := range left {
					if !taken[w%32] {
						taken[w%32] = true
						delete(left, w)
					}
				}
			}
		}
		got := Must(a.Conflicts())
		if fast, phases := a.Wavefronts(); got.Wavefronts != passes || fast != passes || phases != got.Phases {
			t.Fatalf("seed %d: %+v: %d and %d wavefronts, want %d, in %d and %d phases", seed, a, got.Wavefronts, fast, passes, got.Phases, phases)
		}
	}
}

func TestSuggestFindsTheHardwareSwizzle(t *testing.T) {
	for _, mode := range []SwizzleMode{Swizzle128, Swizzle64, Swizzle32} {
		b := Buffer{Rows: 64, RowBytes: int(mode), Pitch: int(mode)}
		writer, reader := Must(b.Accesses(AlongRows, 16)), Must(b.Accesses(MatrixX4, 16))
		got := Must(Suggest(append(writer, reader...), 64*int(mode)))[0]
		if got.Wavefronts != got.Least || got.Mode != mode {
			t.Errorf("rows of %d bytes: got %+v, want mode %v without conflicts", int(mode), got, mode)
		}
	}
	// The 32 × 32 float transpose: rows written, columns read, 4 bytes each. Five bits of the row go onto the five bank bits: <5,2,5>.
	b := Buffer{Rows: 32, RowBytes: 128, Pitch: 128}
	all := append(Must(b.Accesses(AlongRows, 4)), Must(b.Accesses(DownColumns, 4))...)
	got := Must(Suggest(all, 4096))[0]
	if got.Swizzle != (Swizzle{5, 2, 5}) || got.Wavefronts != 64 || got.Mode != 0 {
		t.Errorf("transpose: got %+v, want <5,2,5> in 64 wavefronts", got)
	}
}

func TestXorAddAndPaddingAllCureTheTranspose(t *testing.T) {
	b := Buffer{Rows: 32, RowBytes: 128, Pitch: 128}
	columns := Must(b.Accesses(DownColumns, 4))
	cost := func(f func(Access) Access) int {
		moved := make([]Access, len(columns))
		for i, a := range columns {
			moved[i] = f(a)
		}
		n, _, err := Cost(moved)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	plain := cost(func(a Access) Access { return a })
	xor := cost(func(a Access) Access { return a.Through(Swizzle{5, 2, 5}) })
	turned := cost(func(a Access) Access { return b.Rotated(a, 4) })
	padded := cost(func(a Access) Access { return b.Padded(a, 4) })
	if plain != 32*32 || xor != 32 || turned != 32 || padded != 32 {
		t.Errorf("wavefronts: plain %d, XOR %d, ADD %d, padded %d; want 1024, 32, 32, 32", plain, xor, turned, padded)
	}
}

func TestPatternsCoverTheBufferOnce(t *testing.T) {
	b := Buffer{Rows: 48, RowBytes: 96, Pitch: 112}
	for _, p := range Patterns() {
		seen := map[int]int{}
		for _, a := range Must(b.Accesses(p, 16)) {
			for _, x := range a.Addr {
				if x >= 0 {
					seen[x]++
				}
			}
		}
		for row := range 48 {
			for col := 0; col < 96; col += 16 {
				if seen[row*112+col] != 1 {
					t.Errorf("%s: byte (%d,%d) is visited %d times", p, row, col, seen[row*112+col])
				}
			}
		}
		if len(seen) != 48*6 {
			t.Errorf("%s: %d pieces, want %d", p, len(seen), 48*6)
		}
	}
	for _, ragged := range []Buffer{{8, 24, 32}, {8, 32, 40}} { // pieces of 16 would cross rows, or be misaligned from the second on
		if _, err := ragged.Accesses(AlongRows, 16); err == nil {
			t.Errorf("%+v by 16 bytes: no error", ragged)
		}
	}
	for _, bad := range []Buffer{{0, 16, 16}, {8, 24, 32}, {8, 32, 16}, {1 << 30, 1 << 30, 1 << 30}, {8, 32, 32}} {
		if _, err := bad.Accesses(MatrixX4, 16); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func BenchmarkWavefronts(b *testing.B) {
	a := column(128, 0)
	for i := range a.Addr {
		a.Addr[i] = i * 128 % 4096
	}
	b.ReportAllocs()
	for b.Loop() {
		a.Wavefronts()
	}
}
