package conform

import (
	"encoding/binary"
	"math"
	"math/rand"

	"heddle/num"
	"heddle/ptx"
)

// WarpProduct is D = A·Bᵀ + C of one warp by mma.sync: A 16×16 and B 8×16 of bf16 brought by cp.async and ldmatrix, C and D 16×8 of float32.
func WarpProduct(seed int64) (Program, error) {
	k := ptx.New("warp_product", 32, 1)
	in, out := k.ParamPtr("in"), k.ParamPtr("out")
	tile := k.Shared("tile", 1024, 128).Addr()
	lane := k.Lane()
	// A is 32 pieces of 16 bytes, B 16. The four 8×8 matrices of a fragment lie one after the other.
	tile.At(lane.Shl(4)).CopyAsync16(in.At(lane.MulWide(k.U32(16))))
	k.When(lane.Lt(k.U32(16)), func() { tile.Plus(512).At(lane.Shl(4)).CopyAsync16(in.Plus(512).At(lane.MulWide(k.U32(16)))) })
	k.CopyCommit()
	tile.Plus(768).At(lane.Shl(3)).StoreF32x2([2]ptx.F32{k.F32(0), k.F32(0)}) // the rest of what the second ldmatrix reads
	k.CopyWait(0)
	k.WarpSync()
	a := tile.At(lane.Shl(4)).LoadMatrix4()
	b := tile.Plus(512).At(lane.Shl(4)).LoadMatrix4()
	c := [4]ptx.F32{k.F32(1), k.F32(2), k.F32(-3), k.F32(4)}
	d := k.MMABF16(a, [2]ptx.U32{b[0], b[1]}, c)
	for i := range d {
		row, col := lane.Shr(2).Plus(i/2*8), lane.And(k.U32(3)).Shl(1).Plus(i%2)
		out.At(row.Shl(3).Add(col).MulWide(k.U32(4))).StoreF32(d[i])
	}
	e, err := k.Build()
	if err != nil {
		return Program{}, err
	}
	x := make([]float32, 24*16) // A, then B
	r := rand.New(rand.NewSource(seed))
	for i := range x {
		x[i] = float32(r.Intn(9) - 4)
	}
	return Program{
		Name: "warp product", Entry: e, Launch: ptx.Launch{Entry: e.Name}, Floats: true,
		Args: func() (*ptx.Args, *ptx.Buffer) {
			args, dst := e.NewArgs(), words("out", make([]uint32, 128))
			in.Put(args, packed(x), 0)
			out.Put(args, dst, 0)
			return args, dst
		},
		Want: func() []byte { return warpWant(x) },
	}, nil
}

// packed lays A and B out as the fragments want their 8×8 matrices: A's rows 0-7 and 8-15 of columns 0-7, then of columns 8-15; B's columns 0-7, then 8-15.
func packed(x []float32) *ptx.Buffer {
	b := &ptx.Buffer{Name: "in", Data: make([]byte, 768)}
	n := 0
	put := func(row, col int) {
		for i := range 8 {
			for j := range 8 {
				binary.LittleEndian.PutUint16(b.Data[2*n:], num.ToBF16(x[(row+i)*16+col+j]))
				n++
			}
		}
	}
	for _, at := range [][2]int{{0, 0}, {8, 0}, {0, 8}, {8, 8}, {16, 0}, {16, 8}} {
		put(at[0], at[1])
	}
	return b
}

func warpWant(x []float32) []byte {
	out := make([]byte, 512)
	c := [4]float32{1, 2, -3, 4}
	for i := range 16 {
		for j := range 8 {
			sum := c[i/8*2+j%2]
			for k := range 16 {
				sum += x[i*16+k] * x[(16+j)*16+k]
			}
			binary.LittleEndian.PutUint32(out[4*(i*8+j):], math.Float32bits(sum))
		}
	}
	return out
}
