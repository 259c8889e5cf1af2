package gguf_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/checkpoint/gguf"
)

func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gguf.Open(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open of a pipe: %v, want a refusal", err)
	}
}
