//go:build linux && (amd64 || arm64) && !nogpu

package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"heddle/cuda"
	"heddle/kernel/gemm"
	"heddle/trace"
)

// driver builds the stand-in once.
var driver = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "heddle-stand-in")
	if err != nil {
		return "", err
	}
	so := filepath.Join(dir, "libfake.so")
	args := []string{"-w", "-O2", "-ffast-math", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", so, "../../cuda/testdata/fake.c", "../testdata/kernels.c", "-lm"}
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return so, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if so, err := driver(); err == nil {
		os.RemoveAll(filepath.Dir(so))
	}
	os.Exit(code)
}

// standIn is a lab on a driver built from C, whose kernels are computed on the CPU at once; it replays no graph and takes no stamps.
func standIn(t *testing.T) Lab {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc here to build the stand-in driver")
	}
	so, err := driver()
	if err != nil {
		t.Fatal(err)
	}
	return Lab{Driver: so, Rounds: 2, Chains: 3, Sizes: []int{64}, Only: []string{"naive", "handle", "handle-pdl"}, Progress: t.Logf, Store: func(*Result) error { return nil }}
}

// All plain ways give the same bits as the reference, and every one is timed.
func TestWaysAgreeOnTheStandIn(t *testing.T) {
	s, err := standIn(t).open()
	if err != nil {
		t.Fatal(err)
	}
	c, err := gemm.ParseConfig("64x64x64-w1-c1x1-s4-g0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.allocate(64)
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.newChecker(m, c)
	if err != nil {
		t.Fatal(err)
	}
	size := &Size{N: 64, Chains: 3, Ways: []Way{{Name: "naive"}, {Name: "handle"}, {Name: "handle-pdl"}}}
	if err := s.times(context.Background(), size, c, m, k); err != nil {
		t.Fatal(err)
	}
	for _, w := range size.Ways {
		if w.Calls != 12 || w.Wrong != 0 || w.Host.Count != 2 || w.Live.Count != 2 || w.Queued.Count != 2 {
			t.Errorf("%+v", w)
		}
	}
	// A chain that leaves out its last product leaves poison, and the check says how many words.
	b, err := s.build(c, how{})
	if err != nil {
		t.Fatal(err)
	}
	u := &burst{Variant: Variant{Name: "short"}, s: s, b: b, m: m, chains: 0}
	if wrong, err := k.wrong(u); err != nil || wrong != len(m.chains)*64*64/2 {
		t.Errorf("poison alone: %d words wrong, %v", wrong, err)
	}
}

// One launch through a handle is one driver call with what the handle was given, and costs no allocation through the whole stack.
func TestHandleLaunchesThroughTheDriverWithoutAllocation(t *testing.T) {
	s, err := standIn(t).open()
	if err != nil {
		t.Fatal(err)
	}
	c, err := gemm.ParseConfig("64x64x64-w1-c1x1-s4-g0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.allocate(64)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.build(c, how{pdl: true})
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	launch := func() {
		i++
		if err := b.launch(s.stream, m, m.of(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range m.chains { // every place is met once
		launch()
	}
	if n := testing.AllocsPerRun(50, launch); n != 0 {
		t.Errorf("%v allocations a chain of four launches", n)
	}
}

func TestHostSidesOnTheStandIn(t *testing.T) {
	l := standIn(t)
	r, err := l.Host(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Host) != 11 {
		t.Fatalf("%d sides", len(r.Host))
	}
	for _, h := range r.Host {
		if ours := !strings.HasPrefix(h.Name, "naive"); ours != (h.Allocs == 0) || h.Micros.Count != 2 {
			t.Errorf("%+v", h)
		}
	}
}

// The C program speaks the lab's protocol.
func TestHostProgramInC(t *testing.T) {
	l := standIn(t)
	program := filepath.Join(t.TempDir(), "host")
	if out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", program, "testdata/host.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	r, err := l.Host(context.Background(), program)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Host); n != 13 || r.Host[11].Name != "c" || r.Host[11].Micros.Count != 2 || !(r.Host[12].Micros.Median > 0) {
		t.Errorf("%+v", r.Host)
	}
}

func TestNoDriverIsAbsent(t *testing.T) {
	_, err := Lab{Driver: "libheddle-none.so"}.Run(context.Background())
	if _, ok := err.(*cuda.Absent); !ok {
		t.Errorf("got %v", err)
	}
}

// Without libcupti every bubble is recorded by events, and the files hold the kernels with the calls that launched them.
func TestBubblesAreRecordedWithoutCUPTI(t *testing.T) {
	dir := t.TempDir()
	l := standIn(t)
	all, err := l.Bubbles(dir, []string{"libheddle-none.so"})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		f, err := os.Open(filepath.Join(dir, b.File))
		if err != nil {
			t.Fatal(err)
		}
		events, err := trace.Read(f)
		f.Close()
		kernels := map[int64]bool{}
		launches := 0
		for _, e := range events {
			switch e.Cat {
			case trace.Kernel:
				kernels[e.Args[0].Value] = true
			case trace.Launch:
				if e.Name == "cuLaunchKernelEx" {
					launches++
				}
			}
		}
		if err != nil || len(kernels) < b.Count || launches != len(kernels) || b.How != "events" {
			t.Errorf("%s: %d kernels, %d calls, %v, by %s", b.Name, len(kernels), launches, err, b.How)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "bubbles.json")); err != nil {
		t.Error(err)
	}
}
