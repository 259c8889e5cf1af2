package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/cli"
)

// kill starts a training run as a process and kills it once its checkpoints hold one of at least the given step.
func kill(t *testing.T, step int, args ...string) {
	t.Helper()
	out := args[len(args)-1] // the run's folder comes last
	cmd := exec.Command(os.Args[0], append(args[:len(args)-1:len(args)-1], "--out", out)...)
	cmd.Env = append(os.Environ(), "HEDDLE_AS_COMMAND=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(out, "checkpoints", fmt.Sprintf("step-%08d", step))); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the run ended before it was killed: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatal("no checkpoint within a minute")
		}
	}
	cmd.Process.Kill()
	<-ended
}

// A run killed with SIGKILL goes on with --resume: the model it leaves is the uninterrupted run's, byte for byte, and metrics.jsonl has every step once.
func TestKilledRunGoesOn(t *testing.T) {
	data, dir := smallText(t, 60_000), t.TempDir()
	args := append([]string{"train", "--data", data}, small("steps=60", "save_every=7", "keep=2")...)
	whole, cut := filepath.Join(dir, "whole"), filepath.Join(dir, "cut")
	if code, stdout, stderr := command(append(args, "--out", whole)...); code != cli.OK {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	kill(t, 14, append(args[:len(args):len(args)], cut)...)
	metrics := filepath.Join(cut, "metrics.jsonl")
	f, err := os.OpenFile(metrics, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"step":59,"tokens":1}` + "\n" + `{"step":60,"tok`) // what a kill may leave
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command("--json", "train", "--resume="+cut)
	if code != cli.OK || !strings.Contains(stderr, "going on after step") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	var s trainSummary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || s.Steps != 60 || s.RunDir != cut {
		t.Errorf("%v: %s", err, stdout)
	}
	for _, name := range []string{"model/model.safetensors", "model/config.json", "model/tokenizer.json"} {
		a, errA := os.ReadFile(filepath.Join(whole, name))
		b, errB := os.ReadFile(filepath.Join(cut, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v %v", name, errA, errB)
		}
	}
	text, _ := os.ReadFile(metrics)
	next := 1
	for line := range strings.Lines(string(text)) {
		var l struct {
			Step int      `json:"step"`
			Loss *float64 `json:"train/loss"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Loss == nil {
			continue
		}
		if l.Step != next {
			t.Fatalf("metrics.jsonl: step %d where %d was due", l.Step, next)
		}
		next++
	}
	if next != 61 {
		t.Errorf("metrics.jsonl ends before step %d", next)
	}
	left, _ := filepath.Glob(filepath.Join(cut, "checkpoints", "*"))
	if len(left) != 2 {
		t.Errorf("keep=2 left %v", left)
	}
}

// A finished, changed, damaged or missing run is refused with the reason; an allowed change goes on.
func TestResumeIsRefusedWithTheReason(t *testing.T) {
	data, run := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	if code, stdout, stderr := trainSmall(t, data, run, "save_every=2"); code != cli.OK {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"finished", []string{"--resume=" + run}, cli.Invalid, "nothing is left to do"},
		{"changed", []string{"--resume=" + run + "@2", "seed=9", "steps=6"}, cli.Invalid, "--allow=schedule,seed"},
		{"one of two allowed", []string{"--resume=" + run + "@2", "seed=9", "steps=6", "--allow=schedule"}, cli.Invalid, "--allow=seed"},
		{"allowing nothing", []string{"--resume=" + run + "@2", "--allow=sead"}, cli.Invalid, `no field \"sead\"`},
		{"no such step", []string{"--resume=" + run + "@3"}, cli.Invalid, "step-00000003"},
		{"no step", []string{"--resume=" + run + "@x"}, cli.Usage, "no step"},
		{"no such run", []string{"--resume=" + run + "x"}, cli.Invalid, "no such file"},
		{"out", []string{"--resume=" + run, "--out", run}, cli.Usage, "no effect"},
		{"allow alone", []string{"--data", data, "--allow=seed"}, cli.Usage, "no effect without --resume"},
	} {
		code, stdout, _ := command(append([]string{"--json", "train"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.says) {
			t.Errorf("%s: exit %d, want %d; %s, want it to say %q", c.name, code, c.code, stdout, c.says)
		}
	}
	files, _ := filepath.Glob(filepath.Join(run, "checkpoints", "step-00000004", "rank-*"))
	if len(files) == 0 {
		t.Fatal("no rank file")
	}
	if err := os.Truncate(files[0], 100); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command("--json", "train", "--resume="+run, "steps=6", "--allow=schedule")
	if code != cli.OK || !strings.Contains(stderr, "passed over") || !strings.Contains(stderr, filepath.Base(files[0])) || !strings.Contains(stderr, "going on after step 2") {
		t.Errorf("damaged: exit %d: %s%s", code, stdout, stderr)
	}
}

// Alone, --resume goes on with the newest run under runs/, wherever it stands among the words.
func TestBareResumeTakesTheNewestRun(t *testing.T) {
	data := smallText(t, 60_000)
	t.Chdir(t.TempDir())
	for _, run := range []string{"runs/20260101-000000", "runs/20260102-000000"} {
		if err := os.MkdirAll("runs", 0o755); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := trainSmall(t, data, run); code != cli.OK {
			t.Fatalf("exit %d: %s%s", code, stdout, stderr)
		}
	}
	code, stdout, stderr := command("--json", "train", "--resume", "steps=5", "--allow", "schedule")
	if code != cli.OK || !strings.Contains(stderr, "going on after step 4 of runs/20260102-000000") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	t.Chdir(t.TempDir())
	if code, stdout, _ := command("--json", "train", "--resume"); code != cli.Invalid || !strings.Contains(stdout, "no run under runs/") {
		t.Errorf("without runs: exit %d: %s", code, stdout)
	}
}
