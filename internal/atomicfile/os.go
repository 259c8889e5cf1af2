package atomicfile

import (
	"fmt"
	"io"
	"os"
)

// OS is the file system of the machine.
type OS struct{}

// Create makes a new file that everyone may read.
func (OS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Mkdir makes a folder that everyone may read.
func (OS) Mkdir(path string) error { return os.Mkdir(path, 0o755) }

// Rename is rename(2): atomic, replaces a file. A device, pipe or socket at to, or behind a link there, is an error: root would replace /dev/null itself.
func (OS) Rename(from, to string) error {
	if st, err := os.Stat(to); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return fmt.Errorf("%s is not a regular file", to)
	}
	return os.Rename(from, to)
}

// RemoveAll removes path and what is below it.
func (OS) RemoveAll(path string) error { return os.RemoveAll(path) }

// List names what is in a folder, sorted.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// SyncDir makes the names in a folder durable.
func (OS) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	d.Close()
	return err
}

// buffered gathers small writes. A writer that takes less than it got without saying why is reported as a short write.
type buffered struct {
	w   io.Writer
	buf []byte
}

const bufferSize = 1 << 18 // bytes

func (b *buffered) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	if len(b.buf) < bufferSize {
		return len(p), nil
	}
	return len(p), b.flush()
}

func (b *buffered) flush() error {
	n, err := b.w.Write(b.buf)
	if err == nil && n < len(b.buf) {
		err = io.ErrShortWrite
	}
	b.buf = b.buf[:0]
	return err
}
