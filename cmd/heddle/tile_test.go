package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heddle/internal/cli"
)

var update = flag.Bool("update", false, "write the documented pictures anew")

// words splits a documented command line: double quotes hold words together.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// documented lists the commands of docs/tile.md: indented lines, and those in backquotes.
func documented(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/tile.md")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, m := range regexp.MustCompile("(?m)(?:^    |`)heddle (tile [^`\n]*)").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(m[1], "FILE") {
			out = append(out, words(m[1]))
		}
	}
	return out
}

func TestDocumentedTileCommandsRunAndDrawTheirPictures(t *testing.T) {
	all := documented(t)
	pictures := 0
	for _, args := range all {
		var want []byte
		for i, a := range args {
			if a != "--svg" {
				continue
			}
			path := filepath.Join("../..", args[i+1])
			pictures++
			if *update {
				args[i+1] = path
				continue
			}
			args[i+1] = "-"
			var err error
			if want, err = os.ReadFile(path); err != nil {
				t.Error(err)
			}
		}
		code, out, errs := command(args...)
		if code != cli.OK || out == "" {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
		if want != nil && out != string(want) {
			t.Errorf("%v draws another picture than docs has; run the test with -update and look at it", args)
		}
	}
	if len(all) < 10 || pictures != 6 {
		t.Errorf("docs/tile.md has %d commands and %d pictures, want at least 10 and 6", len(all), pictures)
	}
}

func TestTileHelpOpensWithExamplesThatRun(t *testing.T) {
	dir := t.TempDir()
	for _, verb := range []string{"layout", "swizzle", "schedule", "depth", "epilogue"} {
		code, help, _ := command("tile", verb, "--help")
		examples := regexp.MustCompile(`(?m)^\s*heddle (tile \S+ .*\S)\s*$`).FindAllStringSubmatch(help, -1)
		ran := 0
		for _, m := range examples {
			args := words(m[1])
			if args[1] != verb || strings.Contains(m[1], "[") { // the usage line
				continue
			}
			for i, a := range args {
				if strings.HasSuffix(a, ".svg") {
					args[i] = filepath.Join(dir, a)
				}
			}
			if code, out, errs := command(args...); code != cli.OK || out == "" {
				t.Errorf("%v: code %d, %s", args, code, errs)
			}
			ran++
		}
		if code != cli.OK || ran != 2 {
			t.Errorf("%s: help has %d examples:\n%s", verb, ran, help)
		}
	}
}

func TestTileJSONIsOneObject(t *testing.T) {
	for _, args := range [][]string{
		{"tile", "layout", "(200,200)"}, // too large to draw, not to list
		{"tile", "layout", "--atom", "wgmma/n16/bf16/C"}, {"tile", "swizzle", "--suggest"}, {"tile", "schedule"}, {"tile", "depth", "--bm", "256"}, {"tile", "epilogue"},
		{"tile", "check", "../../tile/vector/testdata/sample.jsonl"},
	} {
		code, out, errs := command(append(args, "--json")...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.OK || len(v) < 3 {
			t.Errorf("%v: code %d, %v, %s, %.100s", args, code, err, errs, out)
		}
	}
}

func TestTileCheckExitsByRule(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wrong := file("wrong.jsonl", `{"op": "cosize", "a": {"shape": 4, "stride": 2}, "result": 8}`)
	code, out, _ := command("tile", "check", wrong, "--json")
	var v struct{ Passed, Failed int }
	if err := json.Unmarshal([]byte(out), &v); code != cli.Check || err != nil || v.Failed != 1 {
		t.Errorf("failing case: code %d, %v, %s", code, err, out)
	}
	if code, out, _ := command("tile", "check", wrong); code != cli.Check || !strings.Contains(out, "got  7") {
		t.Errorf("failing case as text: code %d, %s", code, out)
	}
	for _, path := range []string{file("bad.jsonl", "{"), filepath.Join(dir, "absent")} {
		if code, out, errs := command("tile", "check", path); code != cli.Invalid || out != "" || errs == "" {
			t.Errorf("%s: code %d, %q, %q", path, code, out, errs)
		}
	}
	var o, e bytes.Buffer
	if code := run(t.Context(), []string{"tile", "check", "-"}, strings.NewReader(`{"op": "cosize", "a": {"shape": 4, "stride": 2}, "result": 7}`), &o, &e); code != cli.OK {
		t.Errorf("stdin: code %d, %s", code, e.String())
	}
}

func TestTileRefusalsAreInvalidNotCrashes(t *testing.T) {
	for _, args := range [][]string{
		{"tile", "layout", "(4,8"}, {"tile", "layout"}, {"tile", "layout", "(200,200)"}, {"tile", "swizzle", "3,4"}, {"tile", "swizzle", "--rows=-1"},
		{"tile", "schedule", "--m=-5"}, {"tile", "schedule", "--l2=17592186044417"}, {"tile", "schedule", "--l2=-1"}, {"tile", "depth", "--in", "int4"}, {"tile", "epilogue", "--element", "500,0"}, {"tile", "epilogue", "--bm", "100"},
	} {
		if code, out, errs := command(args...); code != cli.Invalid || out != "" || !strings.HasPrefix(errs, "heddle: tile: ") {
			t.Errorf("%v: code %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, _ := command("tile", "depth", "--bm", "256"); code != cli.OK || !strings.Contains(out, "nearest that works") {
		t.Errorf("a refused tile is an answer: code %d, %s", code, out)
	}
}
