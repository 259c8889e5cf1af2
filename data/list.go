package data

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const maxFiles = 8 << 20

// lister collects files.
type lister struct {
	suffix  string
	config  *Config
	files   []file
	dropped []Drop
	seen    map[string]bool // real paths of files taken and folders entered
}

// add lists one file, folder or pattern.
func (l *lister) add(p string) error {
	st, err := os.Stat(p)
	if err == nil && st.IsDir() {
		return l.folder(p, "")
	}
	if err == nil {
		return l.named(p, st)
	}
	if !strings.ContainsAny(p, "*?[") {
		return &Error{Path: p, Err: reason(err)}
	}
	found, err := filepath.Glob(p)
	if err != nil {
		return invalid(p, "%v; hint: *, ? and [a-z] match within one folder; name the folder to take everything below it", err)
	}
	if len(found) == 0 {
		return invalid(p, "the pattern matches nothing")
	}
	for _, f := range found {
		st, err := os.Stat(f)
		if err != nil {
			return &Error{Path: f, Err: reason(err)}
		}
		if st.IsDir() {
			err = l.folder(f, "")
		} else {
			err = l.take(f, filepath.Base(f), st, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reason is the cause of a file error without the path, which our own error names already.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// named takes a file that the configuration names itself.
func (l *lister) named(p string, st fs.FileInfo) error {
	if !st.Mode().IsRegular() {
		return invalid(p, "not a regular file (%v)", st.Mode().Type())
	}
	if st.Size() == 0 {
		return invalid(p, "the file is empty")
	}
	if plain(p) {
		head, err := readRange(p, 0, min(st.Size(), sniffBytes))
		if err != nil {
			return err
		}
		if why := notText(head); why != "" {
			return invalid(p, "%s; hint: data is UTF-8 text", why)
		}
	}
	return l.take(p, filepath.Base(p), st, true)
}

// folder lists everything below dir in order of name. Links to folders are followed once.
func (l *lister) folder(dir, below string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return &Error{Path: dir, Err: reason(err)}
	}
	if l.seen[real] {
		return nil // a cycle of links, or a folder listed twice
	}
	l.seen[real] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &Error{Path: dir, Err: reason(err)}
	}
	for _, e := range entries {
		p, name := filepath.Join(dir, e.Name()), path.Join(below, e.Name())
		if l.suffix == "" && strings.HasPrefix(e.Name(), ".") {
			l.drop("hidden (the name starts with a dot)", p, 0)
			continue
		}
		if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), l.suffix) {
			continue
		}
		st, err := os.Stat(p)
		switch {
		case err != nil:
			l.drop("cannot be opened", p, 0)
		case st.IsDir():
			if err := l.folder(p, name); err != nil {
				return err
			}
		case strings.HasSuffix(e.Name(), l.suffix):
			if err := l.take(p, name, st, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lister) take(p, name string, st fs.FileInfo, named bool) error {
	switch {
	case !st.Mode().IsRegular():
		l.drop("not a regular file", p, 0)
		return nil
	case st.Size() == 0:
		l.drop("empty", p, 0)
		return nil
	case len(l.files) >= maxFiles:
		return invalid(p, "more than %d files; hint: join them into larger ones", maxFiles)
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return &Error{Path: p, Err: reason(err)}
	}
	if l.seen[real] {
		l.drop("listed twice", p, st.Size())
		return nil
	}
	l.seen[real] = true
	src, err := openSource(p, st.Size(), l.config)
	if err != nil {
		return err
	}
	l.files = append(l.files, file{path: p, name: name, size: st.Size(), named: named, source: src})
	return nil
}

func (l *lister) drop(why, p string, bytes int64) { l.dropped = addDrop(l.dropped, why, p, bytes) }

func addDrop(drops []Drop, why, p string, bytes int64) []Drop {
	i := slices.IndexFunc(drops, func(d Drop) bool { return d.Why == why })
	if i < 0 {
		i = len(drops)
		drops = append(drops, Drop{Why: why, First: p})
	}
	drops[i].Count++
	drops[i].Bytes += bytes
	return drops
}

// Drop counts what was left out for one reason.
type Drop struct {
	Why   string `json:"why"`
	Count int    `json:"count"` // files, parts of larger files, records, or hidden folders
	Bytes int64  `json:"bytes"`
	First string `json:"first"` // the first of them
}

func (d Drop) String() string {
	return fmt.Sprintf("dropped %d (%d bytes): %s, first %s", d.Count, d.Bytes, d.Why, d.First)
}
