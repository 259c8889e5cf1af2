package main

import (
	"encoding/json"
	"strings"
	"testing"

	"heddle/internal/cli"
	"heddle/internal/golden"
)

func TestVerifyComparesWithThePeer(t *testing.T) {
	dir := golden.Dir(t, "qwen3-gqa")
	code, out, errs := command("verify", dir, "--schemes", "fsdp2-megatron2", "--json")
	var all struct {
		Folders []struct {
			OK        bool `json:"ok"`
			Worst     struct{ Logits, Grads, Weights float64 }
			RoundTrip int `json:"round_trip"`
			Layouts   []struct {
				Layout  string
				Tensors []struct{ Name string }
			}
		}
	}
	err := json.Unmarshal([]byte(out), &all)
	if err != nil || code != cli.OK || len(all.Folders) != 1 {
		t.Fatalf("code %d, %v, stderr %q, stdout %.300s", code, err, errs, out)
	}
	f := all.Folders[0]
	if !f.OK || f.Worst.Logits == 0 || max(f.Worst.Logits, f.Worst.Grads) > 2e-6 || f.Worst.Weights > 5e-6 || f.RoundTrip != 35 || len(f.Layouts) != 1 ||
		f.Layouts[0].Layout != "fsdp2-megatron2" || len(f.Layouts[0].Tensors) != 70 {
		t.Errorf("got %+v", f)
	}
	code, out, errs = command("verify", golden.Dir(t, "llama"))
	for _, want := range []string{"single", "fsdp2", " ok\n", "tp may be 1 or 5", "cp may be 1 or 5"} {
		if code != cli.OK || !strings.Contains(out, want) {
			t.Errorf("llama: code %d, stderr %q, %q is not in %s", code, errs, want, out)
		}
	}
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"nowhere":             {cli.Invalid, []string{"nowhere"}},
		"tp may be":           {cli.Invalid, []string{dir, "--schemes", "tp7"}},
		"beyond the limits":   {cli.Check, []string{dir, "--parallel", "tp=2,sp=megatron", "--tol", "1e-9"}},
		"has no effect":       {cli.Invalid, []string{dir, "--parallel", "sp=megatron"}},
		"stands twice":        {cli.Invalid, []string{dir, "--parallel", "tp=2,tp=2"}},
		"hint: tp=2":          {cli.Invalid, []string{dir, "--parallel", "tp=two"}},
		"want a positive num": {cli.Usage, []string{dir, "--tol=-1"}},
	} {
		if code, _, errs := command(append([]string{"verify"}, c.args...)...); code != c.code || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, stderr %q", c.args, code, errs)
		}
	}
}
