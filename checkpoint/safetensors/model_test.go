package safetensors_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/golden"
)

// writeShards writes the golden model's weights into dir in shards of at most limit bytes.
func writeShards(t *testing.T, dir string, limit int64) *safetensors.File {
	t.Helper()
	f := golden.Open(t, "qwen3-gqa").Model
	err := safetensors.WriteModel(dir, specsOf(f), limit, func(s safetensors.Spec, sink *safetensors.Sink) error {
		x, err := f.Tensor(s.Name)
		raw, err2 := x.Bytes()
		return errors.Join(err, err2, sink.Bytes(raw))
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// However a model is cut, it reads back the same, and its shards respect the limit or hold a single tensor.
func TestShardedModelReadsBackTheSame(t *testing.T) {
	for _, limit := range []int64{1 << 40, 100_000, 20_000, 1} {
		dir := t.TempDir()
		f := writeShards(t, dir, limit)
		m, err := safetensors.OpenModel(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(m.Names()), len(f.Tensors()); got != want {
			t.Errorf("limit %d: got %d tensors, want %d", limit, got, want)
		}
		for _, i := range f.Tensors() {
			x, err := m.Tensor(i.Name)
			if err != nil {
				t.Fatal(err)
			}
			y, _ := f.Tensor(i.Name)
			a, _ := x.Bytes()
			b, _ := y.Bytes()
			if !bytes.Equal(a, b) {
				t.Errorf("limit %d: %s differs", limit, i.Name)
			}
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.safetensors"))
		for _, file := range files {
			s, err := safetensors.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for _, i := range s.Tensors() {
				sum += i.End - i.Begin
			}
			if sum > limit && len(s.Tensors()) > 1 {
				t.Errorf("limit %d: %s holds %d bytes", limit, filepath.Base(file), sum)
			}
			s.Close()
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := safetensors.WriteModel(dir, nil, limit, nil); err == nil || !strings.Contains(err.Error(), "already holds") {
			t.Errorf("second model in one folder: got %v", err)
		}
	}
}

// An index that does not agree with its shards is refused, whichever of them lies.
func TestIndexAndShardsMustAgree(t *testing.T) {
	edit := func(old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, "model.safetensors.index.json")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), old, new, 1)
			if changed == string(text) {
				t.Fatalf("%q is not in the index", old)
			}
			if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	swap := func(t *testing.T, dir string) {
		a, b := filepath.Join(dir, "model-00001-of-00003.safetensors"), filepath.Join(dir, "model-00002-of-00003.safetensors")
		c := filepath.Join(dir, "c")
		if err := errors.Join(os.Rename(a, c), os.Rename(b, a), os.Rename(c, b)); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "model-00002-of-00003.safetensors")) }
	both := func(t *testing.T, dir string) {
		os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), 0o644)
	}
	const norm = `"model.norm.weight": "model-00001-of-00003.safetensors"`
	cases := []struct {
		name   string
		change func(t *testing.T, dir string)
		says   string
	}{
		{"swapped shards", swap, "may have been swapped"},
		{"missing shard", remove, "no such file"},
		{"stale single file", both, "has both"},
		{"tensor in another shard", edit(norm, strings.Replace(norm, "00001", "00002", 1)), "the index says model-00002"},
		{"tensor not listed", edit("model.norm.weight", "model.norm.wait"), "which the index does not list"},
		{"extra tensor listed", edit(norm, norm+`, "z": "model-00001-of-00003.safetensors"`), `"z" is not in`},
		{"tensor listed twice", edit(norm, norm+", "+norm), "occurs twice"},
		{"path up", edit(norm, `"model.norm.weight": "../x.safetensors"`), "not the name of a .safetensors file"},
		{"absolute path", edit(norm, `"model.norm.weight": "/etc/x.safetensors"`), "not the name of a .safetensors file"},
		{"hidden file", edit(norm, `"model.norm.weight": ".x.safetensors"`), "not the name of a .safetensors file"},
		{"other suffix", edit(norm, `"model.norm.weight": "x.bin"`), "not the name of a .safetensors file"},
		{"file is a number", edit(norm, `"model.norm.weight": 1`), "want a string"},
		{"no weight_map", edit("weight_map", "weight_mop"), `unknown field "weight_mop"`},
		{"truncated", edit("\n  }\n}\n", ""), "end of the text"},
		{"text after", edit("\n  }\n}\n", "\n  }\n}\n{}"), "want the end"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeShards(t, dir, 100_000)
			c.change(t, dir)
			m, err := safetensors.OpenModel(dir)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if m != nil {
				t.Error("got a model beside the error")
			}
		})
	}
	if _, err := safetensors.OpenModel(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: got %v", err)
	}
}
