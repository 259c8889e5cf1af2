//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"heddle/internal/dl"
)

// fake builds testdata/fake.c, a stand-in for the driver whose structs the C compiler lays out, and opens it.
func fake(t testing.TB, defines ...string) (*Driver, func() string, error) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the stand-in driver")
	}
	so := filepath.Join(t.TempDir(), "libfake.so")
	if out, err := exec.Command(gcc, append(defines, "-w", "-shared", "-fPIC", "-o", so, "testdata/fake.c")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	lib, err := dl.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	read, err := lib.Func("fake_read")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(so)
	return d, func() string {
		b := make([]byte, 1<<12)
		read.Call(uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		return cString(&b[0])
	}, err
}

func fakeDevice(t testing.TB) (*Device, *Stream, func() string) {
	t.Helper()
	d, said, err := fake(t)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Device(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return dev, s, said
}

func TestNoDriverIsOneSentence(t *testing.T) {
	_, err := Open("libheddle-no-such-driver.so")
	var absent *Absent
	if !errors.As(err, &absent) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
}

func TestUnusableDriversAreAbsent(t *testing.T) {
	for define, want := range map[string]string{"-DNO_GPU": "sees no GPU", "-DOLD": "too old: it has no cuLaunchKernelEx", "-DANCIENT": "too old: it offers CUDA 11.4"} {
		_, _, err := fake(t, define)
		var absent *Absent
		if !errors.As(err, &absent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", define, err, want)
		}
	}
}

func TestFactsComeFromTheirAttributes(t *testing.T) {
	dev, _, said := fakeDevice(t)
	want := Facts{Name: "Fake 1", Major: 75001, Minor: 76001, SMs: 16001, L2Bytes: 38001, SharedPerBlock: 232448, SharedPerSM: 81001, RegistersPerSM: 82001, MemoryBytes: 141 << 30,
		ClockKHz: 13001, MemoryClockKHz: 36001, MemoryBusBits: 37001, PCIBus: "0000:01:00.0", DriverInterface: "13.0"}
	if dev.Facts != want {
		t.Errorf("got %+v\nwant %+v", dev.Facts, want)
	}
	if err := dev.Bind(); err != nil || said() != "current 0xc1" {
		t.Errorf("Bind: %v, %q", err, said())
	}
	runtime.UnlockOSThread()
	var absent *Absent
	if _, err := dev.driver.Device(2); !errors.As(err, &absent) {
		t.Errorf("device 2 of 2: got %v", err)
	}
}

func TestMemoryComesBackAsItWent(t *testing.T) {
	dev, s, said := fakeDevice(t)
	p, err := dev.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	in, out := []byte("warp and weft"), make([]byte, 13)
	pinned, err := dev.AllocPinned(13)
	if err != nil {
		t.Fatal(err)
	}
	steps := []error{dev.CopyIn(p, in), s.Copy(p+64, p, 13), dev.CopyOut(out, p+64), s.CopyOut(pinned, p, 13), s.CopyIn(p+128, pinned, 13), s.Fill(p, 0xff, 4), s.FillWords(p+4, 0x01020304, 1)}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 8)
	if err := dev.CopyOut(head, p); err != nil {
		t.Fatal(err)
	}
	if string(out) != string(in) || string(pinned.Bytes) != string(in) || string(head) != "\xff\xff\xff\xff\x04\x03\x02\x01" {
		t.Errorf("got %q, %q, %q", out, pinned.Bytes, head)
	}
	if err := s.WriteWord(pinned.Device, 7); err != nil || pinned.Bytes[0] != 7 {
		t.Errorf("WriteWord: %v, %v", err, pinned.Bytes[:4])
	}
	if err := s.WaitWord(pinned.Device, 9); err != nil || said() != "wait 9" {
		t.Errorf("WaitWord: %v, %q", err, said())
	}
	if err := errors.Join(dev.FreePinned(pinned), dev.Free(p)); err != nil {
		t.Error(err)
	}
	if _, err := dev.Alloc(1 << 40); err == nil || !strings.Contains(err.Error(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2, out of memory): wanted 1099511627776 bytes, 1000 of 2000 are free") {
		t.Errorf("got %v", err)
	}
	if _, err := dev.Alloc(0); err == nil {
		t.Error("an allocation of 0 bytes was accepted")
	}
}

func TestEventsAndStreams(t *testing.T) {
	dev, s, _ := fakeDevice(t)
	a, _ := dev.NewEvent()
	b, err := dev.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Record(s), b.Record(s), s.Wait(b), b.Synchronize()); err != nil {
		t.Fatal(err)
	}
	if d, err := b.Since(a); err != nil || d.Microseconds() != 1500 {
		t.Errorf("got %v, %v", d, err)
	}
	first, err1 := s.Idle()
	second, err2 := s.Idle()
	if first || !second || err1 != nil || err2 != nil {
		t.Errorf("got %v, %v, %v, %v", first, second, err1, err2)
	}
	if err := errors.Join(a.Close(), b.Close(), s.Close(), dev.Synchronize(), dev.Release()); err != nil {
		t.Error(err)
	}
}

func TestModulesAreLinkedOnceAndKept(t *testing.T) {
	dev, _, said := fakeDevice(t)
	cache := &Cache{Dir: filepath.Join(t.TempDir(), "cubin")}
	m, err := dev.Compile("good ptx", cache)
	if err != nil || m.Cached || m.Log != "Used 7 registers" || string(m.Cubin) != "good ptx" {
		t.Fatalf("got %+v, %v", m, err)
	}
	if m, err = dev.Compile("good ptx", cache); err != nil || !m.Cached || string(m.Cubin) != "good ptx" {
		t.Fatalf("second time: %+v, %v", m, err)
	}
	files, _ := filepath.Glob(filepath.Join(cache.Dir, "*"))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	if err := os.WriteFile(files[0], []byte(strings.Repeat("damaged ", 9)), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err = dev.Compile("good ptx", cache); err != nil || m.Cached {
		t.Errorf("damaged file: %+v, %v", m, err)
	}
	other := *dev
	other.Facts.Name = "another device"
	if cache.path(dev, "x") == cache.path(&other, "x") || cache.path(dev, "x") == cache.path(dev, "y") {
		t.Error("the cache confuses devices or programs")
	}
	if _, err := dev.Compile("bad ptx", nil); err == nil || !strings.Contains(err.Error(), "cuLinkAddData: CUDA_ERROR_INVALID_PTX") || !strings.Contains(err.Error(), "line 1: bad thing in ptx") {
		t.Errorf("got %v", err)
	}
	if m, err := dev.Compile("setmaxnreg ptx", cache); err != nil || m.Cached || m.Cubin != nil || m.Log != "Used 168 registers" {
		t.Errorf("text that hands registers around: %+v, %v; want the direct JIT", m, err)
	}
	if _, err := dev.Compile("bad setmaxnreg", nil); err == nil || !strings.Contains(err.Error(), "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX") || !strings.Contains(err.Error(), "line 2: bad thing") {
		t.Errorf("got %v", err)
	}
	f, err := m.Function("k")
	if err != nil || f.FunctionFacts != (FunctionFacts{MaxThreads: 384, Shared: 10, Local: 30, Registers: 40}) {
		t.Fatalf("got %+v, %v", f, err)
	}
	if err := f.AllowShared(229440); err != nil || said() != "k attribute 8 = 229440" {
		t.Errorf("AllowShared: %v, %q", err, said())
	}
	if err := f.AllowLargeClusters(); err != nil || said() != "k attribute 14 = 1" {
		t.Errorf("AllowLargeClusters: %v, %q", err, said())
	}
	if err := f.AllowShared(232449); err == nil || !strings.Contains(err.Error(), "kernel k wants 232449 bytes") {
		t.Errorf("got %v", err)
	}
	if _, err := m.Function("missing"); err == nil || !strings.Contains(err.Error(), "kernel missing") {
		t.Errorf("got %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func kernel(t testing.TB, dev *Device, name string) *Function {
	t.Helper()
	m, err := dev.Compile("good ptx", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLaunchesArriveWhole(t *testing.T) {
	dev, s, said := fakeDevice(t)
	f := kernel(t, dev, "k")
	m, err := dev.EncodeTiled(Tiled{Element: BF16, Addr: 0x1000, Dims: []uint64{4096, 8192}, Strides: []uint64{8192}, Box: []uint32{64, 128}, Swizzle: 128, Promotion: 256})
	if err != nil {
		t.Fatal(err)
	}
	if want := "type 9 rank 2 addr 0x1000 dims 4096 8192 stride 8192 box 64 128 steps 1 1 interleave 0 swizzle 3 l2 3 oob 0"; said() != want {
		t.Errorf("got  %s\nwant %s", said(), want)
	}
	args := new(Args)
	count := args.U32(17)
	args.Ptr(1 << 40)
	args.F32(0.25)
	args.Map(m)
	l := Launch{Grid: [3]uint32{132, 2, 3}, Block: [3]uint32{128, 3, 1}, Cluster: [3]uint32{2, 1, 1}, Shared: 229440, PDL: true}
	p, err := f.Prepare(l, args)
	if err != nil {
		t.Fatal(err)
	}
	args.Set(count, 18)
	args.U64(99) // after Prepare: not part of it
	runtime.GC()
	if err := p.Launch(s); err != nil {
		t.Fatal(err)
	}
	if want := "k grid 132 2 3 block 128 3 1 shared 229440 stream 0x57 cluster 2 1 1 pdl 1 args 18 1099511627776 0.25 abababababababab"; said() != want {
		t.Errorf("got  %s\nwant %s", said(), want)
	}
	if n, err := p.MaxClusters(); n != 66 || err != nil {
		t.Errorf("MaxClusters: %d, %v", n, err)
	}
	if n, err := p.MaxCTAs(); n != dev.SMs || err != nil {
		t.Errorf("MaxCTAs: %d, %v", n, err)
	}
	if n := testing.AllocsPerRun(100, func() { p.Launch(s) }); n != 0 {
		t.Errorf("%v allocations a launch", n)
	}
	p.SetWord(0, 19)
	if err := p.SetMap(3, 0x7f0040); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { p.SetWord(1, 5); p.SetMap(3, 0x7f0080); p.Queue(0x58) }); n != 0 {
		t.Errorf("%v allocations a changed launch", n)
	}
	if want := "k grid 132 2 3 block 128 3 1 shared 229440 stream 0x58 cluster 2 1 1 pdl 1 args 19 5 0.25 7f0080"; said() != want {
		t.Errorf("got  %s\nwant %s", said(), want)
	}
	if err := p.SetMap(3, 8); err == nil || err.Error() != "cuda: cuTensorMapReplaceAddress: CUDA_ERROR_INVALID_VALUE (1, other), kernel k" {
		t.Errorf("got %v", err)
	}
	fails, err := kernel(t, dev, "fails").Prepare(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fails.Launch(s); err == nil || err.Error() != "cuda: cuLaunchKernelEx: CUDA_ERROR_OTHER (719, other), kernel fails" {
		t.Errorf("got %v", err)
	}
}

func TestImpossibleLaunchesAreRefused(t *testing.T) {
	dev, _, _ := fakeDevice(t)
	f := kernel(t, dev, "k")
	one := [3]uint32{1, 1, 1}
	for want, l := range map[string]Launch{
		"must have no zero":               {Grid: [3]uint32{1, 0, 1}, Block: one},
		"not a multiple of cluster":       {Grid: [3]uint32{3, 1, 1}, Block: one, Cluster: [3]uint32{2, 1, 1}},
		"385 threads, its registers allo": {Grid: one, Block: [3]uint32{385, 1, 1}},
	} {
		if _, err := f.Prepare(l, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", l, err, want)
		}
	}
	good := Tiled{Element: BF16, Addr: 0x1000, Dims: []uint64{64, 64}, Strides: []uint64{128}, Box: []uint32{64, 64}, Swizzle: 128}
	for want, change := range map[string]func(*Tiled){
		"unknown element":     func(t *Tiled) { t.Element = 77 },
		"one stride fewer":    func(t *Tiled) { t.Strides = nil },
		"address":             func(t *Tiled) { t.Addr = 8 },
		"swizzle 16":          func(t *Tiled) { t.Swizzle = 16 },
		"L2 promotion 100":    func(t *Tiled) { t.Promotion = 100 },
		"stride 130":          func(t *Tiled) { t.Strides = []uint64{130} },
		"box 257":             func(t *Tiled) { t.Box = []uint32{64, 257} },
		"box row of 256 byte": func(t *Tiled) { t.Box = []uint32{128, 64} },
		"box row of 4 bytes":  func(t *Tiled) { t.Box = []uint32{2, 64} },
	} {
		bad := good
		change(&bad)
		if _, err := dev.EncodeTiled(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestGraphsReplayWhatWasRecorded(t *testing.T) {
	dev, s, said := fakeDevice(t)
	p, err := kernel(t, dev, "plain").Prepare(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	record := func(n int) func() error {
		return func() (err error) {
			for range n {
				err = errors.Join(err, p.Launch(s))
			}
			return err
		}
	}
	g, err := s.Capture(record(3))
	if err != nil || g.Nodes != 3 || g.Edges != 2 || g.Programmatic != 0 {
		t.Fatalf("got %+v, %v", g, err)
	}
	early, err := kernel(t, dev, "plain").Prepare(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, PDL: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Capture(func() error { return errors.Join(p.Launch(s), early.Launch(s), early.Launch(s)) })
	if err != nil || kept.Edges != 2 || kept.Programmatic != 2 {
		t.Fatalf("got %+v, %v", kept, err)
	}
	if err := errors.Join(g.Upload(s), g.Launch(s), g.Launch(s)); err != nil || said() != "replay 2 of 0xe on 0x57" {
		t.Errorf("%v, %q", err, said())
	}
	if err := g.Update(s, record(3)); err != nil {
		t.Error(err)
	}
	if err := g.Update(s, record(4)); err == nil || !strings.Contains(err.Error(), "4 nodes recorded, the graph has 3") {
		t.Errorf("got %v", err)
	}
	broken := errors.New("recorder gave up")
	if _, err := s.Capture(func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if n := testing.AllocsPerRun(100, func() { g.Launch(s) }); n != 0 {
		t.Errorf("%v allocations a replay", n)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkLaunchOverhead(b *testing.B) {
	dev, s, _ := fakeDevice(b)
	p, err := kernel(b, dev, "k").Prepare(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Launch(s); err != nil {
			b.Fatal(err)
		}
	}
}
