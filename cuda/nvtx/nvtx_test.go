//go:build linux && (amd64 || arm64) && !nogpu

package nvtx

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"heddle/internal/dl"
)

func tool(t *testing.T, defines ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the stand-in profiler")
	}
	so := filepath.Join(t.TempDir(), "libtool.so")
	if out, err := exec.Command(gcc, append(defines, "-Wall", "-Werror", "-shared", "-fPIC", "-o", so, "testdata/tool.c")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return so
}

func TestProfilerSeesNestedRanges(t *testing.T) {
	so := tool(t)
	x, err := Open(so)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	x.Push("forward")
	x.Push("layer 0")
	runtime.GC() // the table must live on
	x.Pop()
	x.Push("layer 1 µ")
	x.Pop()
	x.Pop()
	lib, err := dl.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	read, err := lib.Func("tool_read")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 256)
	read.Call(uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if got, want := strings.TrimRight(string(b), "\x00"), "(forward(layer 0)(layer 1 µ))"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWithoutProfilerNothingHappens(t *testing.T) {
	x, err := Open("")
	if x != nil || err != nil {
		t.Errorf("got %v, %v", x, err)
	}
	x.Push("a")
	x.Pop()
	(&Tool{}).Push("a") // attached, but wants no ranges
	(&Tool{}).Pop()
}

func TestUnusableProfilersAreErrors(t *testing.T) {
	if _, err := Open("libheddle-none.so"); err == nil {
		t.Error("a missing library was opened")
	}
	if _, err := Open("libc.so.6"); err == nil || !strings.Contains(err.Error(), "InitializeInjectionNvtx2") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(tool(t, "-DREFUSES")); err == nil || !strings.Contains(err.Error(), "does not attach") {
		t.Errorf("got %v", err)
	}
}
