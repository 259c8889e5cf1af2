package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/atomicfile"
)

const stepPrefix = "step-"

func stepName(step int) string { return fmt.Sprintf("%s%08d", stepPrefix, step) }

// stepOf is the step in a folder's name; false for other names.
func stepOf(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, stepPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && stepName(n) == name
}

// steps lists the steps that have a folder, newest first.
func steps(names []string) (out []int) {
	for _, n := range names {
		if step, ok := stepOf(n); ok {
			out = append(out, step)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// Latest opens the newest checkpoint of a folder that is whole, hashes included. damaged says what is wrong with each newer one. Without any whole one the
// error is, or wraps, fs.ErrNotExist.
func Latest(root string) (c *Checkpoint, damaged []error, err error) {
	names, err := atomicfile.OS{}.List(root)
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: %w", err)
	}
	for _, step := range steps(names) {
		c, err := OpenStep(root, step)
		if err == nil {
			return c, damaged, nil
		}
		damaged = append(damaged, err)
	}
	return nil, damaged, fmt.Errorf("checkpoint: no complete checkpoint in %s: %w", root, fs.ErrNotExist)
}

// OpenStep opens the checkpoint of a given step of a folder and verifies it.
func OpenStep(root string, step int) (*Checkpoint, error) {
	c, err := Open(filepath.Join(root, stepName(step)))
	if err != nil {
		return nil, err
	}
	if err := c.Verify(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// prune removes all but the newest Keep checkpoints. Each is renamed first, so that nobody ever sees half of one.
func (s Store) prune() error {
	names, err := s.FS.List(s.Root)
	if err != nil || s.Keep < 1 {
		return err
	}
	list := steps(names)
	for _, step := range list[min(s.Keep, len(list)):] {
		if err := s.drop(step); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) drop(step int) error {
	path := filepath.Join(s.Root, stepName(step))
	temp := atomicfile.Temp(path)
	if err := s.FS.Rename(path, temp); err != nil {
		return err
	}
	return s.FS.RemoveAll(temp)
}

// Clean prepares the folder for a run that goes on after the given step: it removes what killed runs left under temporary names, and every checkpoint
// of a later step, damaged or not, since the run will write those anew. step < 0 keeps all checkpoints. No other process may be saving.
func (s Store) Clean(step int) error {
	names, err := s.FS.List(s.Root)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for _, later := range steps(names) {
		if step >= 0 && later > step {
			err = errors.Join(err, s.drop(later))
		}
	}
	for _, n := range names {
		if atomicfile.IsTemp(n) && strings.HasPrefix(n, "."+stepPrefix) {
			err = errors.Join(err, s.FS.RemoveAll(filepath.Join(s.Root, n)))
		}
	}
	if err == nil {
		err = s.FS.SyncDir(s.Root)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
