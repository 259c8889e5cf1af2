package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"heddle/internal/cli"
)

// Each script stands for a measuring process; a hung one is killed with its children and the reason is told.
func TestChildrenAreWatched(t *testing.T) {
	for name, c := range map[string]struct {
		script       string
		limit, stall time.Duration
		code         int
		out, err     string
	}{
		"ends well":     {"echo result; echo talk >&2", time.Minute, time.Minute, cli.OK, "result\n", ""},
		"ends badly":    {"exit 4", time.Minute, time.Minute, cli.Absent, "", ""},
		"hangs":         {"echo begun; sleep 60 & sleep 60", time.Minute, 300 * time.Millisecond, cli.Failed, "begun\n", "silent for 300ms"},
		"never ends":    {"while :; do echo; sleep 0.1; done >&2", 500 * time.Millisecond, time.Minute, cli.Failed, "", "ran past its limit of 500ms"},
		"talks on time": {"for i in 1 2 3 4; do sleep 0.2; echo $i; done", time.Minute, 5 * time.Second, cli.OK, "1\n2\n3\n4\n", ""},
		"dies":          {"kill -9 $$", time.Minute, time.Minute, cli.Failed, "", "the child process died: signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			begin := time.Now()
			err := watch(context.Background(), &cli.Env{In: strings.NewReader(""), Out: &out, Err: &errs}, c.limit, c.stall, "/bin/sh", "-c", c.script)
			if cli.Code(err) != c.code || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || out.String() != c.out && c.code == cli.OK {
				t.Errorf("code %d, %v, stdout %q", cli.Code(err), err, out.String())
			}
			if d := time.Since(begin); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestGemmBenchWithoutGPUOrKernel(t *testing.T) {
	t.Setenv(childMark, "1") // in this process
	if code, _, errs := command("gemm", "bench", "--ptx-only"); code != cli.Usage || !strings.Contains(errs, "--ptx FILE") {
		t.Errorf("no kernel: %d, %q", code, errs)
	}
	if code, _, errs := command("gemm", "bench", "--summary", "no-such-file"); code != cli.Invalid {
		t.Errorf("no summary: %d, %q", code, errs)
	}
	code, out, _ := command("doctor", "--json")
	if code != cli.OK || !strings.Contains(out, `"name":"driver"`) || !strings.Contains(out, `"name":"cpu"`) {
		t.Errorf("doctor: %d, %s", code, out)
	}
}
