package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/checkpoint/pretrained"
	"heddle/internal/cli"
	"heddle/model/hf"
)

// Every family trains from fresh weights, packed documents apart, is exported in a narrow type in several files, and goes on from there under another layout.
func TestEveryFamilyTrainsExportsAndGoesOn(t *testing.T) {
	text := smallText(t, 40_000)
	for family, keys := range map[hf.Family][]string{
		hf.Llama: {"model.attention_bias=true", "model.mlp_bias=true", "model.rope_llama3.factor=8", "model.rope_llama3.low=1", "model.rope_llama3.high=4", "model.rope_llama3.positions=64"},
		hf.Qwen2: {"model.tied=true"},
		hf.GPT2:  {"model.kv_heads=4", "model.positions=48"},
	} {
		dir := t.TempDir()
		run, out, next := filepath.Join(dir, "run"), filepath.Join(dir, "out"), filepath.Join(dir, "next")
		args := append([]string{"steps=3", "documents=true", "model.family=" + string(family)}, keys...)
		if code, stdout, stderr := trainSmall(t, text, run, args...); code != cli.OK {
			t.Fatalf("%s: exit %d: %s%s", family, code, stdout, stderr)
		}
		if code, stdout, stderr := command("export", run, out, "--dtype", "bf16", "--shard", "0.00003"); code != cli.OK {
			t.Fatalf("%s: exit %d: %s%s", family, code, stdout, stderr)
		}
		m, err := pretrained.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		if m.Config.Family != family || m.Config.DType != "bfloat16" || len(m.Config.EOS) != 1 || m.Config.Ignored != nil {
			t.Errorf("%s: exported as %+v", family, m.Config)
		}
		m.Close()
		more := []string{"--json", "train", "--data", text, "--out", next, "init=" + out, "parallel.cp=2", "seq=32", "batch=4", "steps=2", "samples=8"}
		if code, stdout, stderr := command(more...); code != cli.OK {
			t.Errorf("%s: going on: exit %d: %s%s", family, code, stdout, stderr)
		}
	}
	for want, keys := range map[string][]string{
		"as many kv_heads":   {"model.family=gpt2", "model.positions=64"},
		"learned 16":         {"model.family=gpt2", "model.kv_heads=4", "model.positions=16"},
		"no effect on qwen2": {"model.family=qwen2", "model.attention_bias=true"},
		"want qwen3":         {"model.family=qwen4"},
	} {
		out := filepath.Join(t.TempDir(), "run")
		code, stdout, _ := trainSmall(t, text, out, keys...)
		if _, err := os.Stat(out); code != cli.Invalid || !strings.Contains(stdout, want) || err == nil {
			t.Errorf("%v: exit %d, %s", keys, code, stdout)
		}
	}
}
