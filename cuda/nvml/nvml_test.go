//go:build linux && (amd64 || arm64) && !nogpu

package nvml

import (
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func fake(t *testing.T) *Library {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here to build the stand-in library")
	}
	so := filepath.Join(t.TempDir(), "libnvidia-ml.so")
	if out, err := exec.Command(gcc, "-w", "-shared", "-fPIC", "-o", so, "testdata/fake.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	lib, err := Open(so)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func TestStateReadsEveryField(t *testing.T) {
	lib := fake(t)
	g, err := lib.ByPCI("0000:01:00.0")
	if err != nil {
		t.Fatal(err)
	}
	want := State{SMClockMHz: 1980, MemoryClockMHz: 3201, PowerMilliwatt: 499000, LimitMilliwatt: 700000, Celsius: 41, Reasons: 4}
	if s := g.State(); s != want || g.MaxSMClockMHz() != 2001 {
		t.Errorf("got %+v", s)
	}
	if v, err := lib.DriverVersion(); v != "580.1" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
	if _, err := lib.ByPCI("nowhere"); err == nil {
		t.Error("an unknown device was found")
	}
}

// The counter steps every 20 ms and is read every 2 ms or later, so each end of the window is known to a read: over 20 steps the mean is off by a few per cent at most on a busy machine, where taking
// the counter at the window's own ends would be off by a step, 5 %, on a quiet one.
func TestMeanPowerIsTakenFromStepToStep(t *testing.T) {
	g, err := fake(t).ByPCI("0000:01:00.0")
	if err != nil {
		t.Fatal(err)
	}
	best := math.Inf(1)
	for range 3 { // a busy machine delays reads: the best of three
		m := g.Watch()
		time.Sleep(430 * time.Millisecond)
		r := m.Stop()
		if r.Steps < 5 || len(r.SMClocks) < 3 || r.SMClocks[0] != 1980 || r.Reasons != 4 || r.Celsius != 41 {
			t.Fatalf("got %+v", r)
		}
		best = min(best, math.Abs(r.Watts-500))
	}
	if best > 25 {
		t.Errorf("mean power off by %.1f W of 500", best)
	}
}

func TestWindowWithoutStepsHasNoPower(t *testing.T) {
	g, err := fake(t).ByPCI("0000:01:00.0")
	if err != nil {
		t.Fatal(err)
	}
	m := g.Watch()
	if r := m.Stop(); r.Watts != 0 || math.IsNaN(r.Watts) {
		t.Errorf("got %+v", r)
	}
}

func TestMissingLibraryIsAnError(t *testing.T) {
	if _, err := Open("libheddle-no-such-nvml.so"); err == nil {
		t.Error("opened a library that does not exist")
	}
}
