package train

import (
	"sync"

	"heddle/internal/atomicfile"
)

// locked lets several ranks use a file system that is made for one goroutine.
type locked struct {
	mu *sync.Mutex
	fs atomicfile.FS
}

func serial(fs atomicfile.FS) atomicfile.FS { return locked{&sync.Mutex{}, fs} }

type lockedFile struct {
	mu *sync.Mutex
	f  atomicfile.File
}

func (l locked) Create(path string) (atomicfile.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.fs.Create(path)
	return lockedFile{l.mu, f}, err
}

func (l locked) Mkdir(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fs.Mkdir(path)
}

func (l locked) Rename(from, to string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fs.Rename(from, to)
}

func (l locked) RemoveAll(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fs.RemoveAll(path)
}

func (l locked) List(dir string) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fs.List(dir)
}

func (l locked) SyncDir(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fs.SyncDir(path)
}

func (f lockedFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Write(p)
}

func (f lockedFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Sync()
}

func (f lockedFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Close()
}
