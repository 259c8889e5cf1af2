//go:build linux && (amd64 || arm64) && !nogpu

package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/cuda/cublas"
	"heddle/kernel/gemm"
)

const tinyPTX = `.visible .entry reference(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .align 64 .b8 c[128], .param .u32 m, .param .u32 n, .param .u32 k)
.maxntid 384,1,1
.reqnctapercluster 2,1,1
{ ret; }`

// standIns builds the driver and cuBLAS from C, with the kernels of this package computed on the CPU, and returns a run on them.
func standIns(t *testing.T, defines ...string) GEMM {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the stand-in libraries")
	}
	dir := t.TempDir()
	for so, src := range map[string]string{"libfake.so": "../cuda/testdata/fake.c", "libcublas.so.13": "../cuda/cublas/testdata/fake.c"} {
		args := append(defines, "-w", "-O2", "-march=native", "-ffast-math", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", filepath.Join(dir, so), src, "testdata/kernels.c", "-lm")
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	ptx := filepath.Join(dir, "gemm_128x256x64_c2_s4.ptx")
	for name, err := range map[string]error{"symlink": os.Symlink("libcublas.so.13", filepath.Join(dir, "libcublasLt.so.13")), "ptx": os.WriteFile(ptx, []byte(tinyPTX), 0o600)} {
		if err != nil {
			t.Fatal(name, err)
		}
	}
	return GEMM{PTX: ptx, Driver: filepath.Join(dir, "libfake.so"), CuBLAS: cublas.Find(dir, ""), Sizes: []int{256}, Sustained: []int{256}, Graphs: []int{256}, Pairs: 3, Rounds: 2, Launches: 4,
		Idle: time.Millisecond, Block: 30 * time.Millisecond, Progress: t.Logf, Store: func(*Result) error { return nil }}
}

func TestWholeRunOnStandIns(t *testing.T) {
	g := standIns(t)
	g.Graphs = nil
	g.Configs = []gemm.Config{gemm.Default()}
	r, err := g.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[0].Mode != "single" || r.Rows[1].Mode != "sustained" || r.Stopped != "" {
		t.Fatalf("rows %+v, stopped %q", r.Rows, r.Stopped)
	}
	if c := r.Rows[0].Checks; len(c) != 4 || c[0].Compared != 256*256 || c[0].Sampled != 200 || !(c[0].Worst < 1) || !(c[0].Norm < 0.004) {
		t.Errorf("checks %+v", c)
	}
	for _, row := range r.Rows {
		for i, s := range row.Samples {
			if want := []string{"heddle 128x256x64", "ptx reference", "cublasGemmEx", "cublasLt algorithm"}[i]; !strings.HasPrefix(s.Side, want) || len(s.Micros) != map[string]int{"single": 3, "sustained": 2}[row.Mode] {
				t.Errorf("%s: %+v", row.Mode, s)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "r.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	back, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.Summary(), back.Summary()
	if len(a) != 6 || len(b) != 6 || a[0].Speed != b[0].Speed || a[5].Speed != b[5].Speed || a[0].Best || a[3].Best {
		t.Errorf("a summary changed through its file: %+v, %+v", a, b)
	}
}

func TestGraphModeReplaysEverySide(t *testing.T) {
	g := standIns(t)
	g.Sizes, g.Sustained, g.Pairs = nil, nil, 1
	r, err := g.Run(context.Background())
	if err != nil || len(r.Rows) != 2 || r.Rows[0].Mode != "graph-rotating" || r.Rows[1].Mode != "graph-warm" || len(r.Rows[1].Samples) != 3 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A kernel that drops one of four k-blocks is found by the samples and fails the shape; nothing is timed.
func TestWrongKernelIsNotTimed(t *testing.T) {
	g := standIns(t, "-DWRONG")
	r, err := g.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 1 || !strings.Contains(r.Rows[0].Failure, "ptx reference is wrong") || len(r.Summary()) != 0 {
		t.Errorf("got %+v", r.Rows)
	}
}

func TestShapesWithTailsAreRefusedByName(t *testing.T) {
	g := standIns(t)
	g.Sizes, g.Sustained, g.Graphs = []int{264}, nil, nil
	r, err := g.Run(context.Background())
	if err != nil || len(r.Rows) != 1 || !strings.Contains(r.Rows[0].Failure, "cannot do 264x264x264; hint: M a multiple of 256") {
		t.Errorf("got %+v, %v", r, err)
	}
}

// late runs out of time after its deadline was asked for so often.
type late struct {
	context.Context
	left *int
}

func (c late) Err() error {
	if *c.left--; *c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// Wherever the time runs out, the run ends well with whole pairs, says where it stopped, and has stored all that.
func TestOutOfTimeKeepsWholePairs(t *testing.T) {
	g := standIns(t)
	g.Graphs, g.Block = nil, 5*time.Millisecond
	var stored Result
	g.Store = func(r *Result) error { stored = *r; return nil }
	pairs := map[int]int{0: 0, 3: 2, 6: 4} // single launches and sustained rounds together
	for left, want := range pairs {
		calls := left
		r, err := g.Run(late{context.Background(), &calls})
		if err != nil {
			t.Fatal(left, err)
		}
		if r.Stopped == "" || stored.Stopped != r.Stopped || len(stored.Rows) != len(r.Rows) {
			t.Errorf("%d: stopped %q, stored %q", left, r.Stopped, stored.Stopped)
		}
		got := 0
		for _, row := range r.Rows {
			got += len(row.Samples[0].Micros)
			for _, s := range row.Samples {
				if len(s.Micros) != len(row.Samples[0].Micros) {
					t.Errorf("%d: half a pair in %+v", left, row)
				}
			}
		}
		if got != want || len(r.Summary()) != 2*len(r.Rows) {
			t.Errorf("%d: %d pairs, want %d", left, got, want)
		}
	}
}
