package text

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"heddle/checkpoint"
	"heddle/model/hf"
)

// Where a run keeps its weights: checkpoints/step-N while it goes, with configuration and tokenizer in about/; model/ has all
// of them at its end.
const (
	checkpoints = "checkpoints"
	about       = "about"
	finished    = "model"
)

// openRun opens a run at a step; step < 0 is its end, or the newest whole checkpoint of a run that has not ended.
func openRun(run string, step int) (*Model, error) {
	if _, err := os.Stat(filepath.Join(run, finished, "config.json")); err == nil && step < 0 {
		return openPretrained(filepath.Join(run, finished))
	}
	root, side := filepath.Join(run, checkpoints), filepath.Join(run, about)
	cfg, err := hf.Read(side)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("text: %w; hint: a run that has ended is opened without @STEP", err)
	}
	if err != nil {
		return nil, err
	}
	m := &Model{Path: root, Config: cfg, Begin: -1}
	if err := m.fromFolder(side); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	var c *checkpoint.Checkpoint
	if step < 0 {
		c, _, err = checkpoint.Latest(root)
	} else {
		c, err = checkpoint.OpenStep(root, step)
	}
	if err != nil {
		return nil, err
	}
	m.Path, m.close = c.Dir, c.Close
	m.read = func(p hf.Param) ([]float32, error) { return readCheckpoint(c, p) }
	return m, nil
}

// readCheckpoint reads a parameter; the checkpoint keeps heads as dims of their own.
func readCheckpoint(c *checkpoint.Checkpoint, p hf.Param) ([]float32, error) {
	name := "weight/" + p.Ours()
	t, ok := c.Tensor(name)
	whole := checkpoint.Whole(t.Shape)
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	if !ok || whole.Len() != n {
		return nil, fmt.Errorf("text: %s: %s is %v, want %v", c.Dir, name, t.Shape, p.Shape)
	}
	wide, v := make([]float64, n), make([]float32, n)
	if err := c.Read(name, whole, 0, n, wide); err != nil {
		return nil, err
	}
	for i, x := range wide {
		v[i] = float32(x)
	}
	return v, nil
}
