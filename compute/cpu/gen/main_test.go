package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed assembly is what this generator writes.
func TestCommittedFilesAreCurrent(t *testing.T) {
	dir := t.TempDir()
	if err := generate(filepath.Join(dir, "blas"), filepath.Join(dir, "vec")); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"blas_amd64.s", "blas_amd64.go", "vec_amd64.s", "vec_amd64.go", "vec_other.go"} {
		pkg, rest, _ := bytes.Cut([]byte(f), []byte("_"))
		committed := filepath.Join("..", string(pkg), "zkernel_"+string(rest))
		got, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(committed)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes; hint: go run . -blas ../blas/zkernel -vec ../vec/zkernel", committed)
		}
	}
}
