package train

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"heddle/checkpoint"
	"heddle/internal/atomicfile"
	"heddle/parallel"
)

func TestRateIsOfThisProcess(t *testing.T) {
	for _, c := range []struct {
		r    Result
		want float64
	}{{Result{Tokens: 5120, before: 4992, TrainTime: time.Second}, 128}, {Result{Tokens: 5120, TrainTime: 2 * time.Second}, 2560}, {Result{Tokens: 4992, before: 4992}, 0}} {
		if got := c.r.Rate(); got != c.want {
			t.Errorf("%d tokens after %d in %v: %g a second, want %g", c.r.Tokens, c.r.before, c.r.TrainTime, got, c.want)
		}
	}
}

// Text that vanishes while a run goes on ends it with the file's name after saving what was learned; nothing is evaluated as if all steps had been done.
func TestVanishedTextEndsTheRunAfterSaving(t *testing.T) {
	text := corpus(t)
	j := tiny(t, text, parallel.Layout{FSDP: 2})
	j.Config.Steps, j.Config.SaveEvery = 100_000, 100_000
	if err := os.Remove(text); err != nil {
		t.Fatal(err)
	}
	root, last := t.TempDir(), 0
	j.Checkpoints.Store, j.Checkpoints.Run = checkpoint.Store{FS: atomicfile.OS{}, Root: root}, "test"
	_, err := j.Run(context.Background(), func(e Event) {
		if e.Eval != nil {
			t.Errorf("evaluated at step %d of %d", e.Eval.Step, last)
		}
		if e.Step != nil {
			last = e.Step.Step
		}
	})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v", err)
	}
	c, _, err := checkpoint.Latest(root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Step != last || last == 0 {
		t.Errorf("the checkpoint is of step %d, the last one was %d", c.Step, last)
	}
}
