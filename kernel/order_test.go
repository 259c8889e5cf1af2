package kernel

import (
	"encoding/binary"
	"testing"

	"heddle/ptx"
	"heddle/ptx/emulate"
)

// The device computes the order that the host does: one thread a tile, over groups, directions and ragged shapes.
func TestDeviceComputesTheHostsOrder(t *testing.T) {
	for _, o := range []Order{{}, {Group: 1}, {Group: 3, Serpentine: true}, {Group: 8}} {
		k := ptx.New("order", 128, 1)
		out, m, n := k.ParamPtr("out"), k.ParamU32("m"), k.ParamU32("n")
		id := k.CTAIndex().Times(128).Add(k.Tid())
		k.If(id.Lt(m.Mul(n.U32)), func() {
			row, col := o.Tile(k, id, m.U32, n.U32)
			out.At(id.MulWide(k.U32(4))).StoreU32(row.Shl(16).Or(col))
		})
		e, err := k.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range [][2]int{{1, 1}, {7, 3}, {16, 16}, {9, 31}} {
			tiles := s[0] * s[1]
			buf := &ptx.Buffer{Name: "out", Data: make([]byte, 4*tiles)}
			a := e.NewArgs()
			out.Put(a, buf, 0)
			m.Put(a, uint32(s[0]))
			n.Put(a, uint32(s[1]))
			if err := (emulate.Emulator{}).Run(&ptx.Module{Entries: []*ptx.Entry{e}}, ptx.Launch{Entry: "order", Grid: ptx.Dim3{X: (tiles + 127) / 128}}, a); err != nil {
				t.Fatal(err)
			}
			for i := range tiles {
				got := binary.LittleEndian.Uint32(buf.Data[4*i:])
				if r, c := o.At(i, s[0], s[1]); got != uint32(r<<16|c) {
					t.Fatalf("%+v of %v: tile %d is at (%d,%d) on the device, (%d,%d) on the host", o, s, i, got>>16, got&0xffff, r, c)
				}
			}
		}
	}
}
