package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"heddle/checkpoint/safetensors"
)

// Checkpoint is an open checkpoint. Its methods may be called from several goroutines.
type Checkpoint struct {
	Dir string
	Manifest
	files   []*safetensors.File // by rank
	tensors map[string]Tensor
	held    map[string][]held
}

// held is a box of a tensor in a rank's file, and where it starts there, in elements of the file's tensor.
type held struct {
	box  Box
	rank int
	at   int
}

// Open opens the checkpoint in a folder. It checks the mark, the manifest's hash, and of each rank's file the size, the header, that it belongs to this
// run and step, and that it holds what the manifest says. The hashes of the files are Verify's.
func Open(dir string) (*Checkpoint, error) {
	c := &Checkpoint{Dir: dir, tensors: map[string]Tensor{}, held: map[string][]held{}}
	if err := c.readManifest(); err != nil {
		return nil, err
	}
	for _, t := range c.Tensors {
		c.tensors[t.Name] = t
	}
	if step, ok := stepOf(filepath.Base(dir)); ok && step != c.Step {
		return nil, fmt.Errorf("checkpoint: %s: the manifest is of step %d", dir, c.Step)
	}
	var all error
	for _, s := range c.Shards {
		f, err := safetensors.Open(c.path(s.Rank))
		c.files = append(c.files, f)
		if err == nil {
			err = c.match(s, f)
		}
		all = errors.Join(all, err)
	}
	if all == nil {
		all = c.noStrangers()
	}
	if all != nil {
		return nil, errors.Join(all, c.Close())
	}
	return c, nil
}

func (c *Checkpoint) path(rank int) string { return filepath.Join(c.Dir, rankFile(rank)) }

// readManifest reads the mark and the manifest it vouches for.
func (c *Checkpoint) readManifest() error {
	mark, err := readSmall(filepath.Join(c.Dir, completeName), 1<<10)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(c.Dir); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("checkpoint: there is no %s; hint: ls %s", c.Dir, filepath.Dir(c.Dir))
		}
		return fmt.Errorf("checkpoint: %s is not complete: it has no file %s", c.Dir, completeName)
	}
	if err != nil {
		return err
	}
	path := filepath.Join(c.Dir, manifestName)
	text, err := readSmall(path, maxManifest)
	if err != nil {
		return err
	}
	if string(mark) != completeText(sha256.Sum256(text)) {
		return fmt.Errorf("checkpoint: %s: %s or %s is damaged: the hash in one is not that of the other", c.Dir, completeName, manifestName)
	}
	if c.Manifest, err = parseManifest(text); err != nil {
		return fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	return nil
}

func readSmall(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if !st.Mode().IsRegular() { // reading a pipe would wait for a writer
		return nil, fmt.Errorf("checkpoint: %s is not a regular file", path)
	}
	if st.Size() > limit {
		return nil, fmt.Errorf("checkpoint: %s has %d bytes, at most %d are allowed", path, st.Size(), limit)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return text, nil
}

// match checks a rank's file against its entry in the manifest, and notes where its boxes are.
func (c *Checkpoint) match(s Shard, f *safetensors.File) error {
	label := f.Metadata()
	var fields []Field
	for _, key := range []string{"run", "step", "rank", "world"} {
		if want := c.label(s.Rank)[key]; label[key] != want {
			fields = append(fields, Field{key, label[key], want})
		}
	}
	if fields != nil {
		return &Difference{What: "file " + c.path(s.Rank) + " is not of this checkpoint", Fields: fields}
	}
	if st, err := os.Stat(c.path(s.Rank)); err != nil || st.Size() != s.Bytes {
		return fmt.Errorf("checkpoint: %s: the manifest gives it %d bytes, it is not so long (%v)", c.path(s.Rank), s.Bytes, err)
	}
	if got := len(f.Tensors()); got != len(s.Held) {
		return fmt.Errorf("checkpoint: %s holds %d tensors, the manifest says %d", c.path(s.Rank), got, len(s.Held))
	}
	for _, h := range s.Held {
		at := 0
		for _, b := range h.Boxes {
			c.held[h.Name] = append(c.held[h.Name], held{b, s.Rank, at})
			at += b.Len()
		}
		t, err := f.Tensor(h.Name)
		if err != nil {
			return err
		}
		if t.DType != h.DType || !slices.Equal(t.Shape, []int{at}) {
			return fmt.Errorf("checkpoint: %s: tensor %s is %s%v, the manifest says %s[%d]", c.path(s.Rank), h.Name, t.DType, t.Shape, h.DType, at)
		}
	}
	return nil
}

// noStrangers refuses a folder with rank files that the manifest does not know: somebody has mixed checkpoints.
func (c *Checkpoint) noStrangers() error {
	files, _ := filepath.Glob(filepath.Join(c.Dir, "rank-*.safetensors"))
	if len(files) > len(c.Shards) {
		return fmt.Errorf("checkpoint: %s has %d rank files for %d ranks; hint: some belong to another checkpoint", c.Dir, len(files), len(c.Shards))
	}
	return nil
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var all error
	for _, f := range c.files {
		if f != nil {
			all = errors.Join(all, f.Close())
		}
	}
	return all
}

// Verify reads every file and compares its hash with the manifest's. The error names all that differ.
func (c *Checkpoint) Verify() error {
	var all error
	for _, s := range c.Shards {
		all = errors.Join(all, verify(c.path(s.Rank), s.SHA256))
	}
	return all
}

func verify(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("checkpoint: %s is damaged: sha256 is %s, the manifest says %s", path, got, want)
	}
	return nil
}

// Names lists the tensors, sorted.
func (c *Checkpoint) Names() []string { return slices.Sorted(maps.Keys(c.tensors)) }

// Tensor tells what a tensor is; false when there is none of that name.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) { t, ok := c.tensors[name]; return t, ok }

// Read fills dst with elements [from, to) of a box of a tensor, counted row-major, whatever parts the ranks wrote. Elements beyond the tensor's shape
// are padding and read as 0.
func (c *Checkpoint) Read(name string, box Box, from, to int, dst []float64) error {
	t, ok := c.tensors[name]
	if !ok {
		return fmt.Errorf("checkpoint: %s has no tensor %s", c.Dir, name)
	}
	p := Part{t, box, from, to}
	if err := p.check(); err != nil {
		return fmt.Errorf("checkpoint: tensor %s: %w", name, err)
	}
	if len(dst) != to-from {
		return fmt.Errorf("checkpoint: tensor %s: room for %d elements, want %d", name, len(dst), to-from)
	}
	clear(dst)
	for _, want := range box.Range(from, to) {
		for _, h := range c.held[name] {
			if err := c.copy(name, want, h, dst); err != nil {
				return err
			}
		}
		dst = dst[want.Len():]
	}
	return nil
}

// copy reads what a held box has of the wanted one. It reads one stretch of the file, from the first such element to the last.
func (c *Checkpoint) copy(name string, want Box, h held, dst []float64) error {
	part := want.Meet(h.box)
	if part.Len() == 0 {
		return nil
	}
	last := make([]int, len(part.Hi))
	for i := range last {
		last[i] = part.Hi[i] - 1
	}
	from, to := h.box.index(part.Lo), h.box.index(last)+1
	t, err := c.files[h.rank].Tensor(name)
	if err != nil {
		return err
	}
	buf := make([]float64, to-from)
	if err := t.ReadFloat64s(buf, h.at+from, h.at+to); err != nil {
		return err
	}
	return runs(part, h.box, want, func(n, in, out int) error {
		copy(dst[out:out+n], buf[in-from:in-from+n])
		return nil
	})
}
