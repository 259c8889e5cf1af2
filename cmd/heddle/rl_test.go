package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
)

// heddle rl train prints one object with the fields that are promised, and leaves a folder; the same folder again is refused.
func TestRLTrainPrintsTheComparison(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"rl", "train", "--task", "path", "--preset", "tiny", "--json", "--out", dir, "supervise.steps=20", "reinforce.steps=3"}
	code, out, errs := command(args...)
	if code != cli.OK {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"success_supervised", "success_more_supervised", "success_grpo", "gain", "gain_low", "gain_high", "seeds", "seconds"} {
		if _, ok := v[name].(float64); !ok {
			t.Errorf("%s is %v", name, v[name])
		}
	}
	for _, name := range []string{"config.yaml", "env.json", "metrics.jsonl", "result.json"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !strings.Contains(errs, "left") || !strings.Contains(errs, "held-out success") {
		t.Errorf("progress: %s", errs)
	}
	if code, _, _ := command(args...); code != cli.Invalid {
		t.Errorf("the same folder again: code %d", code)
	}
}

// heddle rl study writes a page and a result, and says what it found.
func TestRLStudyWritesAPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "study")
	code, out, errs := command("rl", "study", "--task", "path", "--preset", "tiny", "--group", "4", "--bootstrap", "20", "--later", "1", "--train", "--train-tokens", "300", "--seeds", "1", "--out", dir, "supervise.steps=30", "task.layers=5")
	if code != cli.OK {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "Named before the run") || !strings.Contains(string(page), "learning by tokens") {
		t.Errorf("the page: %v", err)
	}
	for _, want := range []string{"Does entropy leak fate?", "primary outcome", "ceiling", "anti-oracle"} {
		if !strings.Contains(out+errs, want) {
			t.Errorf("no %q in %s%s", want, out, errs)
		}
	}
}

func TestRLRolloutsShowTokens(t *testing.T) {
	code, out, errs := command("rl", "rollouts", "--task", "add", "--preset", "tiny", "--prompts", "2", "--group", "2", "supervise.steps=5")
	if code != cli.OK || strings.Count(out, "of 2 right") != 2 {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

func TestRLRefusesBeforeItStarts(t *testing.T) {
	for _, x := range []struct {
		code int
		says string
		args []string
	}{
		{cli.Invalid, "hint: path", []string{"rl", "train", "--task", "chess", "--out", "nowhere/x"}},
		{cli.Invalid, "init=FOLDER", []string{"rl", "train", "--task", "arithmetic"}},
		{cli.Invalid, "nowhere", []string{"rl", "train", "--task", "arithmetic", "init=nowhere"}},
		{cli.Invalid, "quick, tiny or text", []string{"rl", "train", "--preset", "slow"}},
		{cli.Invalid, "importance_cap=2", []string{"rl", "train", "staleness.ahead=2"}},
		{cli.Invalid, "reinforce.grup", []string{"rl", "train", "reinforce.grup=2"}},
		{cli.Invalid, "false_alarms", []string{"rl", "study", "--false-alarms", "2"}},
		{cli.Usage, "--prompts 0", []string{"rl", "rollouts", "--prompts", "0"}},
		{cli.Invalid, "bf16 is for GPUs", []string{"rl", "train", "--dtype", "bf16"}},
	} {
		dir := t.TempDir()
		t.Chdir(dir)
		code, out, errs := command(x.args...)
		if code != x.code || !strings.Contains(out+errs, x.says) {
			t.Errorf("%v: code %d, %s%s; want %d and %q", x.args, code, out, errs, x.code, x.says)
		}
	}
}
