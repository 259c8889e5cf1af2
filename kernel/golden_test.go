package kernel

import (
	goflag "flag"
	"os"
	"testing"

	"heddle/num"
	"heddle/ptx"
)

var update = goflag.Bool("update", false, "write the golden files anew")

// blocks is a kernel made of the building blocks alone: a ring, an order, a product, a store.
func blocks(t *testing.T) *ptx.Entry {
	t.Helper()
	k := ptx.New("blocks", 256, 1)
	a, d := k.ParamMap("a"), k.ParamMap("d")
	tiles := k.ParamU32("tiles")
	tile := k.Shared("tile", 2*8192, 1024).Addr()
	out := k.Shared("out", 2*StoreBytes, 1024).Addr()
	ring := NewRing(k, 2)
	k.If(k.Tid().Eq(k.U32(0)), func() {
		ring.Init(1)
		k.FenceMbarrierInit()
	})
	k.SyncCTA()
	order := Order{Group: 4, Serpentine: true}
	each := func(visit func(row, col ptx.U32)) {
		k.For(k.CTAIndex(), tiles.Mul(tiles.U32), k.NumCTAs(), func(t ptx.U32) {
			m, n := order.Tile(k, t, tiles.U32, tiles.U32)
			visit(m.Times(64), n.Times(64))
		})
	}
	k.Role("producer", 1, 0, func() {
		k.If(k.Tid().Eq(k.U32(0)), func() {
			at := ring.Producer()
			each(func(row, col ptx.U32) {
				at.WaitEmpty()
				full := ring.Full.Index(at.Slot())
				full.ArriveExpect(8192)
				a.Load2(tile.At(at.Slot().Shl(13)), col, row, full)
				at.Advance()
			})
			at.Drain()
		})
	})
	k.Role("consumer", 1, 0, func() {
		desc, acc := k.Desc(tile, ptx.KMajor(ptx.Swizzle128)), k.NewAcc(64)
		store := Store{Type: num.BF16, Buffers: out, Count: 2, Barrier: k.U32(1)}
		at := ring.Consumer()
		release := k.Tid().Eq(k.U32(128))
		each(func(row, col ptx.U32) {
			at.WaitFull()
			x := desc.Add(at.Slot().Shl(9).U64())
			k.WgmmaFence()
			acc.MMABF16(x, x, k.Bool(false), 0, 0)
			k.WgmmaCommit()
			k.WgmmaWait(0)
			k.When(release, func() { ring.Empty.Index(at.Slot()).Arrive() })
			at.Advance()
			store.Tile(k, store.Rounded(d.TensorMap, []*ptx.Acc{acc}, row, col))
		})
		store.Finish(k)
	})
	e, err := k.Build()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The text of the building blocks is the golden one; go test ./kernel -update writes it, and the difference is read like code.
func TestBlocksPrintAsTheyDid(t *testing.T) {
	got := (&ptx.Module{Entries: []*ptx.Entry{blocks(t)}}).PTX()
	const file = "testdata/blocks.ptx"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the text differs from %s; if it should, go test ./kernel -update", file)
	}
	if again := (&ptx.Module{Entries: []*ptx.Entry{blocks(t)}}).PTX(); again != got {
		t.Error("the same kernel prints differently")
	}
}

// The order computed on the host visits every tile once, whatever the group and the shape.
func TestOrdersVisitEachTileOnce(t *testing.T) {
	for _, o := range []Order{{}, {Group: 1}, {Group: 4}, {Group: 8, Serpentine: true}} {
		for _, s := range [][2]int{{1, 1}, {7, 3}, {16, 16}, {9, 31}} {
			seen := map[[2]int]bool{}
			for i := range s[0] * s[1] {
				r, c := o.At(i, s[0], s[1])
				if r < 0 || r >= s[0] || c < 0 || c >= s[1] || seen[[2]int{r, c}] {
					t.Fatalf("%+v of %v: tile %d is at (%d,%d), out of range or again", o, s, i, r, c)
				}
				seen[[2]int{r, c}] = true
			}
		}
	}
}
