package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"heddle/internal/cli"
)

// Whoever reads a pipe may close it: a result that nobody wants is no error, and a training whose talk nobody reads goes on to its end. A full disk is an
// error.
func TestClosedPipesAreNoErrors(t *testing.T) {
	text := smallText(t, 60_000)
	train := func(out string) []string { return append([]string{"train", "--data", text, "--out", out}, small()...) }
	for _, c := range []struct {
		name     string
		args     []string
		out, err bool // closed
	}{
		{"result as text", []string{"walk"}, true, false},
		{"result as JSON", []string{"walk", "--json"}, true, false},
		{"help", []string{"train", "--help"}, true, false},
		{"talk of a training", train(filepath.Join(t.TempDir(), "run")), false, true},
		{"all of a training", train(filepath.Join(t.TempDir(), "run")), true, true},
	} {
		cmd := exec.Command(os.Args[0], c.args...)
		cmd.Env = append(os.Environ(), "HEDDLE_AS_COMMAND=1")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if c.out {
			cmd.Stdout = w
		}
		if c.err {
			cmd.Stderr = w
		}
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		w.Close()
		if c.args[0] == "train" && c.err {
			if _, err := os.Stat(filepath.Join(c.args[4], "model", "model.safetensors")); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: a full disk is not tried")
	}
	defer full.Close()
	cmd := exec.Command(os.Args[0], "walk")
	cmd.Env, cmd.Stdout = append(os.Environ(), "HEDDLE_AS_COMMAND=1"), full
	if cmd.Run(); cmd.ProcessState.ExitCode() != cli.Failed {
		t.Errorf("exit %d on a full disk, want %d", cmd.ProcessState.ExitCode(), cli.Failed)
	}
}
