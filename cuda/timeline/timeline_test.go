//go:build linux && (amd64 || arm64) && !nogpu

package timeline

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/cuda"
	"heddle/trace"
)

// standIns builds the stand-ins of driver and libcupti.
func standIns(t *testing.T) (*cuda.Device, string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the stand-in libraries")
	}
	dir := t.TempDir()
	for so, src := range map[string]string{"libfake.so": "../testdata/fake.c", "libcupti.so.13": "../cupti/testdata/fake.c"} {
		if out, err := exec.Command(gcc, "-w", "-shared", "-fPIC", "-pthread", "-Wl,-Bsymbolic", "-o", filepath.Join(dir, so), src).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	d, err := cuda.Open(filepath.Join(dir, "libfake.so"))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Bind(); err != nil {
		t.Fatal(err)
	}
	return dev, filepath.Join(dir, "libcupti.so.13")
}

// record runs one range with two launches and a wait in it.
func record(t *testing.T, dev *cuda.Device, candidates []string) (events map[string]int, rows map[trace.Track]bool, r *Recorder) {
	t.Helper()
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	r = Open(dev, 2, candidates)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	launched := 0
	err = r.Range("forward", func() error {
		for range 2 {
			if err := r.Launch(s, "gemm", func() error { launched++; return nil }); err != nil {
				return err
			}
		}
		return r.Call("cuStreamSynchronize", s.Synchronize)
	})
	if err != nil || launched != 2 {
		t.Fatal(launched, err)
	}
	all, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	events, rows = map[string]int{}, map[trace.Track]bool{}
	for _, e := range all {
		events[e.Cat+" "+e.Name]++
		if e.Rank != 2 || e.Dur < 0 {
			t.Errorf("%+v", e)
		}
		if e.Cat == trace.Launch || e.Cat == trace.Phase {
			rows[e.Track] = true
		}
	}
	return events, rows, r
}

func TestEventsStandInForCUPTI(t *testing.T) {
	dev, _ := standIns(t)
	events, rows, r := record(t, dev, []string{"libheddle-none.so"})
	if events["kernel gemm"] != 2 || events["cuda_runtime cuLaunchKernelEx"] != 2 || events["cuda_runtime cuStreamSynchronize"] != 1 || events["user_annotation forward"] != 1 || len(events) != 4 {
		t.Errorf("%v", events)
	}
	if len(rows) != 1 || r.Whole() || !strings.HasPrefix(r.How, "events: cupti: no usable libcupti") {
		t.Errorf("calls and ranges lie on %v; %s", rows, r.How)
	}
}

func TestCUPTIRecordsAndRangesAreJoined(t *testing.T) {
	dev, so := standIns(t)
	events, _, r := record(t, dev, []string{so})
	if events["kernel gemm"] != 1 || events["user_annotation forward"] != 1 || events["cuda_runtime cuStreamSynchronize"] != 0 || !r.Whole() || r.How != "CUPTI 130001" {
		t.Errorf("%v, %s", events, r.How)
	}
}
