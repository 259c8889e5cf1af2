//go:build unix

package train

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"heddle/checkpoint"
	"heddle/internal/atomicfile"
)

var everyWrite = flag.Bool("every-write", false, "kill at every operation of a save, not at some")

// asKilled makes this test binary a run that kills itself.
const asKilled = "HEDDLE_TEST_KILL_AT"

// deadly is the file system of the machine. Its process dies of SIGKILL before operation `at`; of a write the first half is done.
type deadly struct {
	atomicfile.FS
	done *int
	at   int
}

type deadlyFile struct {
	atomicfile.File
	fs deadly
}

// step counts an operation and tells whether the process is to die in it.
func (d deadly) step() bool {
	*d.done++
	return *d.done-1 == d.at
}

func (d deadly) die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (d deadly) before() {
	if d.step() {
		d.die()
	}
}

func (d deadly) Create(path string) (atomicfile.File, error) {
	d.before()
	f, err := d.FS.Create(path)
	return deadlyFile{f, d}, err
}
func (d deadly) Mkdir(path string) error      { d.before(); return d.FS.Mkdir(path) }
func (d deadly) Rename(from, to string) error { d.before(); return d.FS.Rename(from, to) }
func (d deadly) RemoveAll(path string) error  { d.before(); return d.FS.RemoveAll(path) }
func (d deadly) SyncDir(path string) error    { d.before(); return d.FS.SyncDir(path) }
func (f deadlyFile) Sync() error              { f.fs.before(); return f.File.Sync() }
func (f deadlyFile) Close() error             { f.fs.before(); return f.File.Close() }
func (f deadlyFile) Write(p []byte) (int, error) {
	if f.fs.step() {
		f.File.Write(p[:len(p)/2])
		f.fs.die()
	}
	return f.File.Write(p)
}

// A process that trains is killed with SIGKILL at the operations of its second save, one a run, halfway through writes: what is left
// resumes from step 2 or 4 and ends with the bits of a run that was not killed. With -every-write all of them are tried.
func TestProcessKilledAtAWriteEndsBitEqual(t *testing.T) {
	text, l := corpus(t), layouts[2]
	if v := os.Getenv(asKilled); v != "" {
		at, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		_, err = run(t, tiny(t, os.Getenv(asKilled+"_TEXT"), l), serial(deadly{atomicfile.OS{}, &done, at}), os.Getenv(asKilled+"_ROOT"), 4)
		t.Fatalf("%d operations, not killed: %v", done, err)
	}
	whole, err := run(t, tiny(t, text, l), atomicfile.OS{}, t.TempDir(), lastStep+1)
	if err != nil {
		t.Fatal(err)
	}
	first, second := operations(t, text)
	step := max(1, (second-first)/5)
	if *everyWrite {
		step = 1
	}
	kills, from := 0, map[int]int{}
	for at := first; at <= second; at = min(at+step, max(at+1, second)) {
		root := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcessKilledAtAWriteEndsBitEqual$")
		cmd.Env = append(os.Environ(), asKilled+"="+strconv.Itoa(at), asKilled+"_TEXT="+text, asKilled+"_ROOT="+root)
		out, err := cmd.CombinedOutput()
		if x, ok := errors.AsType[*exec.ExitError](err); !ok || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("operation %d: the run ended with %v: %s", at, err, out)
		}
		kills++
		_, damaged, err := checkpoint.Latest(root)
		if err != nil || damaged != nil {
			t.Fatalf("operation %d: %v, damaged %v", at, err, damaged)
		}
		res, step := resume(t, tiny(t, text, l), root)
		if d := differ(whole, res); d != "" || step != 2 && step != 4 {
			t.Errorf("killed at operation %d, resumed from %d: %s", at, step, d)
		}
		from[step]++
	}
	t.Logf("%d kills at operations %d to %d; resumed from step 2 and 4: %v times; 0 bad", kills, first, second, from)
	if from[2] == 0 || from[4] == 0 {
		t.Errorf("resumed from step 2 and 4: %v times", from)
	}
}

// operations counts those of the second save: from the one after the first checkpoint is there to the one after the second.
func operations(t *testing.T, text string) (first, last int) {
	t.Helper()
	var at []int
	done := 0
	fsys := counting{deadly{atomicfile.OS{}, &done, -1}, &at}
	if _, err := run(t, tiny(t, text, layouts[2]), serial(fsys), t.TempDir(), 4); err != nil {
		t.Fatal(err)
	}
	if len(at) < 2 {
		t.Fatalf("%d checkpoints", len(at))
	}
	return at[0] + 1, at[1] + 1
}

// counting notes the number of each rename, which makes a checkpoint appear.
type counting struct {
	deadly
	renames *[]int
}

func (c counting) Rename(from, to string) error {
	*c.renames = append(*c.renames, *c.done)
	return c.deadly.Rename(from, to)
}
