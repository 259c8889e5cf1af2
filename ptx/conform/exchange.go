package conform

import (
	"encoding/binary"

	"heddle/ptx"
)

// Exchange is a cluster of two CTAs that pass words to each other in every way there is: plain stores and loads of the other's shared memory, st.async of one and
// of four words, and bulk copies from and to global memory.
func Exchange() (Program, error) {
	const n = 32 // threads of a CTA
	k := ptx.New("exchange", n, 2)
	in, out := k.ParamPtr("in"), k.ParamPtr("out")
	plain := k.Shared("plain", 4*n, 128).Addr()
	single := k.Shared("single", 4*n, 128).Addr()
	quads := k.Shared("quads", 16*n, 128).Addr()
	block := k.Shared("block", 16*n, 128).Addr()
	bar := k.Bars("bar", 2)
	lane, peer := k.Lane(), k.ClusterRank().Xor(k.U32(1))
	word := lane.Shl(2)
	id := k.ClusterRank().Times(1000).Add(lane)
	k.If(lane.Eq(k.U32(0)), func() {
		bar.Init(1)
		bar.Index(k.U32(1)).Init(1)
		k.FenceMbarrierInit()
	})
	k.ClusterSync()
	from := in.At(k.CTAIndex().MulWide(k.U32(16 * n)))
	k.If(lane.Eq(k.U32(0)), func() {
		bar.ArriveExpect(20 * n) // st.async of the peer
		bar.Index(k.U32(1)).ArriveExpect(16 * n)
		block.LoadBulk(from, k.U32(16*n), bar.Index(k.U32(1)))
	})
	k.ClusterSync() // the peer's barrier expects now
	plain.At(word).Map(peer).StoreU32(id.Plus(1))
	single.At(word).Map(peer).StoreAsyncU32(id.Plus(2), bar.Map(peer))
	quads.At(lane.Shl(4)).Map(peer).StoreAsyncU32x4([4]ptx.U32{id.Plus(3), id.Plus(4), id.Plus(5), id.Plus(6)}, bar.Map(peer))
	bar.Wait(k.U32(0))
	bar.Index(k.U32(1)).Wait(k.U32(0))
	k.ClusterSync()
	sum := plain.At(word).LoadU32().Add(single.At(word).LoadU32()).Add(plain.At(word).Map(peer).LoadU32())
	for i := range 4 {
		sum = sum.Mad(k.U32(3), quads.At(lane.Shl(4)).Plus(4*i).LoadU32())
		sum = sum.Add(block.At(lane.Shl(4)).Plus(4 * i).LoadU32())
	}
	k.ClusterSync() // nobody writes what another may still read
	plain.At(word).StoreU32(sum)
	k.FenceProxyAsync()
	k.WarpSync()
	k.If(lane.Eq(k.U32(0)), func() {
		out.At(k.CTAIndex().MulWide(k.U32(4*n))).StoreBulk(plain, k.U32(4*n))
		k.BulkCommit()
		k.BulkWait(0)
	})
	e, err := k.Build()
	if err != nil {
		return Program{}, err
	}
	data := interesting(1, 8*n)
	return Program{
		Name: "exchange", Entry: e, Launch: ptx.Launch{Entry: e.Name, Grid: ptx.Dim3{X: 2}},
		Args: func() (*ptx.Args, *ptx.Buffer) {
			a, dst := e.NewArgs(), words("out", make([]uint32, 2*n))
			in.Put(a, words("in", data), 0)
			out.Put(a, dst, 0)
			return a, dst
		},
		Want: func() []byte {
			w := make([]byte, 8*n)
			for c := range uint32(2) {
				for l := range uint32(n) {
					mine, theirs := c*1000+l, (1-c)*1000+l
					sum := theirs + 1 + theirs + 2 + mine + 1
					for i := range uint32(4) {
						sum = sum*3 + theirs + 3 + i
						sum += data[4*n*c+4*l+i]
					}
					binary.LittleEndian.PutUint32(w[4*(n*c+l):], sum)
				}
			}
			return w
		},
	}, nil
}
