package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/bench/launch"
	"heddle/internal/cli"
)

// launched is a result as a measurement leaves it, with one control that went unnoticed where caught is 0.
func launched(t *testing.T, caught int) string {
	t.Helper()
	end := launch.Times{Begin: 1, Wait: 2, End: 3}
	r := launch.Result{Sizes: []launch.Size{{N: 256, Ways: []launch.Way{{Name: "handle", Stamped: &launch.Stamped{Timeline: [5]launch.Times{{}, end, end, end, end}}}},
		Controls: []launch.Control{{Name: "no kernel waits", Must: true, Bursts: 8, Caught: caught}}}}}
	path := filepath.Join(t.TempDir(), "r.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLaunchShowsAResultAgain(t *testing.T) {
	path, picture := launched(t, 8), filepath.Join(t.TempDir(), "p.svg")
	code, out, errs := command("launch", "--read", path, "--picture", picture, "--queued")
	if code != cli.OK || !strings.Contains(out, "n = 256") || !strings.Contains(out, "wrong results in 8 of 8") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	svg, err := os.ReadFile(picture)
	if err != nil || !strings.Contains(string(svg), "handle</text>") {
		t.Errorf("%v %s", err, svg)
	}
	var r launch.Result
	if code, out, _ := command("--json", "launch", "--read", path); code != cli.OK || json.Unmarshal([]byte(out), &r) != nil || r.Sizes[0].N != 256 {
		t.Errorf("code %d, %s", code, out)
	}
}

// A check that does not notice missing waits proves nothing, and says so with its own exit code.
func TestLaunchFailsWhereAControlGoesUnnoticed(t *testing.T) {
	if code, _, errs := command("launch", "--read", launched(t, 0)); code != cli.Check || !strings.Contains(errs, "went unnoticed") {
		t.Errorf("code %d, %s", code, errs)
	}
}

func TestLaunchRefusesSizesAndFiles(t *testing.T) {
	for _, c := range []struct {
		want int
		args []string
	}{{cli.Usage, []string{"launch", "--sizes", "100"}}, {cli.Usage, []string{"launch", "--sizes", "32768"}}, {cli.Invalid, []string{"launch", "--read", "absent.json"}}, {cli.Usage, []string{"launch", "bubbles"}}} {
		if code, _, errs := command(c.args...); code != c.want {
			t.Errorf("%v: code %d, want %d: %s", c.args, code, c.want, errs)
		}
	}
}
