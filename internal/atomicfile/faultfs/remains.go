package faultfs

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// ErrStopped is what every operation returns after a stop. A program that is killed sees nothing any more; tests only look at what it left.
var ErrStopped = errors.New("stopped")

// StopAt is a Decide that stops at operation n. Of a write, half the bytes are still done.
func StopAt(n int) func(int, Op) Fault {
	return func(i int, op Op) Fault {
		switch {
		case i < n:
			return Fault{}
		case i == n:
			return Fault{ErrStopped, op.Size / 2}
		}
		return Fault{Err: ErrStopped}
	}
}

// Load takes over a real folder as what is on disk.
func Load(dir string) (*FS, error) {
	root, err := load(dir)
	return &FS{root: root}, err
}

func load(dir string) (*node, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	folder := newFolder()
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var n *node
		if e.IsDir() {
			n, err = load(path)
		} else {
			n = &node{}
			n.data, err = os.ReadFile(path)
			n.disk = n.data
		}
		if err != nil {
			return nil, err
		}
		folder.names[e.Name()], folder.diskNames[e.Name()] = n, n
	}
	return folder, nil
}

// Kill lays out in dir, which must be empty, what a killed program leaves: all it did.
func (f *FS) Kill(dir string) error {
	return layOut(f.root, dir, func(seen, _ map[string]*node) map[string]*node { return seen }, func(n *node) []byte { return n.data })
}

// PowerLoss lays out in dir, which must be empty, one of the states a machine may come back with: everything synced, and of the rest a random part.
func (f *FS) PowerLoss(dir string, rng *rand.Rand) error {
	names := func(seen, disk map[string]*node) map[string]*node {
		kept := map[string]*node{}
		both := maps.Clone(seen)
		maps.Copy(both, disk)
		for _, name := range slices.Sorted(maps.Keys(both)) { // sorted: a seed gives the same remains each time
			n := disk[name]
			if seen[name] != n && rng.IntN(2) == 0 {
				n = seen[name]
			}
			if n != nil {
				kept[name] = n
			}
		}
		return kept
	}
	data := func(n *node) []byte {
		if len(n.data) <= len(n.disk) {
			return n.disk
		}
		lost := append([]byte(nil), n.disk...)
		switch rest := n.data[len(n.disk):]; rng.IntN(4) {
		case 0: // nothing more
		case 1:
			lost = append(lost, rest...)
		case 2:
			lost = append(lost, rest[:len(rest)/2]...)
		case 3: // the length was on disk, the data was not
			lost = append(lost, make([]byte, len(rest))...)
		}
		return lost
	}
	return layOut(f.root, dir, names, data)
}

func layOut(folder *node, dir string, names func(seen, disk map[string]*node) map[string]*node, data func(*node) []byte) error {
	kept := names(folder.names, folder.diskNames)
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		n, path := kept[name], filepath.Join(dir, name)
		var err error
		if n.names == nil {
			err = os.WriteFile(path, data(n), 0o644)
		} else if err = os.Mkdir(path, 0o755); err == nil {
			err = layOut(n, path, names, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
