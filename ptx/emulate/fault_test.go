package emulate

import (
	"errors"
	"strings"
	"testing"

	"heddle/num"
	"heddle/ptx"
)

// Small kernels, each with one mistake: the first report has the kind, names a line of this file and says the word.
func TestEachKindOfFaultIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		kind    Kind
		want    string
		threads int
		cluster int
		write   func(k *ptx.Builder, p ptx.ParamPtr, m ptx.ParamMap)
	}{
		"store beyond a buffer": {Bounds, "which has 4096", 32, 1, func(k *ptx.Builder, p ptx.ParamPtr, _ ptx.ParamMap) { p.Plus(4096).StoreU32(k.Tid()) }},
		"store in no buffer": {Bounds, "in no buffer", 32, 1, func(k *ptx.Builder, p ptx.ParamPtr, _ ptx.ParamMap) {
			p.At(k.U64(1 << 50)).StoreU32(k.Tid())
		}},
		"odd global address": {Alignment, "global access of 4 bytes", 32, 1, func(k *ptx.Builder, p ptx.ParamPtr, _ ptx.ParamMap) { p.Plus(2).StoreU32(k.Tid()) }},
		"odd shared address": {Alignment, "shared access of 16 bytes", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			k.Shared("s", 1024, 128).Addr().Plus(4).LoadF32x4()
		}},
		"beyond shared memory": {Bounds, "outside 256 bytes", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			k.Shared("s", 128, 128).Addr().Plus(128).StoreU32(k.Tid())
		}},
		"shared memory never written": {Uninitialised, "s+0", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) { k.Shared("s", 128, 128).Addr().LoadU32() }},
		"threads write one word": {Race, "nothing orders", 64, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			s := k.Shared("s", 128, 128).Addr()
			k.If(k.Lane().Eq(k.U32(0)), func() { s.StoreU32(k.Tid()) })
		}},
		"read without a barrier": {Race, "nothing orders", 64, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			s := k.Shared("s", 256, 128).Addr()
			k.IfElse(k.WarpIndex().Eq(k.U32(0)), func() { s.At(k.Lane().Shl(2)).StoreU32(k.Tid()) }, func() {
				spin(k, 500)
				s.At(k.Lane().Shl(2)).LoadU32()
			})
		}},
		"overwrite of what another reads": {Race, "", 64, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			s := k.Shared("s", 256, 128).Addr()
			s.At(k.Tid().Shl(2)).StoreU32(k.Tid())
			k.SyncCTA()
			s.At(k.Tid().Xor(k.U32(32)).Shl(2)).LoadU32()
			s.At(k.Tid().Shl(2)).StoreU32(k.Tid())
		}},
		"TMA box at an odd column": {Alignment, "want a multiple of 16 bytes", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, m ptx.ParamMap) {
			s := k.Shared("s", 1024, 1024).Addr()
			k.If(k.Lane().Eq(k.U32(0)), func() { m.Store2(k.U32(1), k.U32(0), s) })
		}},
		"TMA store without a proxy fence": {Proxy, "without fence.proxy.async", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, m ptx.ParamMap) {
			s := k.Shared("s", 1024, 1024).Addr()
			fill(k, s)
			k.WarpSync()
			k.If(k.Lane().Eq(k.U32(0)), func() {
				m.Store2(k.U32(0), k.U32(0), s)
				k.BulkCommit()
				k.BulkWait(0)
			})
		}},
		"exit under a TMA store": {Exit, "bulk stores", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, m ptx.ParamMap) {
			s := k.Shared("s", 1024, 1024).Addr()
			fill(k, s)
			k.FenceProxyAsync()
			k.WarpSync()
			k.If(k.Lane().Eq(k.U32(0)), func() { m.Store2(k.U32(0), k.U32(0), s); k.BulkCommit() })
		}},
		"barrier never made": {Barrier, "no initialised mbarrier", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) { k.Bars("b", 1).Arrive() }},
		"barrier made without order": {Race, "nothing orders its initialisation", 64, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			b := k.Bars("b", 1)
			k.If(k.Tid().Eq(k.U32(0)), func() { b.Init(32) })
			k.If(k.WarpIndex().Eq(k.U32(1)), func() { spin(k, 200); b.Arrive() })
		}},
		"too many arrivals": {Barrier, "more arrivals", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			b := k.Bars("b", 1)
			k.If(k.Lane().Eq(k.U32(0)), func() { b.Init(16) })
			k.SyncCTA()
			b.Arrive()
		}},
		"arrivals that never come": {Deadlock, "1 of 33 arrivals", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			b := k.Bars("b", 1)
			k.If(k.Lane().Eq(k.U32(0)), func() { b.Init(33) })
			k.SyncCTA()
			k.If(k.Lane().Lt(k.NumCTAs().Plus(31)), b.Arrive) // all lanes, which Build cannot know
			b.Wait(k.U32(0))
		}},
		"bytes that never come": {Deadlock, "16 bytes are missing", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, m ptx.ParamMap) { bring(k, m, 1024+16) }},
		"fewer bytes than loads": {Phase, "more bytes should have been expected", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, m ptx.ParamMap) {
			bring(k, m, 1024)
		}},
		"named barrier for more than there are": {Barrier, "named barrier 3", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) { wider(k) }},
		"named barrier for more than come": {Deadlock, "named barrier 3", 64, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			k.If(k.WarpIndex().Eq(k.U32(0)), func() { k.BarSync(k.NumCTAs().Plus(2), 64) })
		}},
		"a loop without end": {Endless, "does not end", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			k.While(func() ptx.Pred { return k.Bool(true) }, func() { k.Nanosleep(1) })
		}},
		"absolute shared address": {Bounds, "addresses start from the CTA's base", 32, 1, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			s := k.Shared("s", 128, 128).Addr()
			s.Plus(-1024).StoreU32(k.Tid())
		}},
		"peer's exit": {Exit, "of CTA", 32, 2, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			b := k.Bars("b", 1)
			k.If(k.Lane().Eq(k.U32(0)), func() { b.Init(64); k.FenceMbarrierInit() })
			k.ClusterSync()
			b.Map(k.ClusterRank().Xor(k.U32(1))).Arrive()
		}},
		"rank outside the cluster": {Bounds, "mapa to rank 2", 32, 2, func(k *ptx.Builder, _ ptx.ParamPtr, _ ptx.ParamMap) {
			b := k.Bars("b", 1)
			k.If(k.Lane().Eq(k.U32(0)), func() { b.Init(32) })
			k.ClusterSync()
			b.Map(k.U32(2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := ptx.New("faulty", c.threads, c.cluster)
			p, m := k.ParamPtr("p"), k.ParamMap("m")
			k.Shared("unused", 16, 16)
			c.write(k, p, m)
			e, err := k.Build()
			if err != nil {
				t.Fatal(err)
			}
			a := e.NewArgs()
			buf := &ptx.Buffer{Name: "buf", Data: make([]byte, 4096)}
			p.Put(a, buf, 0)
			m.Put(a, &ptx.Map{Type: num.F32, Buffer: buf, Dims: []int{32, 32}, Strides: []int{128}, Box: []int{32, 8}, Swizzle: ptx.Swizzle128})
			err = Emulator{MaxSteps: 1e5}.Run(&ptx.Module{Entries: []*ptx.Entry{e}}, ptx.Launch{Entry: "faulty", Grid: ptx.Dim3{X: c.cluster}}, a)
			r, ok := errors.AsType[*Report](err)
			if !ok {
				t.Fatalf("got %v, want a report", err)
			}
			if f := r.Faults[0]; f.Kind != c.kind || !strings.Contains(f.Text, c.want) || !strings.HasPrefix(f.Line, "fault_test.go:") && c.kind != Exit {
				t.Errorf("got %v, want %s with %q at a line of this file", f, c.kind, c.want)
			}
		})
	}
}

// fill writes 1,024 bytes.
func fill(k *ptx.Builder, s ptx.SAddr) {
	for i := range 8 {
		s.At(k.Lane().Shl(2)).Plus(128 * i).StoreU32(k.Lane())
	}
}

// bring brings two boxes of 1,024 bytes, having expected one and a few bytes more, and waits.
func bring(k *ptx.Builder, m ptx.ParamMap, expect int) ptx.Bar {
	s, b := k.Shared("tile", 2048, 1024).Addr(), k.Bars("b", 1)
	k.If(k.Lane().Eq(k.U32(0)), func() {
		b.Init(1)
		k.FenceMbarrierInit()
	})
	k.SyncCTA()
	k.If(k.Lane().Eq(k.U32(0)), func() {
		b.ArriveExpect(expect)
		m.Load2(s, k.U32(0), k.U32(0), b)
		if expect == 1024 {
			m.Load2(s.Plus(1024), k.U32(0), k.U32(8), b)
		}
	})
	b.Wait(k.U32(0))
	return b
}

// wider waits for 64 threads in a CTA of 32, at a barrier that Build cannot know.
func wider(k *ptx.Builder) {
	k.BarSync(k.NumCTAs().Plus(2), 64)
}

func spin(k *ptx.Builder, n int) {
	k.For(k.U32(0), k.U32(n), k.U32(1), func(ptx.U32) {})
}
