package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"heddle/checkpoint"
	"heddle/data"
	"heddle/internal/atomicfile"
)

// Checkpoints says where a job saves and what it goes on from. The zero value does neither.
type Checkpoints struct {
	Store checkpoint.Store
	Run   string                 // id of the run that saves
	From  *checkpoint.Checkpoint // nil: from the start
}

// identity is what must be the same for a run to go on as if it had not stopped. The layout is not part of it.
func (j *Job) identity() map[string]string {
	c := j.Config
	cursor := j.Loader.Cursor()
	return map[string]string{
		"model": digest(c.Model), "optim": digest(c.Optim), "schedule": digest([]any{c.Schedule, c.Steps}), "dtype": c.DType,
		"seed": strconv.FormatUint(c.Seed, 10), "seq": strconv.Itoa(c.Seq), "batch": strconv.Itoa(c.Batch), "accumulate": strconv.Itoa(c.Accumulate),
		"data": cursor.Corpus, "tokenizer": cursor.Tokenizer,
	}
}

// fieldsOfData are those that a position in the data depends on.
var fieldsOfData = [...]string{"data", "tokenizer", "seed", "seq", "batch"}

// Resume makes the job go on from a checkpoint. What differs from the run that made it is an *Invalid that lists the fields, except those in allow;
// where they concern the data, it starts afresh. The job closes the checkpoint at its end.
func (j *Job) Resume(c *checkpoint.Checkpoint, allow []string, talk func(format string, args ...any)) error {
	now := j.identity()
	if err := c.Same(now, allow); err != nil {
		return &Invalid{err}
	}
	if c.Step >= j.Config.Steps {
		return &Invalid{fmt.Errorf("train: the checkpoint is of step %d and steps is %d: nothing is left to do; hint: steps=%d --allow=schedule", c.Step, j.Config.Steps, 2*c.Step)}
	}
	j.Checkpoints.From = c
	if slices.ContainsFunc(fieldsOfData[:], func(f string) bool { return c.Identity[f] != now[f] }) {
		talk("the data is not that of the checkpoint: it starts afresh\n")
		return nil
	}
	var cursor data.Cursor
	if err := json.Unmarshal([]byte(c.State["cursor"]), &cursor); err != nil {
		return &Invalid{fmt.Errorf("train: %s: cursor: %w", c.Dir, err)}
	}
	return invalid(j.Loader.Seek(cursor))
}

// begin is where the job starts.
func (j *Job) begin() (position, error) {
	at := position{cursor: j.Loader.Cursor()}
	c := j.Checkpoints.From
	if c == nil {
		return at, nil
	}
	at.step = c.Step
	var err error
	if at.tokens, err = strconv.ParseInt(c.State["tokens"], 10, 64); err != nil {
		return at, fmt.Errorf("train: %s: tokens: %w", c.Dir, err)
	}
	return at, nil
}

// Start is how far the job has come before it runs: steps and tokens.
func (j *Job) Start() (step int, tokens int64, err error) {
	at, err := j.begin()
	return at.step, at.tokens, err
}

// saver is the job's writer of checkpoints, nil when it writes none.
func (j *Job) saver() *saver {
	if j.Config.SaveEvery == 0 || j.Checkpoints.Store.FS == nil {
		return nil
	}
	s := j.Scheme.Layout
	return &saver{store: j.Checkpoints.Store, meta: checkpoint.Meta{Run: j.Checkpoints.Run, World: j.Scheme.Mesh.Size(), Identity: j.identity(),
		Layout: fmt.Sprintf("dp %d fsdp %d pp %d cp %d tp %d sp %s", s.DP, s.FSDP, s.PP, s.CP, s.TP, s.SP)}}
}

// OpenCheckpoint opens the newest whole checkpoint of a run's folder, or the one of a step if step ≥ 0. damaged says what is wrong with newer ones.
func OpenCheckpoint(run string, step int) (c *checkpoint.Checkpoint, damaged []error, err error) {
	root := filepath.Join(run, checkpointsName)
	if step < 0 {
		return checkpoint.Latest(root)
	}
	c, err = checkpoint.OpenStep(root, step)
	return c, nil, err
}

const (
	checkpointsName = "checkpoints"
	aboutName       = "about"
)

// Save prepares the folder's checkpoints for a job. If the job goes on from a step, later checkpoints are removed: the run writes them anew.
func (f *Folder) Save(j *Job) error {
	root := filepath.Join(f.Path, checkpointsName)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	about := filepath.Join(f.Path, aboutName)
	if _, err := os.Stat(about); j.Config.SaveEvery > 0 && err != nil {
		if err := atomicfile.Folder(atomicfile.OS{}, about, j.about); err != nil {
			return err
		}
	}
	run, err := filepath.Abs(f.Path)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	j.Checkpoints.Store = checkpoint.Store{FS: atomicfile.OS{}, Root: root, Keep: j.Config.Keep}
	j.Checkpoints.Run = digest([]string{run, f.start.UTC().String()})
	if c := j.Checkpoints.From; c != nil {
		if j.Checkpoints.Run = c.Run; filepath.Dir(c.Dir) != root {
			return errors.New("train: the checkpoint to go on from lies in another folder")
		}
		return j.Checkpoints.Store.Clean(c.Step)
	}
	return j.Checkpoints.Store.Clean(-1)
}
