package rl

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"heddle/checkpoint"
	"heddle/train"
)

// state is what a run needs to go on beside weights and moments.
type state struct {
	Steps   uint64   `json:"steps"`
	Updates int      `json:"updates"`        // of the optimiser
	Next    uint64   `json:"next"`           // round that begins next
	Queue   []*Round `json:"queue"`          // rounds that wait, with the versions of their tokens
	Draw    []byte   `json:"draw,omitempty"` // the generator of turns, where there are any

	pcg *rand.PCG
}

// draw is the generator of turns as it was, unless there was none.
func (s *state) draw(fresh *rand.PCG) *rand.PCG {
	if len(s.Draw) == 0 || fresh == nil {
		return fresh
	}
	return s.pcg
}

const stateKey = "rl"

func (t *Trainer) save(store checkpoint.Store, meta checkpoint.Meta, s state) (err error) {
	if s.pcg != nil {
		if s.Draw, err = s.pcg.MarshalBinary(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	l := t.learner.scheme.Layout
	meta.World, meta.Layout = l.World(), fmt.Sprintf("dp %d fsdp %d pp %d cp %d tp %d sp %s", l.DP, l.FSDP, l.PP, l.CP, l.TP, l.SP)
	saver := train.NewSaver(store, meta)
	return t.learner.do(func(r *replica) error {
		return r.saved.Save(saver, int(s.Steps), map[string]string{stateKey: string(text)})
	})
}

// Resume makes the trainer go on from a checkpoint that Run wrote.
func (t *Trainer) Resume(c *checkpoint.Checkpoint) error {
	s := &state{pcg: &rand.PCG{}}
	if err := json.Unmarshal([]byte(c.State[stateKey]), s); err != nil {
		return fmt.Errorf("rl: %s: %w", c.Dir, err)
	}
	if len(s.Draw) > 0 {
		if err := s.pcg.UnmarshalBinary(s.Draw); err != nil {
			return fmt.Errorf("rl: %s: %w", c.Dir, err)
		}
	}
	for _, r := range s.Queue {
		if r == nil || r.Index >= s.Next || r.Index < s.Steps {
			return fmt.Errorf("rl: %s: a queue that is none of step %d", c.Dir, s.Steps)
		}
	}
	if err := t.learner.do(func(r *replica) error { return r.saved.Load(c, s.Updates) }); err != nil {
		return err
	}
	t.learner.Updates, t.Steps, t.resumed = s.Updates, s.Steps, s
	w, err := t.learner.Weights()
	if err != nil {
		return err
	}
	return t.gen.Sync(w, t.Steps)
}
