//go:build linux && (amd64 || arm64) && !nogpu

package cupti

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/trace"
)

func fake(t *testing.T, defines ...string) (*Library, error) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the stand-in libcupti")
	}
	so := filepath.Join(t.TempDir(), "libcupti.so.13")
	if out, err := exec.Command(gcc, append(defines, "-w", "-shared", "-fPIC", "-pthread", "-o", so, "testdata/fake.c")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return Open([]string{"libheddle-none.so", so})
}

// now is the stand-in's first moment.
const now = 1700000000000000000

// Records come through buffers that a foreign thread hands back, twice with one library, and every field lands where it belongs.
func TestRecordsBecomeEvents(t *testing.T) {
	l, err := fake(t)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := l.Start()
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.Stop(3)
		if err != nil {
			t.Fatal(err)
		}
		if f.Dropped != 7 || f.Unknown != 2 {
			t.Errorf("%d dropped, %d unknown, want 7 and 2", f.Dropped, f.Unknown)
		}
		want := []trace.Event{
			{Name: "cuLaunchKernelEx", Cat: trace.Launch, Rank: 3, Track: "thread 1234", Start: now + 100, Dur: 200, Args: []trace.Arg{trace.Int("correlation", 77)}},
			{Name: "gemm", Cat: trace.Kernel, Rank: 3, Track: "stream 13", Start: now + 500, Dur: 1000, Args: []trace.Arg{trace.Int("correlation", 77), trace.Int("stream", 13),
				trace.Text("grid", "132×1×1"), trace.Text("block", "384×1×1"), trace.Int("shared", 1008), trace.Int("registers", 168), trace.Int("graph node", 3<<32|2)}},
			{Name: "memcpy HtoD", Cat: trace.Copy, Rank: 3, Track: "stream 13", Start: now + 2000, Dur: 100, Args: []trace.Arg{trace.Int("correlation", 78), trace.Int("bytes", 4096)}},
			{Name: "memset", Cat: trace.Fill, Rank: 3, Track: "stream 14", Start: now + 2200, Dur: 50, Args: []trace.Arg{trace.Int("correlation", 79), trace.Int("bytes", 64)}},
			{Name: "cudaLaunchKernel", Cat: trace.Launch, Rank: 3, Track: "thread 1235", Start: now, Dur: 10, Args: []trace.Arg{trace.Int("correlation", 80), trace.Int("status", 9)}},
			{Name: "call 5000 of domain 2", Cat: trace.Launch, Rank: 3, Track: "thread 1235", Start: now, Dur: 10, Args: []trace.Arg{trace.Int("correlation", 81)}},
			{Name: "Stream Wait Event", Cat: trace.Wait, Rank: 3, Track: "stream 14", Start: now + 1, Dur: 1, Args: []trace.Arg{trace.Int("correlation", 82)}},
			{Name: "flush of records", Cat: "overhead", Rank: 3, Track: "cupti", Start: now + 5, Dur: 20},
		}
		if !slices.EqualFunc(f.Events, want, func(a, b trace.Event) bool {
			return a.Name == b.Name && a.Cat == b.Cat && a.Rank == b.Rank && a.Track == b.Track && a.Start == b.Start && a.Dur == b.Dur && slices.Equal(a.Args, b.Args)
		}) {
			t.Errorf("got\n%+v\nwant\n%+v", f.Events, want)
		}
		var file bytes.Buffer
		if err := trace.WriteEvents(&file, f.Events); err != nil {
			t.Fatal(err)
		}
		back, err := trace.Read(&file)
		if err != nil || len(back) != len(want) {
			t.Errorf("%d events came back, %v", len(back), err)
		}
	}
}

func TestCutBufferIsReadAsFarAsItGoes(t *testing.T) {
	l, err := fake(t, "-DCUT")
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Start()
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Stop(0)
	if err != nil || len(f.Events) != 8 || f.Unknown != 2 {
		t.Errorf("%d events, %d unknown, %v", len(f.Events), f.Unknown, err)
	}
}

func TestUnusableLibrariesAreErrorsWithAHint(t *testing.T) {
	if _, err := fake(t, "-DOLD"); err == nil || !strings.Contains(err.Error(), "version 17, want 18") || !strings.Contains(err.Error(), "hint:") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(Find("/nowhere", "")); err == nil || !strings.Contains(err.Error(), "no usable libcupti") {
		t.Errorf("got %v", err)
	}
	if got := Find("/x", ""); got[0] != "/x/libcupti.so.13" {
		t.Errorf("candidates %v", got)
	}
}
