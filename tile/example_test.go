package tile_test

import (
	"fmt"

	"heddle/tile"
)

// A row-major 8 × 16 tile is cut into 4 × 8 pieces: mode 0 walks inside a piece, mode 1 walks the pieces.
func ExampleLayout_ZippedDivide() {
	l := tile.Rows(8, 16)
	d, err := l.ZippedDivide(tile.Tile(4, 8))
	fmt.Println(d, err)
	fmt.Println("second piece starts at", d.At(0, 2), "and so does", l.At(0, 8))
	// Output:
	// ((4,8),(2,2)):((16,1),(64,8)) <nil>
	// second piece starts at 8 and so does 8
}

// Every second element of a padded matrix: no layout is computed by hand.
func ExampleCompose() {
	padded, _ := tile.Parse("(8,8):(1,10)")
	r, err := tile.Compose(padded, tile.Leaf(32, 2))
	fmt.Println(r, err)
	_, err = tile.Compose(padded, tile.Leaf(32, 3))
	fmt.Println(err)
	// Output:
	// (4,8):(2,10) <nil>
	// tile: compose (8,8):(1,10) with 32:3: stride 3 and mode 8:1 do not divide one another
}

// Eight rows of 16 bytes at one column of a 128-byte pitch, before and after the swizzle of TMA.
func ExampleAccess_Conflicts() {
	a := tile.Access{Width: 16}
	for lane := range a.Addr {
		if a.Addr[lane] = -1; lane < 8 {
			a.Addr[lane] = 128 * lane
		}
	}
	plain, _ := a.Conflicts()
	swizzled, _ := a.Through(tile.Swizzle128.Bytes()).Conflicts()
	fmt.Println(plain.Wavefronts, "wavefronts; bank", plain.Conflicts[0].Bank, "is wanted by lanes", plain.Conflicts[0].Lanes)
	fmt.Println(swizzled.Wavefronts, "wavefront")
	// Output:
	// 8 wavefronts; bank 0 is wanted by lanes [0 1 2 3 4 5 6 7]
	// 1 wavefront
}

// How a 128 × 64 bf16 tile that TMA has written is described to wgmma.
func ExampleDescribe() {
	l, _ := tile.OperandLayout(128, 64, 2, tile.Swizzle128, false)
	o, err := tile.Describe(l, 2, tile.Swizzle128)
	fmt.Println(l)
	fmt.Printf("%#x, k steps at bytes %v, %v\n", o.Fields(), o.Steps, err)
	// Output:
	// (128,(64,1)):(64,(1,8192))
	// 0x4000004000010000, k steps at bytes [0 32 64 96], <nil>
}

func ExampleChip_Fit() {
	x := tile.Choice{BM: 256, BN: 256, BK: 64, In: 2, Out: 2, ClusterM: 2, Warpgroups: 2, Buffers: 2}
	fmt.Println(tile.H200().Fit(x).Refusals[0].Why)
	near, _ := tile.H200().Nearest(x)
	fmt.Println(near.BM, near.BN, near.BK, near.Stages)
	// Output:
	// 256 accumulators a thread and about 32 others; 2 warpgroups leave 240 registers, more would spill
	// 256 208 64 3
}
