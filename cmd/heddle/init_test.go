package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
)

// A run that starts from an exported folder starts from its weights, shape and tokenizer: with a learning rate too small to move a float32 it exports the
// same folder, byte for byte, under another layout and from other text.
func TestRunStartsFromAFolder(t *testing.T) {
	first, dir := filepath.Join(t.TempDir(), "first"), t.TempDir()
	if code, stdout, stderr := trainSmall(t, smallText(t, 60_000), first, "steps=30"); code != cli.OK {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	other := smallText(t, 90_000)
	args := []string{"seq=32", "batch=4", "steps=2", "schedule.warmup=1", "samples=8", "parallel.fsdp=1", "init=" + filepath.Join(first, "model")}
	still := filepath.Join(dir, "still")
	code, stdout, stderr := command(append([]string{"--json", "train", "--data", other, "--out", still, "schedule.lr=1e-30"}, args...)...)
	if code != cli.OK {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"} {
		a, errA := os.ReadFile(filepath.Join(first, "model", name))
		b, errB := os.ReadFile(filepath.Join(still, "model", name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v %v", name, errA, errB)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"model keys", []string{"model.layers=3"}, "model.* has no effect"},
		{"no such folder", []string{"init=" + dir}, "config.json"},
		{"layout the model does not allow", []string{"parallel.tp=8", "parallel.fsdp=1"}, "tp may be"},
		{"weights of another shape", []string{"init=" + lying(t, filepath.Join(first, "model"))}, "hidden_size"},
	} {
		code, stdout, _ := command(append(append([]string{"--json", "train", "--data", other, "--out", filepath.Join(dir, "no")}, args...), c.args...)...)
		if code != cli.Invalid || !strings.Contains(stdout, c.says) {
			t.Errorf("%s: exit %d, want %d; %s, want it to say %q", c.name, code, cli.Invalid, stdout, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "no")); err == nil {
		t.Error("a refused run left a folder")
	}
}

// lying copies a model's folder and changes its hidden size.
func lying(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"model.safetensors", "config.json", "tokenizer.json"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), bytes.Replace(text, []byte(`"hidden_size": 32`), []byte(`"hidden_size": 64`), 1), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
