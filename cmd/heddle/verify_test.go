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
		Verifications []struct {
			Layout  string
			Logits  float64
			Tensors []struct{ Name string }
		}
	}
	err := json.Unmarshal([]byte(out), &all)
	v := all.Verifications
	if err != nil || code != cli.OK || len(v) != 1 || v[0].Layout != "fsdp2-megatron2" || v[0].Logits == 0 || v[0].Logits > 2e-6 || len(v[0].Tensors) < 10 {
		t.Errorf("code %d, %v, stderr %q, stdout %.300s", code, err, errs, out)
	}
	code, out, errs = command("verify", dir, "--schemes", "single")
	if code != cli.OK || !strings.Contains(out, " ok\n") {
		t.Errorf("code %d, stderr %q, stdout %s", code, errs, out)
	}
	for want, args := range map[string][]string{
		"nowhere":   {"nowhere"},
		"tp may be": {dir, "--schemes", "tp7"},
	} {
		if code, out, errs := command(append([]string{"verify"}, args...)...); code != cli.Invalid || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, stdout %q, stderr %q", args, code, out, errs)
		}
	}
}
