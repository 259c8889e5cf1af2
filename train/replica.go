package train

import (
	"heddle/checkpoint"
	"heddle/model"
	"heddle/optim"
)

// Replica is one rank's model and optimiser in another loop than Job's, as reinforcement has. It keeps checkpoints of the same form.
type Replica struct{ t trainer }

// NewReplica joins what a rank has made.
func NewReplica(r *Rank, m *model.Model, o *optim.AdamW) *Replica {
	return &Replica{trainer{r, m, o}}
}

// Saver writes checkpoints. The ranks of a process share one.
type Saver struct{ s saver }

// NewSaver writes into a store. meta is that of every checkpoint, but for step and state.
func NewSaver(store checkpoint.Store, meta checkpoint.Meta) *Saver {
	return &Saver{saver{store: store, meta: meta}}
}

// Save writes weights, moments and the loop's own state. Every rank calls it at the same step, and all get the same error.
func (r *Replica) Save(s *Saver, step int, state map[string]string) error {
	return s.s.write(&r.t, step, state)
}

// Load fills weights and moments from a checkpoint, whatever layout wrote it. The optimiser goes on from the given number of its own steps.
func (r *Replica) Load(c *checkpoint.Checkpoint, steps int) error {
	if err := r.t.load(c); err != nil {
		return err
	}
	r.t.opt.Resume(steps)
	return nil
}
