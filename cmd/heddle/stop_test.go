package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/cli"
	"heddle/train"
)

// A run that is stopped before its first step writes nothing; one stopped between Prepare and its first step ends like any other that is stopped.
func TestStoppedBeforeTheFirstStep(t *testing.T) {
	data, out := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cli.Signaled(syscall.SIGTERM))
	var stdout, talk strings.Builder
	code := run(ctx, append([]string{"train", "--data", data, "--out", out}, small()...), strings.NewReader(""), &stdout, &talk)
	if _, err := os.Stat(out); err == nil || code != cli.Signal+15 || !strings.Contains(talk.String(), "nothing was written") {
		t.Errorf("exit %d, stat %v: %s", code, err, talk.String())
	}

	cfg := train.Default()
	cfg.Data.Paths, cfg.Data.Suffix, cfg.Steps, cfg.Schedule.Warmup = []string{data}, "", 4, 1
	cfg.Model.Layers, cfg.Model.Hidden, cfg.Model.Vocab, cfg.Seq, cfg.Samples, cfg.Model.MLP = 1, 16, 300, 32, 4, 32
	j, err := train.Prepare(cfg, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	res, err := j.Run(ctx, func(train.Event) {})
	if err != nil || !res.Stopped || res.Steps != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	text, err := json.Marshal(summary(j, res, out))
	if err != nil || !strings.Contains(string(text), `"train_loss":null`) || !strings.Contains(string(text), `"tokens_per_s":0,`) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestTheExitCodeNamesTheSignal(t *testing.T) {
	data, out := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	cmd := exec.Command(os.Args[0], append([]string{"train", "--data", data, "--out", out}, small("steps=1000000")...)...)
	cmd.Env = append(os.Environ(), "HEDDLE_AS_COMMAND=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	waitFor(t, filepath.Join(out, "metrics.jsonl"))
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.Signal+15 {
		t.Errorf("exit %d, want %d", code, cli.Signal+15)
	}
	if _, err := os.Stat(filepath.Join(out, "model", "model.safetensors")); err != nil {
		t.Error(err)
	}
}

// What is wrong with the command is said before text is read: no line about the corpus stands before it.
func TestTrainRefusesBeforeItReads(t *testing.T) {
	data, there := smallText(t, 60_000), t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"folder exists":      {[]string{"--data", data, "--out", there}, cli.Invalid, "exists already; hint: another --out"},
		"file exists":        {[]string{"--data", data, "--out", data}, cli.Invalid, "exists already; hint: another --out"},
		"larger than memory": {[]string{"--data", data, "model.hidden=1000000", "model.mlp=1000000"}, cli.Invalid, "GiB free"},
		"empty path":         {[]string{"--data", ""}, cli.Usage, "hint: leave the flag out"},
		"empty path of two":  {[]string{"--data", data + ","}, cli.Usage, "hint: leave the flag out"},
		"empty key":          {[]string{"--data", data, "=3"}, cli.Invalid, "a key is empty; hint: key=value"},
	} {
		if name == "larger than memory" && memory() == 0 {
			t.Log("this system does not say how much memory is available: not tried")
			continue
		}
		code, out, errs := command(append([]string{"train"}, append(c.args, small()[3:]...)...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) || strings.Contains(errs, "read ") {
			t.Errorf("%s: exit %d, want %d; %q, want it to say %q alone", name, code, c.code, errs, c.says)
		}
	}
}

func TestAMisspeltVariableIsRefused(t *testing.T) {
	t.Setenv("HEDDLE_MODEL_LAYER", "7")
	if code, _, errs := command("train", "--print-config"); code != cli.Invalid || !strings.Contains(errs, "$HEDDLE_MODEL_LAYER is no key; hint: HEDDLE_MODEL_LAYERS") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A disk that is full ends a run soon, with one line about it: without metrics.jsonl nobody would know what the rest did.
func TestAFullDiskEndsARunOnce(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here, which limits the size of files")
	}
	data, out := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	args := append([]string{"-c", `ulimit -f 32 && exec "$0" "$@"`, os.Args[0], "train", "--data", data, "--out", out}, small("steps=100000", "save_every=0")...)
	cmd := exec.Command(sh, args...) // no file longer than 16 KiB: the system's "file too large" stands for "no space left"
	cmd.Env = append(os.Environ(), "HEDDLE_AS_COMMAND=1")
	talk, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != cli.Failed || strings.Count(string(talk), "train: metrics: write") != 1 {
		t.Errorf("exit %d: %.1000s", code, talk)
	}
}

func TestOneFolderIsOneRuns(t *testing.T) {
	data, out := smallText(t, 60_000), filepath.Join(t.TempDir(), "runs", "run")
	codes := make([]int, 2)
	var both sync.WaitGroup
	for i := range codes {
		both.Go(func() { codes[i], _, _ = trainSmall(t, data, out) })
	}
	both.Wait()
	if codes[0]+codes[1] != cli.Invalid || codes[0] != cli.OK && codes[1] != cli.OK {
		t.Errorf("exit %v, want 0 and %d", codes, cli.Invalid)
	}
}

// A resumed run's rate, and the time left by it, are of its own steps: one step of 128 tokens in a second, 10 steps to go.
func TestRateOfAResumedRunIsItsOwn(t *testing.T) {
	var talk strings.Builder
	p := trainPrinter{env: &cli.Env{Err: &talk}, start: time.Now().Add(-time.Second), total: 50, first: 39, before: 39 * 128}
	p.step(&train.Metrics{Step: 40, Tokens: 40 * 128})
	if got := talk.String(); !strings.Contains(got, " 127 tok/s") || !strings.HasSuffix(got, " 10s left\n") { // 128 in a moment more than a second
		t.Errorf("got %q", got)
	}

	data, out := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	if code, _, errs := trainSmall(t, data, out, "save_every=3"); code != cli.OK {
		t.Fatal(errs)
	}
	before := time.Now()
	code, stdout, errs := command("--json", "train", "--resume="+out+"@3")
	var s trainSummary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != cli.OK {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, errs)
	}
	if s.Steps != 4 || s.Tokens != 4*128 || s.TokensPerS < 128/time.Since(before).Seconds() {
		t.Errorf("%+v", s)
	}
}
