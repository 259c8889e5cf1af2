// Package atomicfile makes files and folders appear at their path whole and on disk, or not at all.
//
// Write and Folder write under a temporary name beside the target, sync, rename, and sync the parent folder. Everything goes through the small
// interface FS, so that tests can let the n-th operation fail or stop the program there. Start with Write.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
)

// FS is what writing needs of a file system.
type FS interface {
	Create(path string) (File, error) // a new file; an error when it exists
	Mkdir(path string) error
	Rename(from, to string) error
	RemoveAll(path string) error // no error when there is nothing
	List(dir string) ([]string, error)
	SyncDir(path string) error
}

// File is a file being written.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// tempMark is part of every temporary name: ".NAME.tmp-XXXXXXXX".
const tempMark = ".tmp-"

// Temp is a fresh temporary name beside path.
func Temp(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s%s%08x", filepath.Base(path), tempMark, rand.Uint32()))
}

// IsTemp tells whether a name was made by Temp: what a killed program may leave behind.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && len(name) > 8 && strings.HasSuffix(name[:len(name)-8], tempMark)
}

// Write puts what fill writes into a file at path, replacing one that is there. On an error the old file is untouched and the temporary one removed.
func Write(fsys FS, path string, fill func(w io.Writer) error) error {
	temp := Temp(path)
	err := WriteNew(fsys, temp, fill)
	if err == nil {
		err = fsys.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(wrap(path, err), fsys.RemoveAll(temp))
	}
	return wrap(path, fsys.SyncDir(filepath.Dir(path)))
}

// WriteNew writes and syncs a new file. It is a step of Write and Folder: its name is on disk only after the folder is synced.
func WriteNew(fsys FS, path string, fill func(w io.Writer) error) error {
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	w := &buffered{w: f}
	err = fill(w)
	if err == nil {
		err = w.flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Folder makes a folder at path, filled by fill, which gets the temporary path to write in. It is an error when path exists.
// fill must write its files with WriteNew, so that they are on disk before the rename.
func Folder(fsys FS, path string, fill func(temp string) error) error {
	parent := filepath.Dir(path)
	names, err := fsys.List(parent)
	if err != nil {
		return wrap(path, err)
	}
	for _, n := range names {
		if n == filepath.Base(path) {
			return wrap(path, fs.ErrExist)
		}
	}
	temp := Temp(path)
	if err = fsys.Mkdir(temp); err == nil {
		err = fill(temp)
	}
	if err == nil {
		err = fsys.SyncDir(temp)
	}
	if err == nil {
		err = fsys.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(wrap(path, err), fsys.RemoveAll(temp))
	}
	return wrap(path, fsys.SyncDir(parent))
}

func wrap(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("atomicfile: %s: %w", path, err)
}
