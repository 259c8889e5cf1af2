package rl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
	"heddle/param"
	"heddle/rl/grpo"
	"heddle/tensor"
	"heddle/train"
)

// LearnerConfig is what a learner is made of.
type LearnerConfig struct {
	Model    model.Config
	Parallel parallel.Layout
	Optim    optim.Config
	Rows     int // sequences of a micro-batch, at most; 0: all at once
	Type     tensor.DType
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
	c.Machine.Type = c.Type
	go func() {
		defer close(l.ended)
		l.err = train.Ranks(s.Mesh, c.Machine, func(r *train.Rank) error { return l.rank(r, src) })
	}()
	return l, l.do(func(*replica) error { return nil })
}

// rank builds a replica and does what it is told until there is no more.
func (l *Learner) rank(r *train.Rank, src param.Source) error {
	defer func() { l.down <- struct{}{} }() // also when it panics: the others may have nothing more to do and would not notice
	m, err := model.New(l.cfg.Model, l.scheme, r.Dev, r.Grp)
	if err != nil {
		return err
	}
	m.Use(model.Policy{Mode: model.Selective, Every: 1})
	if err := m.Shards.Load(src); err != nil {
		return err
	}
	opt := optim.New(l.cfg.Optim, r.Dev, m.Shards)
	rep := &replica{r, train.NewReplica(r, m, opt), l.scheme, m, opt}
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
	return pack(rows, l.dataRanks(), max(1, l.scheme.Layout.TP))
}

// Supervise takes one step on the cross-entropy of the completions and returns the loss, nats a token, and the norm of the gradient.
func (l *Learner) Supervise(rows []row, lr float64) (loss, norm float64, err error) {
	var parts []*packed
	for _, c := range l.batches(len(rows)) {
		parts = append(parts, l.pack(rows[c[0]:c[1]]))
	}
	err = l.do(func(r *replica) error {
		d := r.Dev
		sc := d.Open()
		defer d.Close(sc)
		var on []model.Batch
		for _, p := range parts {
			on = append(on, r.model.NewBatch(p.b, p.s, p.ids, p.labels, p.mask))
		}
		r.model.Shards.ZeroGrads()
		count := r.model.Count(on...)
		sum := r.model.Gradients(on[0], count)
		for _, b := range on[1:] {
			d.AddInto(sum, r.model.Gradients(b, count))
		}
		mean := d.Read(r.model.Total(sum), 1) / d.Read(count, 1)
		n := r.opt.Step(lr)
		if r.Index == 0 {
			loss, norm = mean, n
		}
		return nil
	})
	return loss, norm, l.count(err, loss, norm)
}

// count counts a step that went well.
func (l *Learner) count(err error, loss, norm float64) error {
	if err == nil && !(finite(loss) && finite(norm)) {
		err = fmt.Errorf("rl: step %d: loss %g, gradient norm %g; hint: a smaller learning rate", l.Updates+1, loss, norm)
	}
	if err == nil {
		l.Updates++
	}
	return err
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Reinforce takes one step on a policy-gradient batch. rows stand in the order of b.Rows.
func (l *Learner) Reinforce(rows []row, b *grpo.Batch, lr float64) (m grpo.Metrics, norm float64, err error) {
	found := shared{by: map[int]grpo.Metrics{}}
	cuts := l.batches(len(rows))
	if len(cuts) == 0 { // nothing to learn from: the weights stay
		return m, 0, nil
	}
	var parts []*packed
	for _, c := range cuts {
		parts = append(parts, l.pack(rows[c[0]:c[1]]))
	}
	err = l.do(func(r *replica) error {
		d := r.Dev
		sc := d.Open()
		defer d.Close(sc)
		r.model.Shards.ZeroGrads()
		for i, p := range parts {
			inner := d.Open()
			lo := cuts[i][0]
			r.model.PolicyGradients(r.model.NewBatch(p.b, p.s, p.ids, p.labels, p.mask), func(lp []float64) []float64 {
				return r.weigh(p, rows[lo:cuts[i][1]], b, lo, lp, &found)
			})
			d.Close(inner)
		}
		n := r.opt.Step(lr)
		if r.Index == 0 {
			norm = n
		}
		return nil
	})
	m = found.merged()
	return m, norm, l.count(err, m.Loss, norm)
}

// weigh takes the loss over this rank's rows of a micro-batch: rows are those of the whole micro-batch, of which the first is row lo of the batch.
func (r *replica) weigh(p *packed, rows []row, b *grpo.Batch, lo int, lp []float64, found *shared) []float64 {
	box := param.Cut(r.scheme.Mesh, r.Dev.Rank, "bs", []int{p.b, p.s}, r.scheme.Tokens())
	first, last := min(box.Lo[0], len(rows)), min(box.Hi[0], len(rows))
	mine := make([][]float64, last-first)
	for i, x := range rows[first:last] {
		mine[i] = lp[i*p.s+x.from-1 : i*p.s+len(x.ids)-1]
	}
	grad, m := b.Part(lo+first, lo+last).Loss(mine)
	found.put(lo+first, m)
	out := make([]float64, len(lp))
	for i, x := range rows[first:last] {
		for k, g := range grad[i] {
			out[i*p.s+x.from-1+k] = -g
		}
	}
	return out
}

// shared collects metrics by the first row they are of; ranks that hold the same rows found the same.
type shared struct {
	mu sync.Mutex
	by map[int]grpo.Metrics
}

func (s *shared) put(row int, m grpo.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[row] = m
}

func (s *shared) merged() grpo.Metrics {
	var keys []int
	for k := range s.by {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var parts []grpo.Metrics
	for _, k := range keys {
		parts = append(parts, s.by[k])
	}
	return grpo.Merge(parts...)
}

// LogProbs are those of the completions' tokens, a slice a row.
func (l *Learner) LogProbs(rows []row) ([][]float64, error) {
	out := make([][]float64, len(rows))
	var parts []*packed
	cuts := l.batches(len(rows))
	for _, c := range cuts {
		parts = append(parts, l.pack(rows[c[0]:c[1]]))
	}
	err := l.do(func(r *replica) error {
		for i, p := range parts {
			sc := r.Dev.Open()
			lp := r.model.LogProbs(r.model.NewBatch(p.b, p.s, p.ids, p.labels, p.mask))
			r.Dev.Close(sc)
			box := param.Cut(r.scheme.Mesh, r.Dev.Rank, "bs", []int{p.b, p.s}, r.scheme.Tokens())
			if r.lead() {
				for k := box.Lo[0]; k < box.Hi[0] && cuts[i][0]+k < cuts[i][1]; k++ {
					x, at := rows[cuts[i][0]+k], (k-box.Lo[0])*p.s
					out[cuts[i][0]+k] = lp[at+x.from-1 : at+len(x.ids)-1]
				}
			}
		}
		return nil
	})
	return out, err
}

// lead tells whether this rank is the first of those that hold the same rows.
func (r *replica) lead() bool {
	tp := r.scheme.TP.KV | r.scheme.TP.Rep
	return tp == 0 || r.scheme.Mesh.Index(r.Dev.Rank, tp) == 0
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
