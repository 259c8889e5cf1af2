//go:build linux && (amd64 || arm64) && !nogpu

package cublas

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"heddle/cuda"
	"heddle/internal/dl"
)

// fake builds testdata/fake.c under both names and opens it.
func fake(t *testing.T) (*Handle, func() string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the stand-in library")
	}
	dir := t.TempDir()
	so := filepath.Join(dir, "libcublas.so.13")
	if out, err := exec.Command(gcc, "-w", "-shared", "-fPIC", "-o", so, "testdata/fake.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	if err := os.Symlink(so, filepath.Join(dir, "libcublasLt.so.13")); err != nil {
		t.Fatal(err)
	}
	lib, err := Open(Find(dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	h, err := lib.New(new(cuda.Stream), 0x5000)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := dl.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	read, err := raw.Func("fake_read")
	if err != nil {
		t.Fatal(err)
	}
	return h, func() string {
		b := make([]byte, 1<<12)
		read.Call(uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		return string(b[:bytes.IndexByte(b, 0)])
	}
}

// Row-major C = A·Bᵀ with A [5, 7], B [3, 7] is column-major Cᵀ [3, 5] = Bᵀᵀ·Aᵀ: m = 3, n = 5, k = 7, first operand B transposed with pitch 7, second A with pitch 7, C with pitch 3.
func TestBothInterfacesReceiveTheTransposedProblem(t *testing.T) {
	h, said := fake(t)
	p := Problem{M: 5, N: 3, K: 7, A: 0xa000, B: 0xb000, C: 0xc000}
	g := h.GemmEx(p)
	runtime.GC()
	if err := g.Launch(); err != nil {
		t.Fatal(err)
	}
	if want := "0xb1a5 10 3 5 7 alpha 1 A 0xb000 14 7 B 0xa000 14 7 beta 0 C 0xc000 14 3 compute 68 algo -1"; said() != want {
		t.Errorf("got  %s\nwant %s", said(), want)
	}
	plan, err := h.Plan(p, 16)
	if err != nil || plan.Algorithms != 2 {
		t.Fatalf("got %+v, %v", plan, err)
	}
	lt := plan.Gemm(p, 1)
	runtime.GC()
	if err := lt.Launch(); err != nil {
		t.Fatal(err)
	}
	if want := "0x17 0xd0 10 alpha 1 A 0xb000 7003007 B 0xa000 7005007 beta 0 C 0xc000 3005003 D 0xc000 3005003 algo a1 ws 0x5000 33554432 stream (nil)"; said() != want {
		t.Errorf("got  %s\nwant %s", said(), want)
	}
	if err := plan.Close(); err != nil {
		t.Error(err)
	}
	if v, err := h.Version(); v != 130101 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	p.N = 13
	if err := h.GemmEx(p).Launch(); err == nil || err.Error() != "cublas: cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED (15)" {
		t.Errorf("got %v", err)
	}
	if n := testing.AllocsPerRun(50, func() { g.Launch() }); n != 0 {
		t.Errorf("%v allocations a launch", n)
	}
}

// A stored [7, 5] is column-major [5, 7] with pitch 5, which is to be transposed; B stored [7, 3] is column-major [3, 7] with pitch 3, taken as it is.
func TestTransposedOperands(t *testing.T) {
	h, said := fake(t)
	for _, x := range []struct {
		ta, tb      bool
		classic, lt string
	}{
		{true, false, "0xb1a5 11 3 5 7 alpha 1 A 0xb000 14 7 B 0xa000 14 5", "0x17 0xd0 11 alpha 1 A 0xb000 7003007 B 0xa000 5007005"},
		{false, true, "0xb1a5 00 3 5 7 alpha 1 A 0xb000 14 3 B 0xa000 14 7", "0x17 0xd0 00 alpha 1 A 0xb000 3007003 B 0xa000 7005007"},
		{true, true, "0xb1a5 01 3 5 7 alpha 1 A 0xb000 14 3 B 0xa000 14 5", "0x17 0xd0 01 alpha 1 A 0xb000 3007003 B 0xa000 5007005"},
	} {
		p := Problem{M: 5, N: 3, K: 7, A: 0xa000, B: 0xb000, C: 0xc000, TransA: x.ta, TransB: x.tb}
		if err := h.GemmEx(p).Launch(); err != nil || !strings.HasPrefix(said(), x.classic+" beta") {
			t.Errorf("%v %v: %v, got %s", x.ta, x.tb, err, said())
		}
		plan, err := h.Plan(p, 16)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Gemm(p, 0).Launch(); err != nil || !strings.HasPrefix(said(), x.lt+" beta") {
			t.Errorf("%v %v: %v, got %s", x.ta, x.tb, err, said())
		}
	}
}

func TestLibrariesAreFoundBesidePython(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "lib/python3.12/site-packages/nvidia/cu13/lib")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "elsewhere")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "bin"), 0o755), os.MkdirAll(bin, 0o755), os.WriteFile(filepath.Join(root, "bin/python3"), nil, 0o600),
		os.Symlink("../bin/python3", filepath.Join(bin, "python3"))); err != nil {
		t.Fatal(err)
	}
	found := Find("", filepath.Join(bin, "python3"))
	if found[0] != "" || !slices.Contains(found, dir) {
		t.Errorf("got %q", found)
	}
	file := filepath.Join(dir, "libcublas.so.13")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := Find(file, ""); !slices.Equal(found, []string{dir}) {
		t.Errorf("hint to a file: got %q", found)
	}
	if _, err := Open([]string{t.TempDir()}); err == nil || !strings.HasPrefix(err.Error(), "cublas: no cuBLAS found; hint: ") {
		t.Errorf("got %v", err)
	}
}
