package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/cli"
)

// TestMain lets a test run this binary as the heddle command, to send it signals.
func TestMain(m *testing.M) {
	if os.Getenv("HEDDLE_AS_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

// smallText writes about n bytes of words that a BPE can learn.
func smallText(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d of weft %d over warp %d,\nunder warp %d and back again\n", i, i*7%13, i*i%31, i*3%17)
	}
	return writeText(t, "text.txt", b.String())
}

func writeText(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// small are overrides for a model that trains in a moment.
func small(more ...string) []string {
	return append([]string{"model.layers=1", "model.hidden=32", "model.heads=4", "model.kv_heads=2", "model.head_dim=8", "model.mlp=64", "model.vocab=300",
		"seq=32", "batch=4", "steps=4", "schedule.warmup=1", "samples=8"}, more...)
}

func trainSmall(t *testing.T, data, out string, more ...string) (int, string, string) {
	t.Helper()
	return command(append([]string{"--json", "train", "--data", data, "--out", out}, small(more...)...)...)
}

func TestTrainLeavesAModelAndSaysWhatHappened(t *testing.T) {
	data, out := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	code, stdout, stderr := trainSmall(t, data, out)
	if code != cli.OK {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	var s trainSummary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if s.Steps != 4 || s.Tokens != 4*4*32 || s.ValBPB == nil || *s.ValBPB <= 0 || len(s.Collectives) == 0 || s.Memory.Peak <= s.Memory.Held || s.RunDir != out {
		t.Errorf("got %s", stdout)
	}
	for _, name := range []string{"config.yaml", "env.json", "metrics.jsonl", "loss.svg", "trace.json", "model/model.safetensors", "model/config.json", "model/tokenizer.json", "model/tokenizer_config.json"} {
		if st, err := os.Stat(filepath.Join(out, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	config, _ := os.ReadFile(filepath.Join(out, "model", "tokenizer_config.json"))
	if want := `"tokenizer_class": "PreTrainedTokenizerFast"`; !strings.Contains(string(config), want) || !strings.Contains(string(config), `"eos_token": "<|endoftext|>"`) {
		t.Errorf("tokenizer_config.json is %s, want %s and the separator as end", config, want)
	}
	if hfConfig, _ := os.ReadFile(filepath.Join(out, "model", "config.json")); strings.Contains(string(hfConfig), `"eos_token_id": null`) {
		t.Errorf("config.json has no end of text: %s", hfConfig)
	}
	timeline, _ := os.ReadFile(filepath.Join(out, "trace.json"))
	for what, want := range map[string]int{`"cat":"step"`: 2 * 4, `"name":"forward"`: 2 * 4, `"name":"backward"`: 2 * 4, `"name":"optimizer"`: 2 * 4} { // steps × ranks
		if n := strings.Count(string(timeline), what); n != want {
			t.Errorf("trace.json has %d of %s, want %d", n, what, want)
		}
	}
	metrics, _ := os.ReadFile(filepath.Join(out, "metrics.jsonl"))
	if n := strings.Count(string(metrics), "train/loss"); n != 4 {
		t.Errorf("metrics.jsonl has %d steps, want 4", n)
	}
}

func TestTrainTwiceIsBitEqual(t *testing.T) {
	data, dir := smallText(t, 60_000), t.TempDir()
	var weights [2]string
	for i, procs := range []string{"1", "2"} {
		cmd := exec.Command(os.Args[0], append([]string{"train", "--data", data, "--out", filepath.Join(dir, procs)}, small()...)...)
		cmd.Env = append(os.Environ(), "HEDDLE_AS_COMMAND=1", "GOMAXPROCS="+procs)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w, err := os.ReadFile(filepath.Join(dir, procs, "model", "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		weights[i] = string(w)
	}
	if weights[0] != weights[1] {
		t.Error("two runs with one seed have different weights")
	}
}

func TestTrainRefusesWithoutWriting(t *testing.T) {
	text := smallText(t, 60_000)
	for _, c := range []struct {
		name string
		data string
		args []string
		want string
	}{
		{"empty file", writeText(t, "a.txt", ""), nil, "empty"},
		{"binary file", writeText(t, "a.txt", strings.Repeat("\x00\x01\xff\xfe", 20000)), nil, "binary"},
		{"short file", writeText(t, "a.txt", "too short"), nil, "one batch"},
		{"corpus below one batch", text, []string{"batch=400", "seq=256"}, "one batch"},
		{"no such file", filepath.Join(t.TempDir(), "none"), nil, "no such file"},
		{"heads", text, []string{"parallel.tp=3", "parallel.fsdp=1"}, "tp may be 2 or 4"},
		{"sequence", text, []string{"seq=31"}, "use 30 or 32"},
		{"batch", text, []string{"batch=5"}, "use 4 or 6"},
		{"mlp", text, []string{"model.mlp=63"}, "use 62 or 64"},
		{"sp without tp", text, []string{"parallel.tp=1"}, "no effect"},
		{"sp without cp", text, []string{"parallel.sp=ulysses"}, "no effect"},
		{"unknown key", text, []string{"paralel.tp=2"}, `"hint":"parallel"`},
		{"not a number", text, []string{"steps=2.5"}, "whole number"},
		{"leading zero", text, []string{"steps=010"}, "whole number"},
		{"nan", text, []string{"schedule.lr=.nan"}, "want a number"},
		{"nothing", text, []string{"steps="}, "no value"},
		{"warmup", text, []string{"schedule.warmup=9"}, "warmup"},
		{"pipelines", text, []string{"parallel.pp=2"}, "pp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			code, stdout, _ := trainSmall(t, c.data, out, c.args...)
			if code != cli.Invalid || !strings.Contains(stdout, c.want) {
				t.Errorf("exit %d, want %d; %s, want it to say %q", code, cli.Invalid, stdout, c.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("the run folder was written")
			}
		})
	}
}

func TestTrainRefusesAWorldThatIsNotTheProduct(t *testing.T) {
	code, out, _ := command(append([]string{"--json", "train", "--nproc", "3", "--data", smallText(t, 60_000)}, small()...)...)
	if code != cli.Invalid || !strings.Contains(out, `"hint":"--nproc 4`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestTrainWithoutGoSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, out, _ := command("--json", "train", "steps=30")
	if code != cli.Absent || !strings.Contains(out, "--data") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestTrainStopsWhereTheLossIsNoNumber(t *testing.T) {
	code, out, _ := trainSmall(t, smallText(t, 60_000), filepath.Join(t.TempDir(), "run"), "schedule.lr=1e30", "steps=20")
	if code != cli.Failed || !strings.Contains(out, "step ") || !strings.Contains(out, "rank ") || !strings.Contains(out, "gradient of ") && !strings.Contains(out, "would send") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestConfigFileErrorsNameLineAndColumn(t *testing.T) {
	for text, want := range map[string]string{
		"steps: 3\nbathc: 4\n":             ":2:1: bathc is no key here",
		"steps: 3\nsteps: 4\n":             "stands twice",
		"parallel:\n  tp: two\n":           ":2:7: parallel.tp: \"two\"",
		"steps: 3\n---\nsteps: 4\n":        "second document",
		"schedule:\n  lr: .inf\n":          "want a number",
		"steps:\n":                         "no value",
		"base: other.yaml\n":               "no such file",
		"":                                 "is empty",
		"# nothing\n":                      "is empty",
		"base: [a]\n":                      ":1:7: base wants the path of one file",
		"base: \"\"\n":                     ":1:7: base wants the path of one file",
		"steps: !!str 4\n":                 "whole number",
		"schedule: {lr: 1_000}\n":          "want a number",
		"schedule: {lr: 0x1p-3}\n":         "want a number",
		"schedule: {lr: 1e400}\n":          "want a number",
		"schedule: {lr: 00.5}\n":           "want a number",
		strings.Repeat("#\n", 600_000):     "more than 1048576 bytes",
		"- 1\n":                            "keys and values",
		"data:\n  paths: [a, b]\nseed: -1": "whole number of 0 or more",
	} {
		code, out, _ := command("--json", "train", writeText(t, "c.yaml", text))
		var e struct{ Error, Hint string }
		if err := json.Unmarshal([]byte(out), &e); err != nil || code != cli.Invalid || !strings.Contains(e.Error, want) {
			t.Errorf("%q: exit %d, %q, want %q", text, code, e.Error, want)
		}
		if strings.Contains(text, "bathc") && (e.Hint != "batch" || strings.Contains(e.Error, "hint")) { // a library's hint stands apart
			t.Errorf("hint %q, want batch alone: %s", e.Hint, out)
		}
	}
}

func TestPrintConfigNamesOrigins(t *testing.T) {
	t.Setenv("HEDDLE_BATCH", "16")
	file := writeText(t, "c.yaml", "steps: 70\nbatch: 32\n")
	code, out, _ := command("train", file, "--print-config", "seed=9")
	for _, want := range []string{"steps: 70 # " + file + ":1:1", "batch: 16 # $HEDDLE_BATCH", "seed: 9 # command line", "seq: 256 # default"} {
		if code != cli.OK || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, out)
		}
	}
}

func TestOverridesMayStandAnywhere(t *testing.T) {
	for _, c := range [][2]string{
		{"train f.yaml --out x seed=1", "train f.yaml seed=1 --out x"},
		{"train --json seed=1 --data a=b k=2", "train seed=1 k=2 --json --data a=b"},
		{"train", "train"},
		{"--json train --out x seed=1 --resume k=2 --allow a", "--json train seed=1 k=2 --out x --resume=. --allow a"},
		{"--color never train f.yaml --dry-run k=2", "--color never train f.yaml k=2 --dry-run"},
		{"tokenizer train --out x k=2", "tokenizer train --out x k=2"},
		{"tile a --b c=d", "tile a --b c=d"},
	} {
		if got := strings.Join(overridesFirst(strings.Fields(c[0])), " "); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
	}
}

func TestFirstInterruptFinishesTheStepAndSaves(t *testing.T) {
	data, out := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	cmd := exec.Command(os.Args[0], append([]string{"--json", "train", "--data", data, "--out", out}, small("steps=1000000")...)...)
	cmd.Env = append(os.Environ(), "HEDDLE_AS_COMMAND=1")
	var stdout strings.Builder
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	waitFor(t, filepath.Join(out, "metrics.jsonl"))
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.Signal+2 {
		t.Errorf("exit %d, want %d: %s", code, cli.Signal+2, stdout.String())
	}
	if st, err := os.Stat(filepath.Join(out, "model", "model.safetensors")); err != nil || st.Size() == 0 {
		t.Errorf("weights: %v", err)
	}
}

// waitFor waits until a file has content.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if st, err := os.Stat(path); err == nil && st.Size() > 0 {
			return
		}
	}
	t.Fatalf("%s did not appear", path)
}

func TestDefaultsFitAShortRun(t *testing.T) {
	for _, c := range []struct {
		args            []string
		warmup, samples int
	}{
		{nil, 20, 64},
		{[]string{"steps=10"}, 1, 64},
		{[]string{"seq=64"}, 20, 32},
		{[]string{"steps=30", "seq=128"}, 20, 64},
	} {
		cfg, _, err := (&trainCmd{Args: c.args}).config()
		if err != nil || cfg.Schedule.Warmup != c.warmup || cfg.Samples != c.samples {
			t.Errorf("%v: warmup %d samples %d, want %d and %d (%v)", c.args, cfg.Schedule.Warmup, cfg.Samples, c.warmup, c.samples, err)
		}
	}
	for _, asked := range []string{"schedule.warmup=20", "samples=300"} { // what was asked for is refused, not bent
		if _, _, err := (&trainCmd{Args: []string{asked, "steps=10"}}).config(); err == nil {
			t.Errorf("%s is taken", asked)
		}
	}
}

func TestErrorsNameTheNextCommand(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"tile", "check"}, cli.Usage, "heddle tile check --help"},
		{[]string{"frobnicate"}, cli.Usage, "heddle --help"},
		{[]string{"train", missing}, cli.Invalid, "overrides are key=value"},
		{[]string{"train", "--resume=" + missing}, cli.Invalid, "is no run's folder"},
	} {
		if code, _, stderr := command(c.args...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d, %s; want %d and %q", c.args, code, stderr, c.code, c.says)
		}
	}
}
