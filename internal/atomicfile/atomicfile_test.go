package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/atomicfile"
	"heddle/internal/atomicfile/faultfs"
)

var old, fresh = strings.Repeat("old", 1000), strings.Repeat("new!", 100_000) // fresh needs several writes

func fill(w io.Writer) error {
	for at := 0; at < len(fresh); at += 1000 {
		if _, err := io.WriteString(w, fresh[at:at+1000]); err != nil {
			return err
		}
	}
	return nil
}

// begin is a file system whose file x holds old, on disk.
func begin(t *testing.T) *faultfs.FS {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	fsys, err := faultfs.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// is tells what the file x in dir holds.
func is(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "x"))
	switch {
	case err != nil:
		return err.Error()
	case string(b) == old:
		return "old"
	case string(b) == fresh:
		return "new"
	}
	return fmt.Sprintf("%d torn bytes", len(b))
}

// sweep stops write at every operation, looks at what a kill and 16 power losses leave, and counts the states that are neither old nor, once write
// has returned without error, new.
func sweep(t *testing.T, write func(fsys atomicfile.FS) error) (stops, bad int) {
	t.Helper()
	whole := begin(t)
	if err := write(whole); err != nil {
		t.Fatal(err)
	}
	stops = len(whole.Ops)
	for n := range stops + 1 {
		fsys := begin(t)
		fsys.Decide = faultfs.StopAt(n)
		done := write(fsys) == nil
		if done != (n == stops) {
			t.Fatalf("stopped at operation %d of %d: done is %v", n, stops, done)
		}
		for seed := range 17 {
			dir := t.TempDir()
			err := fsys.Kill(dir)
			if seed > 0 {
				os.RemoveAll(dir)
				os.Mkdir(dir, 0o755)
				err = fsys.PowerLoss(dir, rand.New(rand.NewPCG(uint64(seed), uint64(n))))
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := is(t, dir); got != "new" && (done || got != "old") {
				bad++
			}
		}
	}
	return stops, bad
}

func TestFileIsOldOrNewWhereverItStops(t *testing.T) {
	stops, bad := sweep(t, func(fsys atomicfile.FS) error { return atomicfile.Write(fsys, "x", fill) })
	if stops < 7 || bad != 0 {
		t.Errorf("%d stops, %d bad states", stops, bad)
	}
}

// lazy leaves out the operations of one kind and claims success: the sweep must notice, or it proves nothing.
type lazy struct {
	*faultfs.FS
	skip string
}

type lazyFile struct{ atomicfile.File }

func (lazyFile) Sync() error { return nil }

func (l lazy) Create(path string) (atomicfile.File, error) {
	if l.skip == "temp" {
		l.FS.RemoveAll("x")
		return l.FS.Create("x")
	}
	f, err := l.FS.Create(path)
	if l.skip == "sync" && err == nil {
		f = lazyFile{f}
	}
	return f, err
}

func (l lazy) Rename(from, to string) error {
	if l.skip == "temp" {
		return nil
	}
	return l.FS.Rename(from, to)
}

func (l lazy) SyncDir(path string) error {
	if l.skip == "syncdir" {
		return nil
	}
	return l.FS.SyncDir(path)
}

func TestSweepSeesALeftOutStep(t *testing.T) {
	for _, skip := range []string{"sync", "syncdir", "temp"} {
		_, bad := sweep(t, func(fsys atomicfile.FS) error { return atomicfile.Write(lazy{fsys.(*faultfs.FS), skip}, "x", fill) })
		if bad == 0 {
			t.Errorf("without %s nothing bad is seen", skip)
		}
	}
}

// Any single operation fails: the error is passed on, the file is whole, no temporary file is left.
func TestFailedOperationLeavesOldFileAndNoRest(t *testing.T) {
	whole := begin(t)
	if err := atomicfile.Write(whole, "x", fill); err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		for n, op := range whole.Ops {
			for _, kept := range []int{0, op.Size / 2} {
				fsys := begin(t)
				fsys.Decide = func(i int, op faultfs.Op) faultfs.Fault {
					if i == n {
						return faultfs.Fault{Err: cause, Kept: kept}
					}
					return faultfs.Fault{}
				}
				if err := atomicfile.Write(fsys, "x", fill); !errors.Is(err, cause) {
					t.Fatalf("operation %d (%s) fails with %v: got %v", n, op.Kind, cause, err)
				}
				dir := t.TempDir()
				if err := fsys.Kill(dir); err != nil {
					t.Fatal(err)
				}
				if got := is(t, dir); got != "old" && op.Kind != "syncdir" {
					t.Errorf("operation %d (%s): file is %s", n, op.Kind, got)
				}
				if left, _ := os.ReadDir(dir); len(left) != 1 {
					t.Errorf("operation %d (%s): left %v", n, op.Kind, left)
				}
			}
		}
	}
}

// short is a file that takes half of what it gets and says nothing.
type short struct{ atomicfile.File }

func (s short) Write(p []byte) (int, error) { return s.File.Write(p[:len(p)/2]) }

type shortFS struct{ *faultfs.FS }

func (s shortFS) Create(path string) (atomicfile.File, error) {
	f, err := s.FS.Create(path)
	return short{f}, err
}

func TestSilentShortWriteIsAnError(t *testing.T) {
	fsys := begin(t)
	if err := atomicfile.Write(shortFS{fsys}, "x", fill); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	if err := fsys.Kill(dir); err != nil || is(t, dir) != "old" {
		t.Errorf("file is %s, %v", is(t, dir), err)
	}
}

// The same on the real file system: written, replaced, kept on error, refused in a folder that is read-only or not there.
func TestRealFileIsReplacedOrKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	for _, s := range []string{old, fresh} {
		if err := atomicfile.Write(atomicfile.OS{}, path, text(s)); err != nil {
			t.Fatal(err)
		}
	}
	boom := errors.New("boom")
	if err := atomicfile.Write(atomicfile.OS{}, path, func(w io.Writer) error { io.WriteString(w, old); return boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	if got := is(t, dir); got != "new" {
		t.Errorf("file is %s", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left %v", left)
	}
	if err := atomicfile.Write(atomicfile.OS{}, filepath.Join(dir, "no", "x"), text(old)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestFolderAppearsWholeOrNotAtAll(t *testing.T) {
	write := func(fsys atomicfile.FS) error {
		return atomicfile.Folder(fsys, "y", func(temp string) error {
			for _, name := range []string{"a", "b"} {
				err := atomicfile.WriteNew(fsys, filepath.Join(temp, name), func(w io.Writer) error { _, err := io.WriteString(w, name); return err })
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	whole := begin(t)
	if err := write(whole); err != nil {
		t.Fatal(err)
	}
	if err := write(whole); !errors.Is(err, os.ErrExist) {
		t.Errorf("second folder of one name: got %v", err)
	}
	stops := len(whole.Ops) - 1 // the refused attempt only listed
	for n := range stops + 1 {
		fsys := begin(t)
		fsys.Decide = faultfs.StopAt(n)
		err := write(fsys)
		for seed := range 17 {
			dir := t.TempDir()
			lost := fsys.Kill(dir)
			if seed > 0 {
				os.RemoveAll(dir)
				os.Mkdir(dir, 0o755)
				lost = fsys.PowerLoss(dir, rand.New(rand.NewPCG(uint64(seed), uint64(n))))
			}
			if lost != nil {
				t.Fatal(lost)
			}
			a, errA := os.ReadFile(filepath.Join(dir, "y", "a"))
			b, errB := os.ReadFile(filepath.Join(dir, "y", "b"))
			_, errY := os.Stat(filepath.Join(dir, "y"))
			complete := errA == nil && errB == nil && string(a) == "a" && string(b) == "b"
			if !complete && (errY == nil || err == nil) {
				t.Fatalf("stop %d, seed %d: folder is there: %v, a %q, b %q, error %v", n, seed, errY == nil, a, b, err)
			}
		}
	}
}

func TestTemporaryNamesAreKnown(t *testing.T) {
	for _, path := range []string{"x", "a/b.c", "step-1"} {
		temp := atomicfile.Temp(path)
		if filepath.Dir(temp) != filepath.Dir(path) || !atomicfile.IsTemp(filepath.Base(temp)) {
			t.Errorf("%s: got %s", path, temp)
		}
	}
	for _, name := range []string{"x", ".x", ".tmp-0123", "x.tmp-01234567", ""} {
		if atomicfile.IsTemp(name) {
			t.Errorf("%q taken for temporary", name)
		}
	}
}

func TestWriteKeepsPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link} {
		err := atomicfile.Write(atomicfile.OS{}, path, fill)
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Write over %s: %v, want a refusal", path, err)
		}
	}
	if names, _ := (atomicfile.OS{}).List(dir); len(names) != 2 {
		t.Errorf("left %v", names)
	}
	if st, err := os.Lstat(pipe); err != nil || st.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe is now %v, %v", st, err)
	}
}
