// Package golden finds the peers' answers that tests compare with: a folder a model, with config.json, model.safetensors and
// expected.safetensors (about.json says how they were made; peer.py makes two of them). The dense ones are in testdata; qwen3-moe lies
// outside the repository, in ../shared/golden, and a test that wants it is skipped where it is absent.
//
// Start with Open; Dir gives the folder alone.
package golden

import (
	"os"
	"path/filepath"
	"testing"

	"heddle/checkpoint/safetensors"
)

// Names lists the folders in the order small to special.
func Names() []string {
	return []string{"qwen3-gqa", "llama", "qwen2", "llama-scaled", "gpt2", "qwen3-moe"}
}

// Dir is the path of a golden folder.
func Dir(tb testing.TB, name string) string {
	tb.Helper()
	root, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			tb.Fatal("golden: no go.mod above the working directory")
		}
		root = filepath.Dir(root)
	}
	for _, dir := range []string{filepath.Join(root, "internal/golden/testdata", name), filepath.Join(root, "../shared/golden", name)} {
		if _, err := os.Stat(filepath.Join(dir, "config.json")); err == nil {
			return dir
		}
	}
	tb.Skipf("golden: folder %s is neither in internal/golden/testdata nor in ../shared/golden", name)
	return ""
}

// Folder is an open golden folder.
type Folder struct {
	Dir      string
	Model    *safetensors.File // the weights, float32, by transformers' names
	Expected *safetensors.File // input_ids, labels, logits, loss, grad.NAME, grad_norm, adamw_losses, after3.NAME
}

// Open opens a golden folder and closes it when the test ends.
func Open(tb testing.TB, name string) Folder {
	tb.Helper()
	dir := Dir(tb, name)
	return Folder{dir, open(tb, filepath.Join(dir, "model.safetensors")), open(tb, filepath.Join(dir, "expected.safetensors"))}
}

// Float64s reads a whole tensor of an open file.
func Float64s(tb testing.TB, f *safetensors.File, name string) []float64 {
	tb.Helper()
	t, err := f.Tensor(name)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := t.Float64s()
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// Int64s reads a whole tensor of token ids.
func Int64s(tb testing.TB, f *safetensors.File, name string) []int64 {
	tb.Helper()
	t, err := f.Tensor(name)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := t.Int64s()
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func open(tb testing.TB, path string) *safetensors.File {
	tb.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}
