// Package faultfs is a file system in memory for tests of what is written to disk: it lets any operation fail, or stops there, and then lays out in a
// real folder what a killed program, or a machine that lost power, would have left.
//
// It keeps two versions of everything: what a running program sees, and what is on disk. File data reaches the disk with Sync, the names in a folder
// with SyncDir; before that a power loss keeps any part of it. Start with FS; Kill and PowerLoss lay out the remains.
package faultfs

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"heddle/internal/atomicfile"
)

// Op is one operation: create, write, sync, close, mkdir, rename, remove, list or syncdir, with the path it is about.
type Op struct {
	Kind string
	Path string
	Size int // bytes of a write
}

// Fault says how an operation fails: with Err (nil: it does not), after Kept bytes of a write.
type Fault struct {
	Err  error
	Kept int
}

// FS is a file system in memory, not for use by several goroutines. The zero value holds an empty root folder.
type FS struct {
	Decide func(n int, op Op) Fault // asked before operation n = 0, 1, …; nil: nothing fails
	Ops    []Op                     // what was asked for so far, failed operations included
	root   *node
}

// node is a file or a folder; names is nil for a file.
type node struct {
	data, disk       []byte           // file: as seen, and as synced
	names, diskNames map[string]*node // folder: as seen, and as synced
}

func newFolder() *node { return &node{names: map[string]*node{}, diskNames: map[string]*node{}} }

func (f *FS) do(kind, path string, size int) Fault {
	n := len(f.Ops)
	f.Ops = append(f.Ops, Op{kind, path, size})
	if f.root == nil {
		f.root = newFolder()
	}
	if f.Decide == nil {
		return Fault{}
	}
	return f.Decide(n, f.Ops[n])
}

// find walks from the root, which is named "." or "/".
func (f *FS) find(path string) *node {
	at := f.root
	path = filepath.Clean("/" + path)
	if path == "/" {
		return at
	}
	for _, name := range splitPath(path) {
		if at == nil || at.names == nil {
			return nil
		}
		at = at.names[name]
	}
	return at
}

func splitPath(path string) []string {
	dir, base := filepath.Split(path)
	if dir == "/" {
		return []string{base}
	}
	return append(splitPath(filepath.Clean(dir)), base)
}

// put finds the folder a new name goes into.
func (f *FS) put(op, path string) (folder *node, name string, err error) {
	folder, name = f.find(filepath.Dir(path)), filepath.Base(path)
	if folder == nil || folder.names == nil {
		return nil, "", &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return folder, name, nil
}

// Create implements atomicfile.FS.
func (f *FS) Create(path string) (atomicfile.File, error) {
	if x := f.do("create", path, 0); x.Err != nil {
		return nil, x.Err
	}
	folder, name, err := f.put("create", path)
	if err != nil {
		return nil, err
	}
	if folder.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	folder.names[name] = &node{}
	return &file{f, folder.names[name], path}, nil
}

// Mkdir implements atomicfile.FS.
func (f *FS) Mkdir(path string) error {
	if x := f.do("mkdir", path, 0); x.Err != nil {
		return x.Err
	}
	folder, name, err := f.put("mkdir", path)
	if err != nil {
		return err
	}
	if folder.names[name] != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
	}
	folder.names[name] = newFolder()
	return nil
}

// Rename implements atomicfile.FS.
func (f *FS) Rename(from, to string) error {
	if x := f.do("rename", to, 0); x.Err != nil {
		return x.Err
	}
	source, old, err := f.put("rename", from)
	if err != nil || source.names[old] == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	target, name, err := f.put("rename", to)
	if err != nil {
		return err
	}
	if there := target.names[name]; there != nil && there.names != nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	target.names[name] = source.names[old]
	delete(source.names, old)
	return nil
}

// RemoveAll implements atomicfile.FS. A folder goes name by name, so that a stop may leave half of it.
func (f *FS) RemoveAll(path string) error {
	if n := f.find(path); n != nil && n.names != nil {
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			if err := f.RemoveAll(filepath.Join(path, name)); err != nil {
				return err
			}
		}
	}
	if x := f.do("remove", path, 0); x.Err != nil {
		return x.Err
	}
	if folder, name, err := f.put("remove", path); err == nil {
		delete(folder.names, name)
	}
	return nil
}

// List implements atomicfile.FS.
func (f *FS) List(dir string) ([]string, error) {
	if x := f.do("list", dir, 0); x.Err != nil {
		return nil, x.Err
	}
	n := f.find(dir)
	if n == nil || n.names == nil {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrNotExist}
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

// SyncDir implements atomicfile.FS.
func (f *FS) SyncDir(path string) error {
	if x := f.do("syncdir", path, 0); x.Err != nil {
		return x.Err
	}
	n := f.find(path)
	if n == nil || n.names == nil {
		return &fs.PathError{Op: "syncdir", Path: path, Err: fs.ErrNotExist}
	}
	n.diskNames = maps.Clone(n.names)
	return nil
}

type file struct {
	fs   *FS
	node *node
	path string
}

func (f *file) Write(p []byte) (int, error) {
	x := f.fs.do("write", f.path, len(p))
	if x.Err != nil {
		p = p[:min(x.Kept, len(p))]
	}
	f.node.data = append(f.node.data, p...)
	return len(p), x.Err
}

func (f *file) Sync() error {
	if x := f.fs.do("sync", f.path, 0); x.Err != nil {
		return x.Err
	}
	f.node.disk = slices.Clone(f.node.data)
	return nil
}

func (f *file) Close() error { return f.fs.do("close", f.path, 0).Err }
