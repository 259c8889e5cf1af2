package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/checkpoint"
	"heddle/internal/atomicfile"
	"heddle/internal/atomicfile/faultfs"
	"heddle/model"
	"heddle/parallel"
)

const lastStep = 9

// tiny is a run of nine steps that saves every second one. The vocabulary is odd, so that tensor-parallel layouts pad it.
func tiny(t *testing.T, text string, l parallel.Layout) *Job {
	t.Helper()
	c := Default()
	c.Model = model.Config{Layers: 2, Hidden: 16, Heads: 4, KV: 2, Head: 4, MLP: 24, Vocab: 291, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.05}
	c.Parallel, c.Seq, c.Batch, c.Steps, c.EvalBytes, c.Samples, c.TraceSteps = l, 16, 4, lastStep, 4096, 0, 0
	c.Schedule.Warmup, c.SaveEvery, c.Keep = 1, 2, 0
	c.Data = Data{Paths: []string{text}, TokenizerBytes: 1 << 16, HoldOutEvery: 50}
	return prepare(t, c)
}

func prepare(t *testing.T, c Config) *Job {
	t.Helper()
	j, err := Prepare(c, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func corpus(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := 0; b.Len() < 40_000; i++ {
		fmt.Fprintf(&b, "line %d of weft %d over warp %d,\nunder warp %d and back again\n", i, i*7%13, i*i%31, i*3%17)
	}
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// run trains the job, saving in fsys under root, and stops after the given step.
func run(t *testing.T, j *Job, fsys atomicfile.FS, root string, stop int) (*Result, error) {
	t.Helper()
	j.Checkpoints.Store = checkpoint.Store{FS: fsys, Root: root, Keep: j.Config.Keep}
	j.Checkpoints.Run = "test"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return j.Run(ctx, func(e Event) {
		if e.Step != nil && e.Step.Step >= stop {
			cancel()
		}
	})
}

// resume opens the newest checkpoint in root and lets the job go on from it to the end.
func resume(t *testing.T, j *Job, root string, allow ...string) (*Result, int) {
	t.Helper()
	c, _, err := checkpoint.Latest(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Resume(c, allow, t.Logf); err != nil {
		t.Fatal(err)
	}
	step := c.Step
	res, err := run(t, j, atomicfile.OS{}, t.TempDir(), lastStep+1)
	if err != nil {
		t.Fatal(err)
	}
	return res, step
}

// differ names a parameter that two runs do not have bit for bit, or "".
func differ(a, b *Result) string {
	for _, name := range slices.Sorted(maps.Keys(a.Weights.Values)) {
		x, y := a.Weights.Values[name], b.Weights.Values[name]
		for i := range x {
			if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
				return fmt.Sprintf("%s[%d]: %g and %g", name, i, x[i], y[i])
			}
		}
	}
	return ""
}

var layouts = []parallel.Layout{
	{DP: 1, FSDP: 1, PP: 1, CP: 1, TP: 1}, {DP: 2, FSDP: 1, PP: 1, CP: 1, TP: 1}, {DP: 1, FSDP: 2, PP: 1, CP: 1, TP: 2, SP: "megatron"}, {DP: 1, FSDP: 2, PP: 1, CP: 2, TP: 1, SP: "ulysses"},
}

// A run that is stopped, wherever, and goes on ends with the weights of one that was not, bit for bit: weights, moments, step, schedule and the place in
// the data are all there. Tokens and losses of the steps after are the same too.
func TestResumedRunEqualsUninterrupted(t *testing.T) {
	text := corpus(t)
	for _, l := range layouts {
		whole, err := run(t, tiny(t, text, l), atomicfile.OS{}, t.TempDir(), lastStep+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, stop := range []int{1, 3, 4} { // the feed is ahead by another step or two when it ends
			root := t.TempDir()
			first, err := run(t, tiny(t, text, l), atomicfile.OS{}, root, stop)
			if err != nil || !first.Stopped || first.Steps >= lastStep {
				t.Fatalf("%+v: stopped %v after %d, %v", l, first.Stopped, first.Steps, err)
			}
			res, from := resume(t, tiny(t, text, l), root)
			if from != first.Steps {
				t.Errorf("%+v: resumed from step %d, stopped after %d", l, from, first.Steps)
			}
			if d := differ(whole, res); d != "" {
				t.Errorf("%+v, stopped after %d: %s", l, from, d)
			}
			if got, want := fmt.Sprint(res.Train), fmt.Sprint(whole.Train[from:]); got != want {
				t.Errorf("%+v: metrics %v, want %v", l, got, want)
			}
		}
	}
}

// Saving does not change a run.
func TestSavingChangesNothing(t *testing.T) {
	text := corpus(t)
	for _, l := range layouts {
		a, err := run(t, tiny(t, text, l), atomicfile.OS{}, t.TempDir(), lastStep+1)
		if err != nil {
			t.Fatal(err)
		}
		j := tiny(t, text, l)
		j.Config.SaveEvery = 0
		b, err := run(t, j, atomicfile.OS{}, t.TempDir(), lastStep+1)
		if err != nil {
			t.Fatal(err)
		}
		if d := differ(a, b); d != "" {
			t.Errorf("%+v: %s", l, d)
		}
		if a.Memory.Held != b.Memory.Held || fmt.Sprint(a.Memory.Phases) != fmt.Sprint(b.Memory.Phases) {
			t.Errorf("%+v: memory %v, without saving %v", l, a.Memory, b.Memory)
		}
	}
}

// A checkpoint of any layout goes on under any other. The next loss is taken before the weights change, from the same weights and batch, so it agrees to
// float32's rounding of a mean over 64 tokens of logits near 6: 64 terms of relative error at most (layers · widths) · 2^-24; 2e-5 leaves room.
func TestCheckpointGoesOnUnderEveryLayout(t *testing.T) {
	text := corpus(t)
	for _, wrote := range layouts {
		root := t.TempDir()
		if _, err := run(t, tiny(t, text, wrote), atomicfile.OS{}, root, 3); err != nil {
			t.Fatal(err)
		}
		var want float64
		for i, reads := range layouts {
			res, _ := resume(t, tiny(t, text, reads), root)
			if got := res.Train[0].Loss; i == 0 {
				want = got
			} else if math.Abs(got-want) > 2e-5*want {
				t.Errorf("%+v under %+v: next loss %.9g, want %.9g", wrote, reads, got, want)
			}
		}
	}
}

// The save at step 4 is stopped at each of its operations; what is left resumes from step 2 or 4, and ends bit-equal.
func TestKilledWhileSavingEndsBitEqual(t *testing.T) {
	text, l := corpus(t), layouts[2]
	whole, err := run(t, tiny(t, text, l), atomicfile.OS{}, t.TempDir(), lastStep+1)
	if err != nil {
		t.Fatal(err)
	}
	counted := &faultfs.FS{}
	if _, err := run(t, tiny(t, text, l), serial(counted), ".", lastStep+1); err != nil {
		t.Fatal(err)
	}
	renames := 0
	from, to := 0, 0 // the operations of the second save
	for i, op := range counted.Ops {
		if op.Kind == "rename" {
			if renames++; renames == 1 {
				from = i + 2
			} else if renames == 2 {
				to = i + 2
			}
		}
	}
	seen := map[int]int{}
	for n := from; n <= to; n += 1 + (to-from)/12 {
		fsys := &faultfs.FS{Decide: faultfs.StopAt(n)}
		run(t, tiny(t, text, l), serial(fsys), ".", lastStep+1)
		root := t.TempDir()
		if err := fsys.Kill(root); err != nil {
			t.Fatal(err)
		}
		res, step := resume(t, tiny(t, text, l), root)
		if d := differ(whole, res); d != "" || step != 2 && step != 4 {
			t.Errorf("stopped at operation %d, resumed from %d: %s", n, step, d)
		}
		seen[step]++
	}
	if seen[2] == 0 || seen[4] == 0 {
		t.Errorf("resumed from step 2 and 4: %v times", seen)
	}
}

func TestFailedSaveStopsTheRunAndKeepsTheOldCheckpoint(t *testing.T) {
	text, l := corpus(t), layouts[2]
	saves := 0
	fsys := &faultfs.FS{}
	fsys.Decide = func(_ int, op faultfs.Op) faultfs.Fault {
		if op.Kind == "rename" {
			saves++
		}
		if saves == 1 && op.Kind == "write" {
			return faultfs.Fault{Err: syscall.ENOSPC, Kept: op.Size / 2}
		}
		return faultfs.Fault{}
	}
	_, err := run(t, tiny(t, text, l), serial(fsys), ".", lastStep+1)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "step 4") {
		t.Errorf("got %v", err)
	}
	root := t.TempDir()
	if err := fsys.Kill(root); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(root)
	if c, damaged, err := checkpoint.Latest(root); err != nil || c.Step != 2 || damaged != nil || len(left) != 1 {
		t.Errorf("left %v, damaged %v, %v", left, damaged, err)
	}
}

func TestChangedRunIsRefusedByField(t *testing.T) {
	text := corpus(t)
	root := t.TempDir()
	if _, err := run(t, tiny(t, text, layouts[0]), atomicfile.OS{}, root, 3); err != nil {
		t.Fatal(err)
	}
	base := tiny(t, text, layouts[0]).Config
	for field, change := range map[string]func(c *Config){
		"seed": func(c *Config) { c.Seed++ }, "schedule": func(c *Config) { c.Schedule.Peak *= 2 }, "optim": func(c *Config) { c.Optim.Beta2 = 0.99 },
		"seq": func(c *Config) { c.Seq = 8 }, "batch": func(c *Config) { c.Batch = 8 }, "accumulate": func(c *Config) { c.Accumulate = 2 },
		"dtype": func(c *Config) { c.DType = "f64" }, "data": func(c *Config) { c.Data.HoldOutEvery = 7 }, "model": func(c *Config) { c.Model.Theta = 5000 },
	} {
		c := base
		change(&c)
		j := prepare(t, c)
		open := func() *checkpoint.Checkpoint {
			c, _, err := checkpoint.Latest(root)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		saved := open()
		err := j.Resume(saved, nil, t.Logf)
		d, ok := errors.AsType[*checkpoint.Difference](err)
		if !ok || !slices.ContainsFunc(d.Fields, func(f checkpoint.Field) bool { return f.Name == field }) {
			t.Errorf("%s: got %v", field, err)
			saved.Close()
			continue
		}
		var names []string
		for _, f := range d.Fields {
			names = append(names, f.Name)
		}
		if err := j.Resume(saved, names, t.Logf); err != nil {
			t.Errorf("%s allowed: %v", field, err)
		} else if res, err := run(t, j, atomicfile.OS{}, t.TempDir(), lastStep+1); err != nil || res.Steps != lastStep {
			t.Errorf("%s allowed: %v", field, err)
		}
	}
}

// One byte of the text changed in place, sizes as before: the data is not that of the checkpoint.
func TestChangedTextIsRefused(t *testing.T) {
	text := corpus(t)
	root := t.TempDir()
	if _, err := run(t, tiny(t, text, layouts[0]), atomicfile.OS{}, root, 3); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(text, b, 0o644); err != nil {
		t.Fatal(err)
	}
	c, _, err := checkpoint.Latest(root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = tiny(t, text, layouts[0]).Resume(c, nil, t.Logf)
	d, ok := errors.AsType[*checkpoint.Difference](err)
	if !ok || !slices.ContainsFunc(d.Fields, func(f checkpoint.Field) bool { return f.Name == "data" }) {
		t.Errorf("got %v", err)
	}
}
