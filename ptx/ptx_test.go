package ptx_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/num"
	"heddle/ptx"
	"heddle/ptx/internal/isa"
)

// The z-files are what the table says.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := isa.Generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale; run go generate ./ptx", name)
		}
	}
}

// assemble runs ptxas, which is only there where somebody installed it (pip install nvidia-cuda-nvcc), and gives its -v output.
func assemble(t *testing.T, text, arch string) string {
	t.Helper()
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("ptxas is not in PATH; pip install nvidia-cuda-nvcc provides it")
	}
	in := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(ptxas, "-arch="+arch, "-v", in, "-o", in+".cubin").CombinedOutput()
	if err != nil {
		t.Fatalf("ptxas: %v\n%s\n%s", err, out, text)
	}
	return string(out)
}

// every writes one kernel that has each instruction of the table once.
func every(t *testing.T) *ptx.Entry {
	t.Helper()
	k := ptx.New("every", 128, 2)
	p, n, f, tm := k.ParamPtr("p"), k.ParamU32("n"), k.ParamF32("f"), k.ParamMap("map")
	q := k.ParamU64("q")
	s := k.Shared("s", 65536, 1024).Addr()
	bar := k.Bars("bar", 2)
	lane := k.Lane()
	u := lane.Add(n.U32).Sub(k.CTAIndex()).Mul(k.NumCTAs()).MulHi(k.ClusterIndex()).Mad(lane, k.NumClusters()).Div(lane).Rem(lane).Min(lane).Max(lane)
	u = u.And(lane).Or(lane.Plus(3)).Xor(k.ClusterRank()).Not().ShlBy(lane).ShrBy(lane).Add(u.OnesCount()).Add(u.LeadingZeros()).Add(k.Clock()).Add(q.Low())
	w := u.MulWide(lane).Add(u.U64()).Sub(q.U64).Mul(q.U64).And(q.U64).Or(q.U64).ShlBy(lane).ShrBy(lane).Add(k.GlobalTimer())
	x := u.Signed().Add(k.S32(-3)).Min(k.S32(5)).Max(k.S32(-7))
	c := u.Lt(lane).And(u.Le(lane)).Or(u.Gt(lane)).Xor(u.Ge(lane)).And(u.Eq(lane)).And(u.Ne(lane)).Not().And(x.Lt(k.S32(0)))
	g := f.Add(u.F32()).Sub(k.F32(1)).Mul(f.F32).FMA(f.F32, f.F32).Div(f.F32).Min(f.F32).Max(f.F32).Neg().Abs().Sqrt()
	g = g.RcpApprox().Add(g.RsqrtApprox()).Add(g.Exp2Approx()).Add(g.Log2Approx()).TF32().Add(u.FloatBits())
	c = c.And(g.Lt(f.F32)).And(g.Gt(f.F32)).And(g.Eq(f.F32)).And(k.Bool(true)).Or(k.Bool(false))
	u = c.SelectU32(u, x.Unsigned()).Add(g.TruncU32()).Add(g.Bits()).Add(g.PackBF16(f.F32).Bits()).Add(g.PackF16(f.F32).Bits()).Add(u.BF16x2().Bits())
	g = c.SelectF32(g, f.F32)
	a := s.At(lane.Shl(4))
	a.StoreU32(u)
	a.StoreF32(g)
	a.StoreF32x4([4]ptx.F32{g, g, g, g})
	a.StoreF32x2([2]ptx.F32{g, g})
	a.StoreU32x4([4]ptx.U32{u, u, u, u})
	u = u.Add(a.LoadU32())
	g = g.Add(a.LoadF32()).Add(a.LoadF32x4()[2]).Add(a.LoadF32x2()[1])
	at := p.At(w)
	at.StoreU32(u)
	at.StoreF32(g)
	at.StoreF32x4([4]ptx.F32{g, g, g, g})
	at.StoreU32x4([4]ptx.U32{u, u, u, u})
	at.RedAddU32(at.AtomicAddU32(u).Add(at.AtomicIncU32(u)))
	at.RedAddF32(at.LoadF32().Add(at.LoadF32x4()[1]))
	at.StoreU16(at.LoadU16())
	u = at.LoadU32().Add(at.LoadU32x4()[3]).Shuffle(lane).ShuffleXor(1)
	g = g.ShuffleXor(2)
	c = c.Any().And(c.All())
	u = u.Add(c.Ballot())
	u = u.ReverseBits().Permute(u, 0x3715).Field(3, 9).Add(x.Mul(x).ShrBy(u).Unsigned()).Add(u.MadWide(u, w).Low())
	c = c.And(w.Lt(q.U64)).Or(w.Eq(q.U64))
	g = g.TanhApprox().Add(x.F32())
	x = g.TruncS32().Add(g.RoundS32())
	two := u.BF16x2().FMA(u.BF16x2(), u.BF16x2())
	g = g.Add(two.Low()).Add(two.High())
	u = u.Add(g.PackE4M3(g)).Add(g.PackE5M2(g)).Add(x.Unsigned())
	u = u.Add(at.AtomicMaxU32(u)).Add(at.AtomicExchangeU32(u)).Add(at.AtomicCompareU32(u, u)).Add(a.AtomicAddU32(u))
	g = g.Add(at.LoadConstF32x4()[0])
	u = u.Add(at.LoadConstU32x4()[1])
	a.CopyAsync16(at)
	k.CopyCommit()
	k.CopyWait(0)
	a.StoreMatrix4T(a.LoadMatrix4T())
	u = u.Add(k.MMABF16([4]ptx.U32{u, u, u, u}, [2]ptx.U32{u, u}, [4]ptx.F32{g, g, g, g})[1].Bits())
	k.If(k.Elect(), func() {
		bar.Init(4) // one lane of each warp
		k.FenceMbarrierInit()
		bar.Arrive()
		bar.Expect(16)
		bar.ArriveExpect(16)
		bar.Map(k.U32(1)).Index(lane).Arrive()
		tm.Prefetch()
		tm.Load2(s, u, u, bar)
		tm.LoadMulticast2(s, u, u, bar.Index(k.U32(1)), 3)
		tm.LoadMulticastTo2(s, u, u, bar.Index(k.U32(1)), u)
		tm.Load3(s, u, u, u, bar)
		tm.Load2Hint(s, u, u, bar, k.U64(ptx.EvictLast))
		peer := bar.Map(k.U32(1))
		peer.ArriveExpect(32)
		s.Map(k.U32(1)).StoreAsyncU32(u, peer)
		s.Map(k.U32(1)).StoreAsyncU32x4([4]ptx.U32{u, u, u, u}, peer)
		s.LoadBulk(p.GAddr, u, bar)
		p.StoreBulk(s, u)
		tm.Store2(u, u, s)
		tm.ReduceAdd2(u, u, s)
		k.BulkCommit()
		k.BulkWaitRead(1)
		k.BulkWait(0)
		bar.Wait(u)
	})
	k.WarpSync()
	far := s.Map(u).At(u).Plus(16)
	far.StoreU32(far.LoadU32())
	far.StoreF32(far.LoadF32())
	k.When(bar.TryWait(u), func() { at.StoreU32(u) })
	k.SyncCTA()
	k.BarArrive(k.U32(1), 128)
	k.ClusterSync()
	k.FenceProxyAsync()
	k.FenceCluster()
	k.FenceGPU()
	k.GridWait()
	k.GridLaunchDependents()
	k.Nanosleep(20)
	a.StoreMatrix4(a.LoadMatrix4())
	k.Role("all", 1, 248, func() {
		d := k.Desc(s, ptx.KMajor(ptx.Swizzle128)).Step(2).Add(u.U64())
		acc := k.NewAcc(64)
		k.WgmmaFence()
		mn := k.Desc(s, ptx.MNMajor(ptx.Swizzle128, 64))
		acc.MMABF16(d, mn, k.Bool(false), 0, 1)
		acc.MMAF16(d, d, k.Bool(true), 0, 0)
		acc.MMABF16R([4]ptx.U32{u, u, u, u}, d, k.Bool(true), 0)
		acc.MMAF16R([4]ptx.U32{u, u, u, u}, mn, k.Bool(true), 1)
		acc.MMATF32(d, d, k.Bool(true))
		acc.MMAE4M3(d, d, k.Bool(true))
		acc.MMAE5M2(d, d, k.Bool(true))
		k.WgmmaCommit()
		k.WgmmaWait(0)
		at.StoreF32(acc.F32(3))
	})
	e, err := k.Build()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// One kernel holds every row of the table, and ptxas takes it.
func TestEveryInstructionPrintsAndAssembles(t *testing.T) {
	e := every(t)
	seen := map[ptx.Op]bool{}
	e.Body.Walk(func(in *ptx.Inst) { seen[in.Op] = true })
	for op := ptx.OpMov + 1; op < ptx.NumOps; op++ {
		if !seen[op] && op != ptx.OpSetMaxDec && op != ptx.OpSetMaxInc {
			t.Errorf("%v is in no kernel of this test", op)
		}
	}
	text := (&ptx.Module{Entries: []*ptx.Entry{e}}).PTX()
	if i := strings.IndexByte(strings.ReplaceAll(text, "%", ""), '%'); i >= 0 || strings.Contains(text, "{d") {
		t.Errorf("a mark of a template is left in\n%s", text)
	}
	assemble(t, text, "sm_90a")
}

func TestMapCheckNamesTheRule(t *testing.T) {
	ok := func() *ptx.Map {
		return &ptx.Map{Type: num.BF16, Buffer: &ptx.Buffer{Data: make([]byte, 64*128)}, Dims: []int{64, 64}, Strides: []int{128}, Box: []int{64, 64}, Swizzle: ptx.Swizzle128}
	}
	if err := ok().Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*ptx.Map){
		"has no encoding": func(m *ptx.Map) { m.Type = 0 }, "box sizes": func(m *ptx.Map) { m.Box = m.Box[:1] }, "want a buffer": func(m *ptx.Map) { m.Buffer = nil },
		"stride of dim 1": func(m *ptx.Map) { m.Strides[0] = 136 }, "box of 257": func(m *ptx.Map) { m.Box[1] = 257 }, "the tensor ends": func(m *ptx.Map) { m.Dims[1] = 65 },
		"box row": func(m *ptx.Map) { m.Swizzle = ptx.Swizzle64 }, "0 elements": func(m *ptx.Map) { m.Dims[0] = 0 }, "offset 8": func(m *ptx.Map) { m.Offset = 8 },
	} {
		m := ok()
		spoil(m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}
