package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/internal/cli"
	"heddle/internal/golden"
	"heddle/model/hf"
)

// What export writes opens as the same model, in several files, rounded by at most half a unit of its type.
func TestExportWritesWhatOpensAgain(t *testing.T) {
	for name, units := range map[string]map[string]float64{"llama": {"f32": 0, "bf16": 0x1p-8}, "gpt2": {"f16": 0x1p-11}} {
		src := golden.Dir(t, name)
		for dtype, most := range units {
			dir := filepath.Join(t.TempDir(), "out")
			code, out, errs := command("--json", "export", src, dir, "--dtype", dtype, "--shard", "0.00004")
			var e struct {
				Files      int     `json:"weight_files"`
				Parameters int64   `json:"parameters"`
				Rounding   float64 `json:"rounding"`
				Tokenizer  bool    `json:"tokenizer"`
			}
			if err := json.Unmarshal([]byte(out), &e); err != nil || code != cli.OK {
				t.Fatalf("%s %s: code %d, %v, %s%s", name, dtype, code, err, out, errs)
			}
			if e.Files < 2 || e.Parameters < 20_000 || e.Rounding > most || (e.Rounding == 0) != (most == 0) || e.Tokenizer {
				t.Errorf("%s %s: %+v", name, dtype, e)
			}
			m, err := pretrained.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			m.Close()
			if code, _, errs := command("export", src, dir); code != cli.Invalid || !strings.Contains(errs, "exists already") {
				t.Errorf("a second time: code %d, %q", code, errs)
			}
		}
	}
}

// A value beyond F16's range is an error, and leaves no folder.
func TestExportRefusesWhatTheTypeCannotHold(t *testing.T) {
	m, err := pretrained.Open(golden.Dir(t, "gpt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "out")
	err = pretrained.Write(src, m.Config, safetensors.F32, pretrained.MaxShard, func(p hf.Param) ([]float32, error) {
		v, err := m.Float32s(p)
		if err == nil && p.Role == hf.FinalNorm {
			v[3] = 65520
		}
		return v, err
	})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := command("export", src, dir, "--dtype", "f16")
	if _, err := os.Stat(dir); code == cli.OK || out != "" || !strings.Contains(errs, "norm: element 3 is 65520") || err == nil {
		t.Errorf("code %d, %s, %q, %v", code, out, errs, err)
	}
	for want, c := range map[string]struct {
		code int
		args []string
	}{"config.json": {cli.Invalid, []string{filepath.Join(src, "no"), dir}}, "want GB": {cli.Usage, []string{src, dir, "--shard=0"}}} {
		if code, _, errs := command(append([]string{"export"}, c.args...)...); code != c.code || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, %q", c.args, code, errs)
		}
	}
}
