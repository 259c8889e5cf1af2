package rl

import (
	"errors"
	"fmt"

	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
	"heddle/param"

	"heddle/train"
)

// LearnerConfig is what a learner is made of.
type LearnerConfig struct {
	Model    model.Config
	Parallel parallel.Layout
	Optim    optim.Config
	Rows     int // sequences of a micro-batch, at most; 0: all at once
	Longest  int // tokens of a sequence, at most; needed where the machine plans its memory
	Machine  train.Machine
}

// Learner is the ranks of one model and optimiser, waiting for something to do. Its methods are for one goroutine. After an error it is of no more use.
type Learner struct {
	Updates int // of the weights, so far

	cfg    LearnerConfig
	scheme *parallel.Scheme
	jobs   []chan func(*replica) error
	done   chan error
	down   chan struct{} // a rank has ended
	ended  chan struct{} // all have
	err    error         // of the ranks, once ended
	fixed  [2]int        // shape that every micro-batch is padded to, where memory is planned
	closed bool
}

// replica is one rank's model and optimiser.
type replica struct {
	*train.Rank
	saved  *train.Replica
	scheme *parallel.Scheme
	model  *model.Model
	opt    *optim.AdamW
}

// NewLearner starts the ranks with weights from src; nil: fresh ones of a seed.
func NewLearner(c LearnerConfig, src param.Source, seed uint64) (*Learner, error) {
	s, err := parallel.New(c.Parallel, parallel.Heads{G: c.Model.KV, R: c.Model.Rep()})
	if err != nil {
		return nil, err
	}
	if s.Layout.CP > 1 {
		return nil, fmt.Errorf("rl: parallel.cp is %d: a completion's tokens must lie on one rank; hint: dp, fsdp or tp", s.Layout.CP)
	}
	if err := errors.Join(c.Model.Check(), c.Optim.Check()); err != nil {
		return nil, err
	}
	if src == nil {
		src = c.Model.Table(s).Init(seed)
	}
	l := &Learner{cfg: c, scheme: s, done: make(chan error), down: make(chan struct{}, s.Mesh.Size()), ended: make(chan struct{})}
	for range s.Mesh.Size() {
		l.jobs = append(l.jobs, make(chan func(*replica) error))
	}
	if c.Machine.Fleet != nil {
		if c.Rows < 1 || c.Longest < 2 {
			return nil, fmt.Errorf("rl: micro-batches of %d rows of %d tokens: this machine plans its memory and must know both; hint: reinforce.rows=16", c.Rows, c.Longest)
		}
		l.fixed = [2]int{(c.Rows + l.dataRanks() - 1) / l.dataRanks() * l.dataRanks(), c.Longest}
	}
	go func() {
		defer close(l.ended)
		l.err = c.Machine.Planned(s.Mesh.Size(), func(on train.Machine) error {
			return train.Ranks(s.Mesh, on, func(r *train.Rank) error { return l.rank(r, src, on.Dry) })
		})
	}()
	return l, l.do(func(*replica) error { return nil })
}

// rank builds a replica and does what it is told until there is no more. A machine that plans is shown every kind of job once.
func (l *Learner) rank(r *train.Rank, src param.Source, plan bool) error {
	if plan {
		rep, err := l.replica(r, src)
		if err == nil {
			l.rehearse(rep)
		}
		return err
	}
	defer func() { l.down <- struct{}{} }() // also when it panics: the others may have nothing more to do and would not notice
	rep, err := l.replica(r, src)
	if err != nil {
		return err
	}
	for job := range l.jobs[r.Index] {
		err := job(rep)
		select {
		case l.done <- err:
		case <-l.ended:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Learner) replica(r *train.Rank, src param.Source) (*replica, error) {
	m, err := model.New(l.cfg.Model, l.scheme, r.Dev, r.Grp)
	if err != nil {
		return nil, err
	}
	m.Use(model.Policy{Mode: model.Selective, Every: 1})
	if err := m.Shards.Load(src); err != nil {
		return nil, err
	}
	opt := optim.New(l.cfg.Optim, r.Dev, m.Shards)
	return &replica{r, train.NewReplica(r, m, opt), l.scheme, m, opt}, nil
}

// rehearse goes through a supervised step, a policy-gradient step and a measurement of two full micro-batches each, on no values.
func (l *Learner) rehearse(r *replica) {
	p := l.pack(nil)
	two := []*packed{p, p}
	r.supervise(two, 0)
	r.reinforce(two, 0, func(_ int, lp []float64) []float64 { return make([]float64, len(lp)) })
	for _, p := range two {
		r.logProbs(p)
	}
}

// do runs a job on every rank and waits for all. A rank that fails ends the others.
func (l *Learner) do(job func(*replica) error) error {
	if l.closed {
		return l.failed()
	}
	for _, c := range l.jobs {
		select {
		case c <- job:
		case <-l.ended:
			return l.failed()
		}
	}
	for range l.jobs {
		select {
		case err := <-l.done:
			if err != nil {
				return l.Close()
			}
		case <-l.down:
			l.Close()
			return l.failed()
		case <-l.ended:
			return l.failed()
		}
	}
	return nil
}

func (l *Learner) failed() error {
	if l.err == nil {
		return errors.New("rl: the learner is closed")
	}
	return l.err
}

// Close ends the ranks and returns what made them fail, if anything did.
func (l *Learner) Close() error {
	if !l.closed {
		l.closed = true
		for _, c := range l.jobs {
			close(c)
		}
	}
	for {
		select {
		case <-l.done:
		case <-l.ended:
			return l.err
		}
	}
}

// batches cuts rows into micro-batches.
func (l *Learner) batches(n int) (cuts [][2]int) {
	size := l.cfg.Rows
	if size <= 0 {
		size = n
	}
	for lo := 0; lo < n; lo += size {
		cuts = append(cuts, [2]int{lo, min(n, lo+size)})
	}
	return cuts
}

// dataRanks is by how many ranks the rows are divided.
func (l *Learner) dataRanks() int { return l.scheme.Mesh.Count(l.scheme.Data) }

func (l *Learner) pack(rows []row) *packed {
	if l.fixed[0] > 0 {
		return pack(rows, l.fixed[0], l.fixed[1])
	}
	return pack(rows, l.dataRanks(), max(1, l.scheme.Layout.TP))
}

// Weights are all parameters, by name.
func (l *Learner) Weights() (map[string][]float32, error) {
	w := &train.Whole{}
	err := l.do(func(r *replica) error { w.Add(r.Rank, r.model); return nil })
	return w.Values, err
}

// From is a source of weights in memory.
func From(values map[string][]float32) param.Source {
	return func(r *param.Row, b param.Box, dst []float64) error {
		v, ok := values[r.Name]
		if !ok {
			return fmt.Errorf("rl: there is no parameter %s", r.Name)
		}
		i := 0
		param.Each(r.Dims, b, func(global int) {
			if dst[i] = 0; global < len(v) { // beyond: padding
				dst[i] = float64(v[global])
			}
			i++
		})
		return nil
	}
}
