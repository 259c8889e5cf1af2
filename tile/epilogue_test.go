package tile

import "testing"

func epilogueOf(t *testing.T, edit func(*Choice), plain bool) Epilogue {
	t.Helper()
	x := measured()
	if edit != nil {
		edit(&x)
	}
	return Must(H200().Fit(x).Epilogue(plain))
}

// Every element of the tile is followed: its register by the formula of the ISA, its byte by the swizzle's, and no two share a place.
func TestFollowedElementsLandWhereTheHardwarePutsThem(t *testing.T) {
	for name, edit := range map[string]func(*Choice){
		"2 along M": nil,
		"2 along N": func(x *Choice) { x.BM, x.BN = 64, 256 },
		"float out": func(x *Choice) { x.Out, x.Buffers = 4, 1 },
		"4 blocks":  func(x *Choice) { x.BM, x.BN, x.ClusterM = 256, 192, 1 },
		"narrow":    func(x *Choice) { x.BM, x.BN, x.ClusterM = 128, 48, 1 },
	} {
		e := epilogueOf(t, edit, false)
		rows := e.Rows
		if e.TileCols == e.Cols {
			rows *= e.Warpgroups
		}
		regs, bytes := map[[5]int]bool{}, map[[4]int]bool{}
		for row := range rows {
			for col := range e.TileCols {
				s := Must(e.Follow(row, col))
				r, c := row%e.Rows%64, col%e.Cols%e.WgmmaN
				if lane, value := r%8*4+c%8/2, c/8*4+r%16/8*2+c%2; s.Lane != lane || s.Warp != r/16 || s.Value != value {
					t.Fatalf("%s (%d,%d): warp %d lane %d value %d, want %d %d %d", name, row, col, s.Warp, s.Lane, s.Value, r/16, lane, value)
				}
				width := e.ChunkCols * e.Out
				at := s.InBoxRow*width + s.InBoxCol*e.Out
				if want := at ^ (at>>7&(width/16-1))<<4; s.Byte != want || s.BoxRow+s.InBoxRow != row || s.BoxCol+s.InBoxCol != col {
					t.Fatalf("%s (%d,%d): byte %d, want %d; box (%d,%d)", name, row, col, s.Byte, want, s.BoxRow, s.BoxCol)
				}
				regs[[5]int{s.Warpgroup, s.Block, s.Warp, s.Lane, s.Value}] = true
				bytes[[4]int{s.Warpgroup, s.Row / 64, s.Chunk, s.Byte}] = true
			}
		}
		if len(regs) != rows*e.TileCols || len(bytes) != rows*e.TileCols {
			t.Errorf("%s: %d registers and %d bytes for %d elements", name, len(regs), len(bytes), rows*e.TileCols)
		}
	}
	if _, err := epilogueOf(t, nil, false).Follow(128, 0); err == nil {
		t.Error("row 128 of 128: no error")
	}
}

// stmatrix's register layout and the accumulator's agree on where a unit's elements are, and the traced address lane is the one that names the row.
func TestStmatrixTakesAccumulatorsAsTheyLie(t *testing.T) {
	e := epilogueOf(t, nil, false)
	registers := Must(Matrices(4, false)).Registers
	c := Must(Wgmma(e.WgmmaN, 2, false)).C
	for lane := range Lanes {
		for v := range 8 {
			m := registers.At(lane, v)
			row, col := m%8+m/64%2*8, m/8%8+m/128*8
			if got := c.At(lane, 8*5+v); got != row+64*(16*5+col) {
				t.Fatalf("lane %d value %d: accumulator at %d, stmatrix writes (%d,%d)", lane, v, got, row, col)
			}
			s := Must(e.Follow(row, 80+col))
			store := e.Stores(0)[(80%e.ChunkCols)/16].Addr[s.Addresser]
			if s.Unit != 5 || s.Matrix != v/2 || store>>4 != s.Byte>>4 {
				t.Fatalf("lane %d value %d: %+v, address lane names byte %d", lane, v, s, store)
			}
		}
	}
}

func TestEpilogueStoresConflictOnlyWithoutSwizzle(t *testing.T) {
	for _, c := range []struct {
		out        int
		plain      bool
		wavefronts int // of one warp and chunk
		least      int
	}{
		{2, false, 16, 16}, // 4 stmatrix.x4 of 4 phases
		{2, true, 128, 16}, // 8 rows in the same bank
		// 32-bit: the 16 lanes of a phase write 4 rows of 32 bytes, two 16-byte units each; XOR by the row maps units 0 and 1 of rows 2i and 2i+1 onto
		// one another, so that two rows still meet.
		{4, false, 32, 16},
		{4, true, 64, 16},
	} {
		e := epilogueOf(t, func(x *Choice) { x.Out, x.Buffers = c.out, 1 }, c.plain)
		for warp := range 4 {
			n, least, err := Cost(e.Stores(warp))
			if err != nil || n != c.wavefronts || least != c.least {
				t.Errorf("%d-byte output, plain %v, warp %d: %d wavefronts of at least %d, %v; want %d of %d", c.out, c.plain, warp, n, least, err, c.wavefronts, c.least)
			}
		}
	}
}

// Staggering is an order of the same stores: every byte is written once, and the two-way conflict is gone.
func TestStaggeredStoresWriteTheSameBytesWithoutConflicts(t *testing.T) {
	e := epilogueOf(t, func(x *Choice) { x.Out, x.Buffers = 4, 1 }, false)
	e.Staggered = true
	for warp := range 4 {
		if n, least, err := Cost(e.Stores(warp)); err != nil || n != 16 || least != 16 {
			t.Errorf("warp %d: %d wavefronts of at least %d, %v", warp, n, least, err)
		}
		seen := map[int]bool{}
		for _, a := range e.Stores(warp) {
			for _, x := range a.Addr {
				seen[x] = true
			}
		}
		for x := range 16 * 128 / 8 {
			if !seen[warp*16*128+8*x] {
				t.Fatalf("warp %d: byte %d is not written", warp, warp*16*128+8*x)
			}
		}
	}
}
