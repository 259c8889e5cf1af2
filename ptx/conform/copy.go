package conform

import (
	"encoding/binary"
	"fmt"

	"heddle/num"
	"heddle/ptx"
)

// Copy is a TMA load whose shared memory is then read plainly.
type Copy struct {
	Rows, Cols int // of the tensor, u32 elements
	BoxRows    int
	BoxCols    int
	X, Y       int // of the box: may be negative or beyond the tensor; X a multiple of 4, which is 16 bytes
	Swizzle    ptx.Swizzle
	Multicast  bool // CTA 0 of a cluster of two loads for both
}

func (c Copy) String() string {
	return fmt.Sprintf("copy %dx%d box %dx%d at %d,%d %v multicast %t", c.Rows, c.Cols, c.BoxRows, c.BoxCols, c.Y, c.X, c.Swizzle, c.Multicast)
}

// Program builds the copy: one warp a CTA.
func (c Copy) Program() (Program, error) {
	ctas := 1
	if c.Multicast {
		ctas = 2
	}
	k := ptx.New("copy", 32, ctas)
	m, out, px, py := k.ParamMap("map"), k.ParamPtr("out"), k.ParamU32("x"), k.ParamU32("y")
	size := 4 * c.BoxRows * c.BoxCols
	tile, bar := k.Shared("tile", size, 1024).Addr(), k.Bars("bar", 1)
	k.If(k.Lane().Eq(k.U32(0)), func() {
		bar.Init(1)
		k.FenceMbarrierInit()
	})
	k.ClusterSync()
	k.If(k.Lane().Eq(k.U32(0)), func() {
		bar.ArriveExpect(size)
		if !c.Multicast {
			m.Load2(tile, px.U32, py.U32, bar)
			return
		}
		k.If(k.ClusterRank().Eq(k.U32(0)), func() { m.LoadMulticast2(tile, px.U32, py.U32, bar, 3) })
	})
	bar.Wait(k.U32(0))
	to := out.At(k.CTAIndex().MulWide(k.U32(size)))
	k.For(k.Lane().Shl(2), k.U32(size), k.U32(128), func(off ptx.U32) { to.At(off.U64()).StoreU32(tile.At(off).LoadU32()) })
	k.ClusterSync()
	e, err := k.Build()
	if err != nil {
		return Program{}, err
	}
	return Program{
		Name: c.String(), Entry: e, Launch: ptx.Launch{Entry: "copy", Grid: ptx.Dim3{X: ctas}},
		Args: func() (*ptx.Args, *ptx.Buffer) {
			a, src, dst := e.NewArgs(), words("src", c.tensor()), words("out", make([]uint32, ctas*size/4))
			m.Put(a, &ptx.Map{Type: num.U32, Buffer: src, Dims: []int{c.Cols, c.Rows}, Strides: []int{4 * c.Cols}, Box: []int{c.BoxCols, c.BoxRows}, Swizzle: c.Swizzle})
			out.Put(a, dst, 0)
			px.Put(a, uint32(int32(c.X)))
			py.Put(a, uint32(int32(c.Y)))
			return a, dst
		},
		Want: func() []byte { return c.want(ctas) },
	}, nil
}

// tensor holds a different word everywhere, none of them zero.
func (c Copy) tensor() []uint32 {
	x := make([]uint32, c.Rows*c.Cols)
	for i := range x {
		x[i] = uint32(i) + 0x10001
	}
	return x
}

// want is the box by definition: byte b of row r goes to r·width + b, and there address bits 4… are XORed with bits 7… as the swizzle's width says.
func (c Copy) want(ctas int) []byte {
	x, out := c.tensor(), make([]byte, 4*c.BoxRows*c.BoxCols)
	for r := range c.BoxRows {
		for i := range c.BoxCols {
			v := uint32(0)
			if y, x0 := c.Y+r, c.X+i; y >= 0 && y < c.Rows && x0 >= 0 && x0 < c.Cols {
				v = x[y*c.Cols+x0]
			}
			at := 4 * (r*c.BoxCols + i)
			unit, line := at/16, at/128
			switch c.Swizzle {
			case ptx.Swizzle128:
				unit ^= line % 8
			case ptx.Swizzle64:
				unit ^= line % 4
			case ptx.Swizzle32:
				unit ^= line % 2
			}
			binary.LittleEndian.PutUint32(out[16*unit+at%16:], v)
		}
	}
	all := out
	for range ctas - 1 {
		all = append(all, out...)
	}
	return all
}

// Copies are all swizzles over boxes inside, across each edge and outside of a tensor, alone and multicast.
func Copies() []Copy {
	var all []Copy
	for s := ptx.SwizzleNone; s <= ptx.Swizzle128; s++ {
		cols := s.Width() / 4
		if s == ptx.SwizzleNone {
			cols = 20
		}
		for _, at := range [][2]int{{0, 0}, {4, 3}, {-4, -2}, {28, 20}, {100, 0}, {0, -40}, {8, 0}} {
			for _, multi := range []bool{false, true} {
				all = append(all, Copy{Rows: 24, Cols: 40, BoxRows: 16, BoxCols: cols, X: at[0], Y: at[1], Swizzle: s, Multicast: multi})
			}
		}
	}
	return all
}
