package train

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"heddle/checkpoint"
	"heddle/checkpoint/safetensors"
	"heddle/data"
	"heddle/parallel"
	"heddle/param"
	"heddle/tensor"
)

// saver writes a run's checkpoints: every rank its own file, the lead rank what makes them one. The ranks of a process share it.
type saver struct {
	store checkpoint.Store
	meta  checkpoint.Meta // but for step and state

	mu     sync.Mutex
	dir    string
	shards []checkpoint.Shard
	err    error
}

// position is how far a run has come.
type position struct {
	step   int
	tokens int64
	cursor data.Cursor // of the batch after
}

// save writes a checkpoint of the job.
func (s *saver) save(t *trainer, at position) error {
	cursor, err := json.Marshal(at.cursor)
	if err != nil {
		return fmt.Errorf("train: cursor: %w", err)
	}
	return s.write(t, at.step, map[string]string{"cursor": string(cursor), "tokens": strconv.FormatInt(at.tokens, 10)})
}

// write writes a checkpoint with what its loop needs to go on. Every rank calls it at the same step, and all get the same error.
func (s *saver) write(t *trainer, step int, state map[string]string) error {
	meta := s.meta
	meta.Step, meta.State = step, state
	meter, rec := t.Grp.Meter, t.Dev.Rec // a step's cost does not include saving
	t.Grp.Meter, t.Dev.Rec = nil, nil
	defer func() { t.Grp.Meter, t.Dev.Rec = meter, rec }()
	everyone := t.Dev.Mesh.Every()
	if t.Index == 0 {
		dir, err := s.store.Begin(step)
		s.set(func() { s.dir, s.shards, s.err = dir, nil, err })
	}
	t.Grp.Barrier("checkpoint is begun", everyone)
	if s.failed() == nil {
		parts, lies := t.parts()
		shard, err := s.store.WriteShard(s.dir, meta, t.Index, parts, func(p checkpoint.Part) ([]float64, error) { return t.Dev.Download(lies[p.Name]), nil })
		s.set(func() { s.shards, s.err = append(s.shards, shard), errors.Join(s.err, err) })
	}
	t.Grp.Barrier("checkpoint is written by every rank", everyone)
	if t.Index == 0 && s.dir != "" {
		err := s.failed()
		if err == nil {
			_, err = s.store.Commit(s.dir, meta, s.shards)
		} else {
			err = errors.Join(err, s.store.Abort(s.dir))
		}
		s.set(func() { s.err = err })
	}
	t.Grp.Barrier("checkpoint is complete", everyone)
	return s.failed()
}

func (s *saver) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *saver) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// parts lists what this rank writes, and where each lies. Of copies one is written.
func (t *trainer) parts() (out []checkpoint.Part, lies map[string]tensor.Tensor) {
	dtype := safetensors.F32
	if t.Dev.Type == tensor.F64 {
		dtype = safetensors.F64
	}
	lies = map[string]tensor.Tensor{}
	for i, p := range t.model.Shards.Pieces() {
		if !t.model.Shards.Counts(i, &p) {
			continue
		}
		for _, k := range t.kinds(p) {
			name := k.prefix + p.Row.Name
			lies[name] = k.lies
			out = append(out, checkpoint.Part{Tensor: checkpoint.Tensor{Name: name, DType: dtype, Shape: validShape(p.Row)},
				Box: checkpoint.Box(p.Row.Box(t.Dev.Mesh, t.Index)), From: p.Lo, To: p.Hi})
		}
	}
	return out, lies
}

// kind is one of the tensors that a parameter has in a checkpoint.
type kind struct {
	prefix string
	lies   tensor.Tensor
}

func (t *trainer) kinds(p parallel.Piece) []kind {
	list := []kind{{"weight/", p.Weight}}
	if p.Row.Train {
		m, v := t.opt.Moments(p)
		list = append(list, kind{"moment1/", m}, kind{"moment2/", v})
	}
	return list
}

// validShape is a parameter's shape without padding.
func validShape(r *param.Row) []int { return append([]int{r.Valid}, r.Dims[1:]...) }

// load fills weights and moments from a checkpoint, whatever layout wrote it.
func (t *trainer) load(c *checkpoint.Checkpoint) error {
	for _, p := range t.model.Shards.Pieces() {
		for _, k := range t.kinds(p) {
			name := k.prefix + p.Row.Name
			if saved, ok := c.Tensor(name); !ok || !slices.Equal(saved.Shape, validShape(p.Row)) {
				return fmt.Errorf("train: %s: %s is %v in the checkpoint, %v in the model", c.Dir, name, saved.Shape, validShape(p.Row))
			}
			v := make([]float64, p.Hi-p.Lo)
			if err := c.Read(name, checkpoint.Box(p.Row.Box(t.Dev.Mesh, t.Index)), p.Lo, p.Hi, v); err != nil {
				return err
			}
			t.Dev.Upload(k.lies, v)
		}
	}
	t.model.Shards.Refresh()
	t.opt.Resume(c.Step)
	return nil
}

// digest is a short fingerprint of anything that JSON can write.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}
