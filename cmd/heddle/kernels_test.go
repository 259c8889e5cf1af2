package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
)

func TestKernelsListAndPrint(t *testing.T) {
	code, out, errs := command("kernels", "list", "--json")
	var list struct{ Kernels []listedKernel }
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != cli.OK || len(list.Kernels) < 2 {
		t.Fatalf("got code %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
	for _, k := range list.Kernels {
		code, out, _ := command("kernels", "ptx", k.Name)
		if code != cli.OK || !strings.Contains(out, ".visible .entry") || !strings.Contains(out, ".target "+k.Target) {
			t.Errorf("ptx %s: code %d, %.80q", k.Name, code, out)
		}
	}
	if code, _, errs := command("kernels", "ptx", "gemmm"); code != cli.Usage || !strings.Contains(errs, "one of") {
		t.Errorf("an unknown kernel: code %d, stderr %q", code, errs)
	}
	if code, _, errs := command("kernels", "ptx", "nosuch"); code != cli.Usage || !strings.Contains(errs, "heddle kernels list") || len(errs) > 200 {
		t.Errorf("a kernel like none: code %d, stderr %q", code, errs)
	}
}

func TestKernelsEmulateTellsWhatHappened(t *testing.T) {
	code, out, errs := command("kernels", "emulate", "row-sum", "--seeds", "1", "--json")
	var got struct {
		Runs   []emulatedCase
		Failed int
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.OK || len(got.Runs) == 0 || got.Failed != 0 || got.Runs[0].Steps == 0 {
		t.Fatalf("got code %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
	code, out, errs = command("kernels", "emulate", "row-sum", "--mutants", "--json")
	var trial struct {
		Mutants []struct {
			Mutant, Line, Kind  string
			Reported            string `json:"reported_line"`
			SeedsCaught, Missed int
		}
		Total, Missed int
	}
	if err := json.Unmarshal([]byte(out), &trial); err != nil || code != cli.OK || trial.Total == 0 || trial.Missed != 0 || trial.Mutants[0].Reported == "" {
		t.Fatalf("got code %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
}

func TestKernelsConformAloneAgrees(t *testing.T) {
	record := filepath.Join(t.TempDir(), "r.jsonl")
	code, out, errs := command("kernels", "conform", "--alone", "--programs", "2", "--record", record, "--json")
	var got struct {
		Parts    []conformPart
		Differ   int
		Complete bool
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.OK || got.Differ != 0 || !got.Complete || len(got.Parts) < 8 {
		t.Fatalf("got code %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
	b, err := os.ReadFile(record)
	if err != nil || strings.Count(string(b), "\n") != 14 { // two of each of seven exact families
		t.Errorf("record %q, %v", b, err)
	}
}
