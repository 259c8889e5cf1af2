package emulate_test

import (
	"syscall"
	"testing"

	"heddle/ptx"
	"heddle/ptx/emulate"
)

// rate runs a loop of 64 copies of the instruction that body writes, in 4 warps, and reports warp instructions a second.
func rate(b *testing.B, body func(k *ptx.Builder, f ptx.F32, tile ptx.SAddr) ptx.F32) {
	k := ptx.New("rate", 128, 1)
	out, n := k.ParamPtr("out"), k.ParamU32("n")
	tile := k.Shared("tile", 512, 128).Addr().At(k.Tid().Shl(2))
	tile.StoreU32(k.Tid())
	v := ptx.NewVarAt(k, ptx.Lane, k.F32(1))
	k.For(k.U32(0), n.U32, k.U32(1), func(ptx.U32) {
		x := v.Get()
		for range 64 {
			x = body(k, x, tile)
		}
		v.Set(x)
	})
	out.At(k.Tid().MulWide(k.U32(4))).StoreF32(v.Get())
	e, err := k.Build()
	if err != nil {
		b.Fatal(err)
	}
	const rounds = 2000
	before := cpu()
	buf := &ptx.Buffer{Name: "out", Data: make([]byte, 512)}
	for b.Loop() {
		a := e.NewArgs()
		out.Put(a, buf, 0)
		n.Put(a, rounds)
		if err := (emulate.Emulator{}).Run(&ptx.Module{Entries: []*ptx.Entry{e}}, ptx.Launch{Entry: "rate", Grid: ptx.Dim3{X: 1}}, a); err != nil {
			b.Fatal(err)
		}
	}
	done := float64(b.N) * rounds * 64 * 4
	b.ReportMetric(done/b.Elapsed().Seconds()/1e6, "M/s")
	b.ReportMetric(done/(cpu()-before)/1e6, "M/cpu-s") // where the machine is shared
}

// cpu is the processor time of this process so far, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkALU counts integer additions; the accumulated value hangs on nothing, so that one instruction is one addition.
func BenchmarkALU(b *testing.B) {
	rate(b, func(k *ptx.Builder, x ptx.F32, _ ptx.SAddr) ptx.F32 { k.Tid().Add(k.Tid()); return x })
}

func BenchmarkFMA(b *testing.B) {
	rate(b, func(k *ptx.Builder, x ptx.F32, _ ptx.SAddr) ptx.F32 { return x.FMA(x, x) })
}

// BenchmarkLoadShared reads neighbouring words: everything checked, banks counted.
func BenchmarkLoadShared(b *testing.B) {
	rate(b, func(k *ptx.Builder, x ptx.F32, tile ptx.SAddr) ptx.F32 { tile.LoadF32(); return x })
}
