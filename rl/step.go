package rl

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"heddle/model"
	"heddle/param"
	"heddle/rl/grpo"
)

// Supervise takes one step on the cross-entropy of the completions and returns the loss, nats a token, and the norm of the gradient.
func (l *Learner) Supervise(rows []row, lr float64) (loss, norm float64, err error) {
	var parts []*packed
	for _, c := range l.batches(len(rows)) {
		parts = append(parts, l.pack(rows[c[0]:c[1]]))
	}
	err = l.do(func(r *replica) error {
		mean, n := r.supervise(parts, lr)
		if r.Index == 0 {
			loss, norm = mean, n
		}
		return nil
	})
	return loss, norm, l.count(err, loss, norm)
}

func (r *replica) supervise(parts []*packed, lr float64) (loss, norm float64) {
	d := r.Dev
	sc := d.Open()
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
	loss = d.Read(r.model.Total(sum), 1) / d.Read(count, 1)
	norm = r.opt.Step(lr)
	d.Close(sc) // not deferred: a fault leaves inner scopes open, and is what must be reported
	return loss, norm
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
		n := r.reinforce(parts, lr, func(i int, lp []float64) []float64 {
			return r.weigh(parts[i], rows[cuts[i][0]:cuts[i][1]], b, cuts[i][0], lp, &found)
		})
		if r.Index == 0 {
			norm = n
		}
		return nil
	})
	m = found.merged()
	return m, norm, l.count(err, m.Loss, norm)
}

// reinforce adds up the gradients of micro-batches and takes the step. weigh gets a micro-batch's number and this rank's log-probabilities.
func (r *replica) reinforce(parts []*packed, lr float64, weigh func(i int, lp []float64) []float64) (norm float64) {
	r.model.Shards.ZeroGrads()
	for i, p := range parts {
		sc := r.Dev.Open()
		r.model.PolicyGradients(r.model.NewBatch(p.b, p.s, p.ids, p.labels, p.mask), func(lp []float64) []float64 { return weigh(i, lp) })
		r.Dev.Close(sc)
	}
	return r.opt.Step(lr)
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
			lp := r.logProbs(p)
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

func (r *replica) logProbs(p *packed) []float64 {
	sc := r.Dev.Open()
	lp := r.model.LogProbs(r.model.NewBatch(p.b, p.s, p.ids, p.labels, p.mask))
	r.Dev.Close(sc)
	return lp
}

// lead tells whether this rank is the first of those that hold the same rows.
func (r *replica) lead() bool {
	tp := r.scheme.TP.KV | r.scheme.TP.Rep
	return tp == 0 || r.scheme.Mesh.Index(r.Dev.Rank, tp) == 0
}
