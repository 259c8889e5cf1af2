package safetensors_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/checkpoint/safetensors"
)

func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := safetensors.Open(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open of a pipe: %v, want a refusal", err)
	}
}
