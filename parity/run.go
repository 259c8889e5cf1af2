package parity

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"heddle/comm"
	"heddle/compute"
	"heddle/model"
	"heddle/parallel"
	"heddle/param"
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
	Keep  model.Policy
	Steps int // timed repetitions; 0: one run, untimed
}

// Gradient runs one batch through a layout and collects the settled gradients of all ranks.
func Gradient(in Input, l parallel.Layout, o Options) (*Result, error) {
	s, err := parallel.New(l, parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Fits(in.B, in.S, in.Config.MLP), in.Config.Fits(in.S)); err != nil {
		return nil, err
	}
	res := &Result{Grads: map[string][]float64{}, Ranks: make([]RankResult, s.Mesh.Size())}
	c := collector{res: res, seen: map[string][]bool{}}
	err = train.Ranks(s.Mesh, o.On, func(r *train.Rank) error {
		r.Grp.Meter = comm.NewMeter()
		r.Grp.Alter(o.Alter)
		m, err := model.New(in.Config, s, r.Dev, r.Grp)
		if err != nil {
			return err
		}
		m.Use(o.Keep)
		if err := m.Shards.Load(in.Weights); err != nil {
			return err
		}
		r.Dev.Log = &compute.Log{} // of the step: weights are loaded where there is memory only
		loss, norm := gradient(m, r, in)
		res.Ranks[r.Index] = RankResult{Memory: r.Dev.Memory(), Calls: r.Dev.Log.Calls, Meter: r.Grp.Meter, Loss: loss, Norm: norm}
		if !o.On.Dry {
			c.add(m.Shards, r)
		}
		r.Dev.Log, r.Grp.Meter = nil, nil
		for i := range o.Steps {
			r.Grp.Barrier("timing", s.Mesh.Every())
			start := time.Now()
			gradient(m, r, in)
			r.Grp.Barrier("timing", s.Mesh.Every())
			if d := time.Since(start); r.Index == 0 && (i == 0 || d < res.Step) {
				res.Step = d
			}
		}
		return nil
	})
	if err == nil && !o.On.Dry {
		err = c.finish(in.Config.Table(s))
	}
	return res, err
}

// gradient is one step without the optimiser.
func gradient(m *model.Model, r *train.Rank, in Input) (loss, norm float64) {
	sc := r.Dev.Open()
	b := m.Put(model.Tokens{B: in.B, S: in.S, IDs: in.IDs, Labels: in.Labels, Mask: in.Mask, Segments: in.Segments})
	m.Shards.ZeroGrads()
	count := m.Count(b)
	sum := m.Total(m.Gradients(b, count))
	r.Dev.At("optimizer", -1)
	m.Shards.Settle()
	sq := m.Shards.SquaredNorm()
	loss = r.Dev.Read(sum, 0) / r.Dev.Read(count, 1)
	norm = math.Sqrt(r.Dev.Read(sq, 0))
	r.Dev.Close(sc)
	return loss, norm
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
