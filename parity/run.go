package parity

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"heddle/comm"
	"heddle/compute"
	"heddle/data"
	"heddle/model"
	"heddle/parallel"
	"heddle/param"
	"heddle/tensor"
	"heddle/train"
)

func sqrt(x float64) float64 { return math.Sqrt(x) }

// Result is what one gradient of one layout gave.
type Result struct {
	Loss   float64
	Norm   float64              // of the whole gradient, as the optimiser sees it
	Grads  map[string][]float64 // whole, unpadded, by parameter name
	Spread float64              // largest difference between two ranks' copies of a gradient element, the loss or the norm
	Ranks  []RankResult
	Step   time.Duration
}

// RankResult is one rank's account.
type RankResult struct {
	Memory compute.Memory
	Calls  []compute.Call
	Meter  *comm.Meter
	Loss   float64
	Norm   float64
}

// Options of one run.
type Options struct {
	On    train.Machine
	Alter func(*comm.Op) comm.Alteration // plants faults
	Schedule
	inOrder bool // units are gathered when they are used, and scattered at once
	Steps   int  // timed repetitions; 0: one run, untimed
}

// Gradient runs one batch through a layout and collects the settled gradients of all ranks.
func Gradient(in Input, l parallel.Layout, o Options) (*Result, error) {
	s, err := parallel.New(l, parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
	if err != nil {
		return nil, err
	}
	micro := max(1, o.Accumulate)
	if in.B%micro != 0 {
		return nil, fmt.Errorf("parity: batch of %d sequences is not divisible into %d micro-batches", in.B, micro)
	}
	if err := errors.Join(s.Fits(in.B/micro, in.S, in.Config.MLP), in.Config.Fits(in.S)); err != nil {
		return nil, err
	}
	res := &Result{Grads: map[string][]float64{}, Ranks: make([]RankResult, s.Mesh.Size())}
	c := collector{res: res, seen: map[string][]bool{}}
	err = o.On.Planned(s.Mesh.Size(), func(on train.Machine) error {
		return train.Ranks(s.Mesh, on, func(r *train.Rank) error { return c.rank(r, in, s, o, micro, on.Dry) })
	})
	if err == nil && !o.On.Dry {
		err = c.finish(in.Config.Table(s))
	}
	return res, err
}

// rank is one rank's run.
func (c *collector) rank(r *train.Rank, in Input, s *parallel.Scheme, o Options, micro int, dry bool) error {
	r.Grp.Meter = comm.NewMeter()
	r.Grp.Alter(o.Alter)
	m, err := model.New(in.Config, s, r.Dev, r.Grp)
	if err != nil {
		return err
	}
	m.Use(o.Recompute)
	m.Shards.Ahead = !o.inOrder
	if err := m.Shards.Load(in.Weights); err != nil {
		return err
	}
	r.Dev.Log = &compute.Log{} // of the step: weights are loaded where there is memory only
	loss, norm := gradient(m, r, in, micro)
	c.res.Ranks[r.Index] = RankResult{Memory: r.Dev.Memory(), Calls: r.Dev.Log.Calls, Meter: r.Grp.Meter, Loss: loss, Norm: norm}
	if !dry {
		c.add(m.Shards, r)
	}
	r.Dev.Log, r.Grp.Meter = nil, nil
	for i := 0; i < o.Steps && !dry; i++ {
		r.Grp.Barrier("timing", s.Mesh.Every())
		start := time.Now()
		gradient(m, r, in, micro)
		r.Grp.Barrier("timing", s.Mesh.Every())
		if d := time.Since(start); r.Index == 0 && (i == 0 || d < c.res.Step) {
			c.res.Step = d
		}
	}
	return nil
}

// gradient is one step without the optimiser, in micro-batches.
func gradient(m *model.Model, r *train.Rank, in Input, micro int) (loss, norm float64) {
	sc := r.Dev.Open()
	m.Shards.ZeroGrads()
	sum, count := accumulate(m, r, in, micro)
	sum = m.Total(sum)
	r.Dev.At("optimizer", -1)
	m.Shards.Settle()
	sq := m.Shards.SquaredNorm()
	loss = r.Dev.Read(sum, 0) / r.Dev.Read(count, 1)
	norm = math.Sqrt(r.Dev.Read(sq, 0))
	r.Dev.Close(sc)
	return loss, norm
}

// accumulate adds up the gradients of all micro-batches; it returns the summed loss and the number of labels.
func accumulate(m *model.Model, r *train.Rank, in Input, micro int) (sum, count tensor.Tensor) {
	whole := data.Batch{B: in.B, S: in.S, IDs: in.IDs, Labels: in.Labels, Mask: in.Mask, Segments: in.Segments}
	batches := make([]model.Batch, micro)
	for i := range batches {
		b := whole.Shard(i, micro)
		batches[i] = m.Put(model.Tokens{B: b.B, S: b.S, IDs: b.IDs, Labels: b.Labels, Mask: b.Mask, Segments: b.Segments})
	}
	count = m.Count(batches...)
	sum = m.Gradients(batches[0], count)
	for _, b := range batches[1:] {
		r.Dev.AddInto(sum, m.Gradients(b, count))
	}
	return sum, count
}

// collector joins the ranks' pieces of gradients.
type collector struct {
	mu   sync.Mutex
	res  *Result
	seen map[string][]bool
}

func (c *collector) add(sh *parallel.Shards, r *train.Rank) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range sh.Pieces() {
		g := r.Dev.Download(p.Grad)
		if c.res.Grads[p.Row.Name] == nil {
			c.res.Grads[p.Row.Name] = make([]float64, p.Row.Elems())
			c.seen[p.Row.Name] = make([]bool, p.Row.Elems())
		}
		whole, seen := c.res.Grads[p.Row.Name], c.seen[p.Row.Name]
		sh.Global(p, func(i, global int) {
			if global >= len(whole) { // padding: its gradient must be zero
				c.res.Spread = max(c.res.Spread, math.Abs(g[i]))
				return
			}
			if seen[global] {
				c.res.Spread = max(c.res.Spread, math.Abs(whole[global]-g[i]))
			}
			whole[global], seen[global] = g[i], true
		})
	}
}

// finish compares the ranks' losses and norms and refuses gradients of which some element rests on no rank.
func (c *collector) finish(t param.Table) error {
	c.res.Loss, c.res.Norm = c.res.Ranks[0].Loss, c.res.Ranks[0].Norm
	for _, r := range c.res.Ranks {
		c.res.Spread = max(c.res.Spread, math.Abs(r.Loss-c.res.Loss), math.Abs(r.Norm-c.res.Norm))
	}
	for i := range t {
		for k, ok := range c.seen[t[i].Name] {
			if !ok {
				return fmt.Errorf("parity: no rank has element %d of the gradient of %s", k, t[i].Name)
			}
		}
	}
	return nil
}
