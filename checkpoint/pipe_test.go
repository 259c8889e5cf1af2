package checkpoint_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/checkpoint"
)

func TestOpenPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "COMPLETE"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open of a pipe: %v, want a refusal", err)
	}
}
