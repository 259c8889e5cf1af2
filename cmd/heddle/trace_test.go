package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
	"heddle/trace"
)

// recordedTrace is a file of one rank: two kernels, between them a phase of the host.
func recordedTrace(t *testing.T) string {
	t.Helper()
	rec := trace.NewRecorder(0)
	rec.Span(trace.Host, "load batch", trace.Phase, 110_000, 900_000)
	rec.Span(trace.Compute, "matmul", trace.Kernel, 10_000, 90_000)
	rec.Span(trace.Compute, "softmax", trace.Kernel, 1_010_000, 40_000)
	name := filepath.Join(t.TempDir(), "trace.json")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Write(f, rec); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTraceBubblesJSON(t *testing.T) {
	code, out, errs := command("trace", "bubbles", "--json", recordedTrace(t))
	var r struct {
		Devices []struct {
			Device, Kernels, Streams int
			Busy                     float64 `json:"busy_us"`
			Idle                     float64 `json:"idle_us"`
			Span                     float64 `json:"span_us"`
			Gaps                     []struct {
				Start         float64 `json:"start_us"`
				Dur           float64 `json:"dur_us"`
				Cause         string
				Before, After string
			}
		}
		Warnings []string
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.OK || errs != "" || len(r.Devices) != 1 || r.Warnings == nil {
		t.Fatalf("code %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
	d := r.Devices[0]
	if d.Device != 0 || d.Kernels != 2 || d.Streams != 1 || d.Busy != 130 || d.Idle != 910 || d.Span != 1040 || len(d.Gaps) != 1 {
		t.Errorf("got %+v", d)
	}
	if g := d.Gaps[0]; g.Start != 90 || g.Dur != 910 || g.Cause != "host" || g.Before != "matmul" || g.After != "softmax" {
		t.Errorf("got %+v", g)
	}
	if code, out, _ = command("trace", "bubbles", "--json", "--min-gap-us", "911", recordedTrace(t)); code != cli.OK || !strings.Contains(out, `"gap_count":1,"gaps":[]`) {
		t.Errorf("with a threshold: code %d, %s", code, out)
	}
}

func TestTraceBubblesWritesAPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, out, errs := command("trace", "bubbles", "--html", page, recordedTrace(t))
	b, err := os.ReadFile(page)
	if code != cli.OK || err != nil || errs != "" || !strings.Contains(out, "load batch") || !strings.Contains(string(b), "load batch") {
		t.Errorf("code %d, %v, stdout %q, stderr %q", code, err, out, errs)
	}
}

// A cut file gives a report, a warning and code 0; a file that is no timeline, or none at all, is an error of the data.
func TestTraceBubblesOfBrokenFiles(t *testing.T) {
	whole := recordedTrace(t)
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.json")
	if err := os.WriteFile(cut, b[:len(b)-10], 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command("trace", "bubbles", cut)
	if code != cli.OK || !strings.Contains(out, "Device 0") || !strings.Contains(errs, "heddle: warning: "+cut+": the file ends in the middle") {
		t.Errorf("cut: code %d, stdout %q, stderr %q", code, out, errs)
	}
	text := filepath.Join(t.TempDir(), "text.json")
	if err := os.WriteFile(text, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errs = command("trace", "bubbles", text); code != cli.Invalid || out != "" || !strings.Contains(errs, text) {
		t.Errorf("text: code %d, stdout %q, stderr %q", code, out, errs)
	}
	if code, out, errs = command("trace", "bubbles", text, whole); code != cli.OK || !strings.Contains(errs, "warning: trace: "+text) || !strings.Contains(out, "Device 0") {
		t.Errorf("one of two: code %d, stdout %q, stderr %q", code, out, errs)
	}
	if code, _, _ = command("trace", "bubbles"); code != cli.Usage {
		t.Errorf("no file: code %d", code)
	}
	if code, _, _ = command("trace", "bubbles", "--top", "-1", whole); code != cli.Usage {
		t.Errorf("negative top: code %d", code)
	}
}

func TestTraceConvertReadsBack(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []string{"chrome", "perfetto"} {
		to := filepath.Join(dir, format)
		code, out, errs := command("trace", "convert", "--json", "--format", format, "-o", to, recordedTrace(t))
		var r struct{ Events int }
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.OK || errs != "" || r.Events != 3 {
			t.Errorf("%s: code %d, %v, stdout %q, stderr %q", format, code, err, out, errs)
		}
	}
	code, out, _ := command("trace", "bubbles", filepath.Join(dir, "chrome"))
	if code != cli.OK || !strings.Contains(out, "host was in load batch") {
		t.Errorf("code %d, %s", code, out)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// On a terminal a line is drawn over and over and wiped at the end; elsewhere there is none.
func TestProgressDrawsOneLineAndWipesIt(t *testing.T) {
	var b bytes.Buffer
	draw := progress(&cli.Env{Err: &b, Terminal: true}, strings.Repeat("long/", 20))
	draw(25, 100)
	draw(100, 100)
	lines := strings.Split(b.String(), "\r")
	if len(lines) != 4 || !strings.Contains(lines[1], " 25 %") || len(lines[1]) > 80 || strings.Trim(lines[2], " ") != "" || lines[3] != "" {
		t.Errorf("got %q", lines)
	}
	if progress(&cli.Env{Err: &b}, "x") != nil {
		t.Error("progress without a terminal")
	}
}
