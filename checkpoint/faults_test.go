package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/atomicfile"
	"heddle/internal/atomicfile/faultfs"
)

// first is a folder with the complete checkpoint of step 1, written by two ranks.
func first(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := save(Store{FS: atomicfile.OS{}, Root: root}, "flat", meta(1, 2)); err != nil {
		t.Fatal(err)
	}
	return root
}

// begin is a file system that has root on disk.
func begin(t *testing.T, root string) *faultfs.FS {
	t.Helper()
	fsys, err := faultfs.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// second saves step 2 with three ranks, keeping one checkpoint, so that the sweep meets the removal of step 1 too.
func second(fsys atomicfile.FS) error {
	return save(Store{FS: fsys, Root: ".", Keep: 1}, "flat", meta(2, 3))
}

// resumed is the step that a run resumes from in dir, all its values checked.
func resumed(dir string) (int, error) {
	c, _, err := Latest(dir)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.Step, holds(c, "columns", 2, c.Step)
}

// sweep stops write at every operation and looks at what a kill and some power losses leave. It counts the states in which resume gives anything but a
// whole step 1 or 2, or, once write has returned without error, anything but step 2.
func sweep(t *testing.T, losses int, write func(atomicfile.FS) error) (stops, states, bad int) {
	t.Helper()
	root := first(t)
	whole := begin(t, root)
	if err := write(whole); err != nil {
		t.Fatal(err)
	}
	stops = len(whole.Ops)
	for n := range stops + 1 {
		fsys := begin(t, root)
		fsys.Decide = faultfs.StopAt(n)
		done := write(fsys) == nil
		if done != (n == stops) {
			t.Fatalf("stopped at operation %d of %d (%v): done is %v", n, stops, fsys.Ops[n], done)
		}
		for seed := range losses + 1 {
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
			states++
			if step, err := resumed(dir); err != nil || step != 2 && (done || step != 1) {
				bad++
			}
			os.RemoveAll(dir)
		}
	}
	return stops, states, bad
}

func TestKillAnywhereResumesFromTheLastCompleteStep(t *testing.T) {
	stops, states, bad := sweep(t, 5, second)
	t.Logf("%d crash points, %d states, %d bad", stops, states, bad)
	if stops < 30 || bad != 0 {
		t.Errorf("%d crash points, %d bad states", stops, bad)
	}
}

// lazy leaves out one kind of operation. The sweep must see the damage, or it proves nothing about the others.
type lazy struct {
	*faultfs.FS
	skip string
}

type lazyFile struct{ atomicfile.File }

func (lazyFile) Sync() error { return nil }

func (l lazy) Create(path string) (atomicfile.File, error) {
	f, err := l.FS.Create(path)
	if l.skip == "sync" && err == nil {
		f = lazyFile{f}
	}
	return f, err
}

func (l lazy) SyncDir(path string) error {
	if l.skip == "sync of the root" && path == "." || l.skip == "sync of the folder" && path != "." {
		return nil
	}
	return l.FS.SyncDir(path)
}

func TestSweepSeesALeftOutStep(t *testing.T) {
	for _, skip := range []string{"sync", "sync of the root", "sync of the folder"} {
		_, _, bad := sweep(t, 2, func(fsys atomicfile.FS) error { return second(lazy{fsys.(*faultfs.FS), skip}) })
		if bad == 0 {
			t.Errorf("without the %s nothing bad is seen", skip)
		}
	}
}

// Each operation fails, once or from there on for ever: the save says why, the old checkpoint or the new one is whole, and but for an error
// while removing it there is no temporary folder left.
func TestFailedOperationLeavesAWholeCheckpoint(t *testing.T) {
	root := first(t)
	whole := begin(t, root)
	if err := second(whole); err != nil {
		t.Fatal(err)
	}
	for cause, forever := range map[error]bool{syscall.EIO: false, syscall.EDQUOT: false, syscall.ENOSPC: true, syscall.EROFS: true} {
		for n, op := range whole.Ops {
			fsys := begin(t, root)
			fsys.Decide = func(i int, op faultfs.Op) faultfs.Fault {
				if i == n || forever && i > n && op.Kind != "remove" && op.Kind != "list" { // a full disk still removes
					return faultfs.Fault{Err: cause, Kept: op.Size / 2}
				}
				return faultfs.Fault{}
			}
			err := second(fsys)
			if !errors.Is(err, cause) {
				t.Fatalf("operation %d (%v) fails with %v: got %v", n, op, cause, err)
			}
			if strings.HasSuffix(op.Path, rankFile(0)) && op.Kind == "write" && !strings.Contains(err.Error(), "a file of 392 bytes") {
				t.Fatalf("%v does not say how many bytes are needed", err) // 18 F64 and 3 + 40 + 1 + 18 F32
			}
			dir := t.TempDir()
			if err := fsys.Kill(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := resumed(dir); err != nil {
				t.Errorf("operation %d (%v), %v: %v", n, op, cause, err)
			}
			left, _ := filepath.Glob(filepath.Join(dir, ".*"))
			if len(left) > 0 && op.Kind != "remove" {
				t.Errorf("operation %d (%v): left %v", n, op, left)
			}
			os.RemoveAll(dir)
		}
	}
}

// One bit of any file flipped: the damage is named by file, and a run resumes from the checkpoint before.
func TestFlippedBitIsNoticedAndNamed(t *testing.T) {
	root := t.TempDir()
	s := Store{FS: atomicfile.OS{}, Root: root}
	for step := 1; step <= 2; step++ {
		if err := save(s, "flat", meta(step, 2)); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(root, "step-00000002", "*"))
	if len(files) != 4 {
		t.Fatalf("files %v", files)
	}
	flips := 0
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(b); at += 1 + len(b)/200 {
			bit := byte(1) << (at % 8)
			b[at] ^= bit
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			b[at] ^= bit
			c, damaged, err := Latest(root)
			if err != nil || c.Step != 1 || len(damaged) != 1 || !strings.Contains(damaged[0].Error(), filepath.Base(path)) {
				t.Fatalf("bit %d of byte %d of %s: damaged %v, %v", at%8, at, filepath.Base(path), damaged, err)
			}
			c.Close()
			flips++
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if step, err := resumed(root); step != 2 || err != nil || flips < 400 {
		t.Errorf("after %d flips undone: step %d, %v", flips, step, err)
	}
}

// A file cut short, lengthened, removed, or taken from another step, run, rank or world is refused with what differs.
func TestMixedFilesAreRefused(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	s := Store{FS: atomicfile.OS{}, Root: root}
	foreign := meta(2, 2)
	foreign.Run = "r2"
	for _, err := range []error{save(s, "flat", meta(1, 2)), save(s, "flat", meta(2, 2)), save(Store{FS: atomicfile.OS{}, Root: other}, "flat", foreign),
		save(Store{FS: atomicfile.OS{}, Root: other}, "flat", meta(3, 3))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "step-00000002")
	rank1 := filepath.Join(dir, rankFile(1))
	sound, err := os.ReadFile(rank1)
	if err != nil {
		t.Fatal(err)
	}
	put := func(from string) func() {
		return func() {
			b, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(rank1, b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		name   string
		change func()
		says   []string
	}{
		{"another step", put(filepath.Join(root, "step-00000001", rankFile(1))), []string{rankFile(1), `step was "1", is "2"`}},
		{"another run", put(filepath.Join(other, "step-00000002", rankFile(1))), []string{rankFile(1), `run was "r2", is "r1"`}},
		{"another rank", put(filepath.Join(dir, rankFile(0))), []string{`rank was "0", is "1"`}},
		{"another world", put(filepath.Join(other, "step-00000003", rankFile(1))), []string{`step was "3", is "2"; world was "3", is "2"`}},
		{"no file", func() { os.Remove(rank1) }, []string{rankFile(1), "no such file"}},
		{"cut short", func() { os.WriteFile(rank1, sound[:len(sound)-1], 0o644) }, []string{rankFile(1)}},
		{"longer", func() { os.WriteFile(rank1, append(sound[:len(sound):len(sound)], 0), 0o644) }, []string{rankFile(1)}},
		{"same with a longer header", func() { os.WriteFile(rank1, padHeader(sound), 0o644) }, []string{rankFile(1), "the manifest gives it"}},
		{"empty", func() { os.WriteFile(rank1, nil, 0o644) }, []string{rankFile(1), "got 0 bytes"}},
		{"not safetensors", func() { os.WriteFile(rank1, []byte("PK\x03\x04 and so on"), 0o644) }, []string{rankFile(1)}},
		{"a rank too many", func() { os.WriteFile(filepath.Join(dir, rankFile(2)), sound, 0o644) }, []string{"3 rank files for 2 ranks"}},
		{"renamed folder", func() { os.Rename(filepath.Join(root, "step-00000001"), filepath.Join(root, "step-00000005")) }, []string{"step-00000005: the manifest is of step 1"}},
	}
	for _, c := range cases {
		c.change()
		got, damaged, err := Latest(root)
		if got != nil {
			got.Close()
		}
		for _, says := range c.says {
			if len(damaged) == 0 || !strings.Contains(damaged[0].Error(), says) {
				t.Errorf("%s: damaged %v, %v, want %q", c.name, damaged, err, says)
			}
		}
		os.WriteFile(rank1, sound, 0o644)
		os.Remove(filepath.Join(dir, rankFile(2)))
	}
}

// padHeader makes a sound safetensors file of another size: eight more spaces after its header.
func padHeader(file []byte) []byte {
	n := binary.LittleEndian.Uint64(file)
	out := binary.LittleEndian.AppendUint64(nil, n+8)
	out = append(out, file[8:8+n]...)
	out = append(out, "        "...)
	return append(out, file[8+n:]...)
}

func TestChangedIdentityIsRefusedByField(t *testing.T) {
	m := meta(7, 1)
	m.Identity = map[string]string{"data": "d1", "seed": "1", "tokenizer": "t1", "schedule": "cosine"}
	now := map[string]string{"data": "d2", "seed": "1", "tokenizer": "t1", "dtype": "f32"}
	err := m.Same(now, nil)
	d, ok := errors.AsType[*Difference](err)
	if want := "[{data d1 d2} {dtype  f32} {schedule cosine }]"; !ok || fmt.Sprint(d.Fields) != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	for _, says := range []string{"step 7", `data was "d1", is "d2"`, `dtype was not given, is "f32"`, "--allow=data,dtype,schedule"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q lacks %q", err, says)
		}
	}
	if err := m.Same(now, []string{"data", "dtype"}); err == nil || strings.Contains(err.Error(), "data") || !strings.Contains(err.Error(), "schedule") {
		t.Errorf("with two allowed: %v", err)
	}
	if err := m.Same(now, []string{"data", "dtype", "schedule"}); err != nil {
		t.Errorf("with all allowed: %v", err)
	}
	if err := m.Same(m.Identity, nil); err != nil {
		t.Errorf("with itself: %v", err)
	}
	if err := m.Same(m.Identity, []string{"date"}); err == nil || !strings.Contains(err.Error(), "data, schedule") {
		t.Errorf("allowing what is not there: %v", err)
	}
}
