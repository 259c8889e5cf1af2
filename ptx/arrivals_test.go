package ptx_test

import (
	"strings"
	"testing"

	"heddle/num"
	"heddle/ptx"
	"heddle/tile"
)

// ring is a barrier that consumer warpgroups release and a producer waits for: in a cluster, thread i of each releases that of CTA i.
func ring(k *ptx.Builder, arrivals, cluster int) {
	empty := k.Bars("empty", 2)
	k.If(k.Tid().Eq(k.U32(0)), func() {
		for i := range 2 {
			empty.Index(k.U32(i)).Init(arrivals)
		}
		k.FenceMbarrierInit()
	})
	k.ClusterSync()
	n := k.ParamU32("n")
	k.Role("producer", 1, 0, func() {
		k.If(k.Tid().Eq(k.U32(0)), func() {
			k.For(k.U32(0), n.U32, k.U32(1), func(i ptx.U32) { empty.Index(i.And(k.U32(1))).Wait(k.U32(0)) })
		})
	})
	k.Role("consumer", 2, 0, func() {
		thread := k.WarpInGroup().Shl(5).Add(k.Lane())
		release := func(i ptx.U32) {
			k.When(thread.Lt(k.U32(cluster)), func() { empty.Map(thread).Index(i).Arrive() })
		}
		k.For(k.U32(0), n.U32, k.U32(1), func(i ptx.U32) { release(i.And(k.U32(1))) })
		release(k.U32(0))
	})
}

// Counts that the threads cannot add up to are refused with kernel, role and line; those that they can are not.
func TestArrivalCountsMatchTheParticipants(t *testing.T) {
	for name, c := range map[string]struct {
		want             string // "": it builds
		threads, cluster int
		write            func(k *ptx.Builder)
	}{
		"both consumers of both CTAs": {"", 384, 2, func(k *ptx.Builder) { ring(k, 4, 2) }},
		"consumers that take turns":   {"", 384, 2, func(k *ptx.Builder) { ring(k, 2, 2) }},
		"one arrival too many":        {"empty[0] is made for 5 arrivals a phase, but those that can arrive are 4 from arrivals_test.go:", 384, 2, func(k *ptx.Builder) { ring(k, 5, 2) }},
		"one too few":                 {"in role consumer", 384, 2, func(k *ptx.Builder) { ring(k, 3, 2) }},
		"a CTA alone, one too many":   {"made for 3 arrivals", 384, 1, func(k *ptx.Builder) { ring(k, 3, 1) }},
		"whole warps where one lane does": {"those that can arrive are 2 from", 64, 1, func(k *ptx.Builder) {
			b := k.Bars("b", 1)
			k.If(k.Tid().Eq(k.U32(0)), func() { b.Init(64) })
			k.SyncCTA()
			k.If(k.Lane().Eq(k.U32(0)), b.Arrive)
			b.Wait(k.U32(0))
		}},
		"nobody arrives": {"those that can arrive are none", 64, 1, func(k *ptx.Builder) {
			b := k.Bars("b", 1)
			k.If(k.Tid().Eq(k.U32(0)), func() { b.Init(1) })
			k.SyncCTA()
			b.Wait(k.U32(0))
		}},
		"each thread four times":       {"", 64, 1, func(k *ptx.Builder) { repeated(k, 256, 4) }},
		"each thread a time too often": {"made for 320 arrivals", 64, 1, func(k *ptx.Builder) { repeated(k, 320, 4) }},
		"who arrives is not known": {"", 64, 1, func(k *ptx.Builder) {
			b, n := k.Bars("b", 1), k.ParamU32("n")
			k.If(k.Tid().Eq(k.U32(0)), func() { b.Init(7) })
			k.SyncCTA()
			k.If(k.Tid().Lt(n.U32), b.Arrive)
			b.Wait(k.U32(0))
		}},
		"named barrier of a warpgroup": {"", 256, 1, func(k *ptx.Builder) { k.BarSync(k.WarpgroupIndex().Plus(1), 128) }},
		"named barrier of too many": {"role b: arrivals_test.go:", 256, 1, func(k *ptx.Builder) {
			k.Role("a", 1, 0, func() {})
			k.Role("b", 1, 0, func() { k.BarSync(k.U32(1), 256) })
		}},
		"named barrier of those who wait and those who do not": {"", 256, 1, func(k *ptx.Builder) {
			k.Role("a", 1, 0, func() { k.BarArrive(k.U32(1), 256) })
			k.Role("b", 1, 0, func() { k.BarSync(k.U32(1), 256) })
		}},
		"the whole CTA in a role": {"named barrier 0 is for 256 threads, but those that can arrive are 128 from", 256, 1, func(k *ptx.Builder) {
			k.Role("a", 1, 0, func() { k.SyncCTA() })
			k.Role("b", 1, 0, func() {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := ptx.New("counts", c.threads, c.cluster)
			c.write(k)
			refused(t, k, c.want)
		})
	}
}

func repeated(k *ptx.Builder, arrivals, times int) {
	b := k.Bars("b", 1)
	k.If(k.Tid().Eq(k.U32(0)), func() { b.InitRepeated(arrivals, times) })
	k.SyncCTA()
	k.For(k.U32(0), k.U32(times), k.U32(1), func(ptx.U32) { b.Arrive() })
	b.Wait(k.U32(0))
}

// refused demands that Build fails with some words and a line of this file, or that it does not where there are none.
func refused(t *testing.T, k *ptx.Builder, want string) *ptx.Entry {
	t.Helper()
	e, err := k.Build()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "ptx: counts") || !strings.Contains(err.Error(), "arrivals_test.go:")):
		t.Errorf("got %v, want an error with %q, the kernel and a line of this file", err, want)
	}
	return e
}

// Descriptors that do not say what their region holds, or that wgmma reads otherwise, are refused.
func TestDescriptorsMatchTheirTiles(t *testing.T) {
	held := ptx.OperandTile{Layout: tile.Must(tile.OperandLayout(128, 64, 2, tile.Swizzle128, false)), Elem: 2, Swizzle: ptx.Swizzle128}
	wide := ptx.OperandTile{Layout: tile.Must(tile.OperandLayout(128, 64, 2, tile.Swizzle128, true)), Elem: 2, Swizzle: ptx.Swizzle128}
	for name, c := range map[string]struct {
		want    string
		tile    ptx.OperandTile
		columns int
		desc    func(k *ptx.Builder, r ptx.Region) ptx.Desc
		trans   int
	}{
		"derived":           {"", held, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc { return r.Desc(r.Addr()) }, 0},
		"derived, MN-major": {"", wide, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc { return r.Desc(r.Addr()) }, 1},
		"stated":            {"", held, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc { return k.Desc(r.Addr(), ptx.KMajor(ptx.Swizzle128)) }, 0},
		"another swizzle": {"role r: arrivals_test.go:", held, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc {
			return k.Desc(r.Addr(), ptx.KMajor(ptx.Swizzle64))
		}, 0},
		"another stride": {"the descriptor says K-major, 128-byte swizzle, leading 0, stride 512", held, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc {
			return k.Desc(r.Addr(), ptx.DescLayout{Swizzle: ptx.Swizzle128, Stride: 512})
		}, 0},
		"another depth": {"leading 4096", wide, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc {
			return k.Desc(r.Addr(), ptx.MNMajor(ptx.Swizzle128, 32))
		}, 1},
		"read the other way":       {"reads operand B as MN-major, but its descriptor says K-major", held, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc { return r.Desc(r.Addr()) }, 1},
		"more rows than there are": {"m64n256k16.f32.bf16.bf16 reads 256 rows of operand B, but a tile of B has 128", held, 256, func(k *ptx.Builder, r ptx.Region) ptx.Desc { return r.Desc(r.Addr()) }, 0},
		"wider elements": {"reads elements of 2 bytes, but B holds such of 1", ptx.OperandTile{Layout: tile.Must(tile.OperandLayout(128, 128, 1, tile.Swizzle128, false)), Elem: 1, Swizzle: ptx.Swizzle128}, 128,
			func(k *ptx.Builder, r ptx.Region) ptx.Desc { return r.Desc(r.Addr()) }, 0},
		"of nothing": {"nobody has said what it holds", held, 128, func(k *ptx.Builder, r ptx.Region) ptx.Desc {
			other := k.Shared("other", 16384, 1024)
			return other.Desc(other.Addr())
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := ptx.New("counts", 128, 1)
			r := k.SharedTile("B", 2, c.tile)
			k.Role("r", 1, 0, func() {
				d, acc := c.desc(k, r), k.NewAcc(c.columns)
				k.WgmmaFence()
				acc.MMABF16R([4]ptx.U32{k.Tid(), k.Tid(), k.Tid(), k.Tid()}, d.Step(2), k.Bool(false), c.trans)
				k.WgmmaCommit()
				k.WgmmaWait(0)
			})
			refused(t, k, c.want)
		})
	}
	k := ptx.New("counts", 128, 1)
	k.SharedTile("bad", 1, ptx.OperandTile{Layout: tile.Leaf(64, 1), Elem: 2, Swizzle: ptx.Swizzle128})
	refused(t, k, "shared tile bad")
}

// A tensor map that brings another swizzle than the descriptor reads is refused at launch, before anything runs.
func TestTensorMapsMatchTheDescriptors(t *testing.T) {
	k := ptx.New("counts", 128, 1)
	m, r, bar := k.ParamMap("A"), k.Shared("A", 16384, 1024), k.Bars("full", 2)
	k.Role("loader", 1, 0, func() {
		k.If(k.Tid().Eq(k.U32(0)), func() {
			m.Load2(r.Addr().At(k.Tid().Shl(10)), k.U32(0), k.U32(0), bar)
		})
		d, acc := k.Desc(r.Addr(), ptx.KMajor(ptx.Swizzle128)), k.NewAcc(64)
		k.WgmmaFence()
		acc.MMABF16(d, d, k.Bool(false), 0, 0)
		k.WgmmaCommit()
		k.WgmmaWait(0)
	})
	e := refused(t, k, "")
	buf := &ptx.Buffer{Name: "a", Data: make([]byte, 8192)}
	for want, x := range map[string]*ptx.Map{
		"":                               {Box: []int{64, 64}, Swizzle: ptx.Swizzle128},
		"role loader: arrivals_test.go:": {Box: []int{32, 64}, Swizzle: ptx.Swizzle64},
		"rows of 64 bytes under 128-byte swizzle, but the descriptor of arrivals_test.go:": {Box: []int{32, 64}, Swizzle: ptx.Swizzle128},
	} {
		x.Type, x.Buffer, x.Dims, x.Strides = num.BF16, buf, []int{64, 64}, []int{128}
		a := e.NewArgs()
		m.Put(a, x)
		if _, err := e.Check(ptx.Launch{Entry: "counts", Grid: ptx.Dim3{X: 1}}, a); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
