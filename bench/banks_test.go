package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/ptx/emulate"
)

// On the emulator the loads are clean: every byte was written before, every access is aligned and inside. The stores are meant to race with each other and must show nothing else.
func TestBankKernelsAreCleanOnTheEmulator(t *testing.T) {
	for _, kind := range AccessKinds() {
		k, err := newBankKernel(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range bankPatterns(kind, 9)[:9] {
			_, err := k.measure(emulate.Emulator{SMs: 1, Seed: 1}, kind, p, 2)
			if stores := strings.HasPrefix(kind, "st"); stores && !onlyRaces(err) || !stores && err != nil {
				t.Errorf("%s, %s: %v", kind, p.name, err)
			}
		}
	}
}

// onlyRaces tells whether a report of the emulator has faults, all of them races.
func onlyRaces(err error) bool {
	if err == nil {
		return false
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for _, l := range lines[1:] {
		if !strings.Contains(l, ": race: ") {
			return false
		}
	}
	return len(lines) > 1
}

// The textbook numbers: an 8-row, 16-byte column costs 8, 4 and 2 wavefronts at pitches of 128, 64 and 32 bytes, and 1 swizzled; a warp makes four such columns.
func TestTextbookPatternsHaveTheirWavefronts(t *testing.T) {
	k, err := newBankKernel("ldmatrix")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"consecutive": 4, "pitch 128": 32, "pitch 128 swizzled": 4, "pitch 64": 16, "pitch 64 swizzled": 4, "pitch 32": 8, "pitch 32 swizzled": 4}
	for _, p := range bankPatterns("ldmatrix", 0) {
		r, err := k.measure(emulate.Emulator{SMs: 1, Seed: 1}, "ldmatrix", p, 2)
		if err != nil || r.Model != want[p.name] {
			t.Errorf("%s: %d wavefronts, want %d, %v", p.name, r.Model, want[p.name], err)
		}
		delete(want, p.name)
	}
	if len(want) > 0 {
		t.Errorf("patterns missing: %v", want)
	}
}

func TestBankKernelsAssemble(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("no ptxas here")
	}
	for _, kind := range AccessKinds() {
		k, err := newBankKernel(kind)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "banks.ptx")
		if err := os.WriteFile(file, []byte(k.module.PTX()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(ptxas, "-arch=sm_90a", "-o", os.DevNull, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
	}
}
