package tile

import "fmt"

// Epilogue is the way of a warpgroup's accumulators to global memory: registers → shared memory in chunks of 64 rows × up to 128 bytes → one TMA
// store a chunk. 16-bit outputs go by stmatrix.x4, a 16 × 16 block an instruction; 32-bit ones by st.shared.v2.
type Epilogue struct {
	Rows       int         // of the tile that a warpgroup computes, a multiple of 64
	Cols       int         // of it
	Out        int         // bytes of an output element, 2 or 4
	Mode       SwizzleMode // of a chunk
	ChunkCols  int         // columns of a chunk
	WgmmaN     int         // columns of one wgmma
	TileCols   int         // of the CTA's tile: warpgroups lie beside one another where Cols is less
	Warpgroups int
	Staggered  bool   // 32-bit: the lanes of odd rows store the block 16 columns away first, so that no two rows of a phase share a 16-byte unit
	holder     Layout // element of one wgmma → thread + 128·value
}

// Epilogue is the fit's way out, with the widest swizzle, or SwizzleNone if plain.
func (f Fit) Epilogue(plain bool) (Epilogue, error) {
	if !f.OK() {
		return Epilogue{}, fmt.Errorf("tile: epilogue of a refused choice: %s: %s", f.Refusals[0].Rule, f.Refusals[0].Why)
	}
	e := Epilogue{Rows: f.Rows, Cols: f.Cols, Out: f.Choice.Out, WgmmaN: f.WgmmaN, TileCols: f.Choice.BN, Warpgroups: f.Choice.Warpgroups}
	e.ChunkCols = chunkBytes / e.Out
	for e.Cols%e.ChunkCols != 0 || e.WgmmaN%e.ChunkCols != 0 {
		e.ChunkCols /= 2
	}
	if e.Out == 2 && e.ChunkCols < 16 {
		return Epilogue{}, fmt.Errorf("tile: epilogue of %d columns by stmatrix.x4: want a multiple of 16", e.Cols)
	}
	atom, err := Wgmma(e.WgmmaN, 2, false)
	if err != nil {
		return Epilogue{}, err
	}
	if e.holder, err = atom.C.RightInverse(); err != nil {
		return Epilogue{}, err
	}
	e.Mode, _ = SwizzleModeFor(e.ChunkCols * e.Out)
	if plain {
		e.Mode = SwizzleNone
	}
	return e, nil
}

// Step is one element's place at each station of the epilogue.
type Step struct {
	Row int `json:"row"` // in the CTA's tile
	Col int `json:"col"`

	Warpgroup int `json:"warpgroup"`
	Block     int `json:"block"`     // which m64 × n of the warpgroup's part
	Warp      int `json:"warp"`      // of the warpgroup
	Lane      int `json:"lane"`      // that holds it
	Value     int `json:"value"`     // index of its accumulator register within the block
	Unit      int `json:"unit"`      // 16 columns that one stmatrix.x4 stores; 8 columns with st.shared
	Matrix    int `json:"matrix"`    // of the four, -1 with st.shared
	Addresser int `json:"addresser"` // the lane whose address names its row of the matrix, or the lane itself

	Chunk    int `json:"chunk"`
	Plain    int `json:"plain_byte"` // in the chunk, row-major
	Byte     int `json:"byte"`       // after the swizzle
	Bank     int `json:"bank"`
	BoxRow   int `json:"box_row"` // of the TMA box, in the tile
	BoxCol   int `json:"box_col"`
	BoxCols  int `json:"box_cols"`
	InBoxRow int `json:"in_box_row"`
	InBoxCol int `json:"in_box_col"`
}

// Follow traces the element (row, col) of the CTA's tile. The register is found by inverting the accumulator's thread-value layout.
func (e Epilogue) Follow(row, col int) (Step, error) {
	beside := e.TileCols / e.Cols
	rows := e.Rows
	if beside == 1 {
		rows = e.Rows * e.Warpgroups
	}
	if row < 0 || row >= rows || col < 0 || col >= e.TileCols {
		return Step{}, fmt.Errorf("tile: element (%d,%d) is outside the tile of %d × %d", row, col, rows, e.TileCols)
	}
	s := Step{Row: row, Col: col, Warpgroup: row/e.Rows + col/e.Cols}
	row, col = row%e.Rows, col%e.Cols
	s.Block = row/mmaRows*(e.Cols/e.WgmmaN) + col/e.WgmmaN
	in, across := row%mmaRows, col%e.WgmmaN

	h := e.holder.At(in + mmaRows*across)
	s.Warp, s.Lane, s.Value = h%wgThreads/Lanes, h%Lanes, h/wgThreads
	s.Unit, s.Matrix, s.Addresser = across/8, -1, s.Lane
	if e.Out == 2 { // registers 8u … 8u+7 are unit u; a matrix is two of them
		s.Unit, s.Matrix = s.Value/8, s.Value%8/2
		s.Addresser = s.Matrix*8 + in%8
	}

	s.Chunk, s.BoxCols = col/e.ChunkCols, e.ChunkCols
	s.InBoxRow, s.InBoxCol = in, col%e.ChunkCols
	s.BoxRow, s.BoxCol = s.Row-in, s.Col-s.InBoxCol
	s.Plain = (in*e.ChunkCols + s.InBoxCol) * e.Out
	s.Byte = e.Mode.Bytes().Apply(s.Plain)
	s.Bank = s.Byte / WordBytes % Banks
	return s, nil
}

// Stores lists the shared-memory writes of one warp for one chunk, as bytes in the chunk.
func (e Epilogue) Stores(warp int) []Access {
	var out []Access
	put := func(width int, at func(lane int) (row, col int)) {
		a := Access{Width: width}
		for lane := range a.Addr {
			row, col := at(lane)
			a.Addr[lane] = e.Mode.Bytes().Apply(((16*warp+row)*e.ChunkCols + col) * e.Out)
		}
		out = append(out, a)
	}
	if e.Out == 2 {
		for col := 0; col < e.ChunkCols; col += 16 {
			put(16, func(lane int) (int, int) { return lane % 16, col + lane/16*8 })
		}
		return out
	}
	for col := 0; col < e.ChunkCols; col += 8 {
		for half := 0; half < 16; half += 8 {
			put(8, func(lane int) (int, int) {
				block := col
				if e.Staggered && e.ChunkCols == 32 && lane/4%2 == 1 {
					block ^= 16
				}
				return half + lane/4, block + lane%4*2
			})
		}
	}
	return out
}
