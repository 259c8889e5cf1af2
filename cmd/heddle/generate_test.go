package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
	"heddle/sample/text"
)

func generated(t *testing.T, args ...string) text.Result {
	t.Helper()
	code, stdout, stderr := command(append([]string{"--json", "generate"}, args...)...)
	if code != cli.OK {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	var r text.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return r
}

// A run is asked at its end, at its last step and as the folder it leaves, and says the same; an earlier step and what it has
// not saved are another matter.
func TestGenerateFromARun(t *testing.T) {
	data, run := smallText(t, 60_000), filepath.Join(t.TempDir(), "run")
	if code, stdout, stderr := trainSmall(t, data, run, "save_every=2"); code != cli.OK {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	flags := []string{"func main", "--max-tokens", "12", "--temperature", "0.9", "--top", "2", "-n", "2"}
	want := generated(t, append([]string{run}, flags...)...)
	if len(want.Answers) != 2 || want.Bill.Sampled < 2 || want.Answers[0].Ask != "func main" || len(want.Answers[0].IDs) == 0 {
		t.Fatalf("answers %+v", want)
	}
	for _, a := range want.Answers {
		for _, tok := range a.Tokens {
			if !(tok.LogProb < 0) || !(tok.Entropy > 0) || len(tok.Top) != 2 || tok.Top[0].LogProb < tok.Top[1].LogProb {
				t.Fatalf("token %+v", tok)
			}
		}
	}
	saved, _ := filepath.Glob(filepath.Join(run, "checkpoints", "step-*"))
	last := run + "@" + strings.TrimLeft(strings.TrimPrefix(filepath.Base(saved[len(saved)-1]), "step-"), "0")
	for _, other := range []string{last, filepath.Join(run, "model")} {
		got := generated(t, append([]string{other}, flags...)...)
		for i, a := range got.Answers {
			if b := want.Answers[i]; a.Text != b.Text || a.Tokens[0].LogProb != b.Tokens[0].LogProb || math.IsNaN(a.Tokens[0].LogProb) {
				t.Errorf("%s says %q, %s %q", other, a.Text, run, b.Text)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(run, "model")); err != nil { // as if it had been stopped
		t.Fatal(err)
	}
	if got := generated(t, append([]string{run}, flags...)...); got.Answers[1].Text != want.Answers[1].Text {
		t.Errorf("the newest checkpoint says %q, want %q", got.Answers[1].Text, want.Answers[1].Text)
	}
	early := generated(t, append([]string{run + "@2"}, flags...)...)
	if early.Answers[0].Tokens[0].LogProb == want.Answers[0].Tokens[0].LogProb {
		t.Error("step 2 has the last step's probabilities")
	}
	// One prompt streams: what is printed is the answer's text.
	one := generated(t, run, "func main", "--max-tokens", "12", "--temperature", "0")
	code, stdout, _ := command("generate", run, "func main", "--max-tokens", "12", "--temperature", "0")
	if code != cli.OK || stdout != one.Answers[0].Text+"\n" {
		t.Errorf("exit %d, printed %q, want %q", code, stdout, one.Answers[0].Text)
	}
}

func TestGenerateRefusals(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.txt")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{dir, "a", "--prompts", empty}, cli.Usage, "want one of them"},
		{[]string{dir, "a", "--system", "b"}, cli.Usage, "without --chat"},
		{[]string{dir, "a", "-n", "0"}, cli.Usage, "want 1 or more"},
		{[]string{dir, "a", "--temperature", "0", "--top-k", "3"}, cli.Usage, "no effect"},
		{[]string{dir, "a", "--temperature", "0", "-n", "3"}, cli.Usage, "are the same"},
		{[]string{dir, "--chat"}, cli.Usage, "wants a prompt"},
		{[]string{dir, "--prompts", empty}, cli.Invalid, "no prompt"},
		{[]string{dir, "--prompts", filepath.Join(dir, "none")}, cli.Invalid, "no such file"},
		{[]string{filepath.Join(dir, "none"), "a"}, cli.Invalid, "no such file"},
		{[]string{dir, "a"}, cli.Invalid, "config.json"},
	} {
		code, stdout, _ := command(append([]string{"--json", "generate"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout, c.says) {
			t.Errorf("%q: exit %d, want %d; %s, want it to say %q", c.args, code, c.code, stdout, c.says)
		}
	}
}
