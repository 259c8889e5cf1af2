package rl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"heddle/compute/cpu/blas"
	"heddle/model"
	"heddle/model/hf"
	"heddle/rl/tasks"
	"heddle/sample"
	"heddle/sample/cpu"
)

// Decoder is what a generator's worker draws from.
type Decoder interface {
	sample.Decoder
	Load(read cpu.Read, version uint64) error
}

// Generator draws completions. Its workers have weights of their own: they may be older than a learner's, and lie in another layout.
type Generator struct {
	Version uint64 // of the weights

	codec   tasks.Codec
	workers []Decoder
	pools   []*blas.Pool
	batch   int
}

// NewGenerator makes workers on the CPU, one thread each. context is the most tokens of prompt and completion.
func NewGenerator(m model.Config, codec tasks.Codec, workers, context int) (*Generator, error) {
	g := &Generator{codec: codec, batch: 64}
	for range workers {
		pool := blas.NewPool(1)
		g.pools = append(g.pools, pool)
		d, err := cpu.New(m.ToHF(context), pool)
		if err != nil {
			g.Close()
			return nil, err
		}
		g.workers = append(g.workers, d)
	}
	return g, nil
}

// Close ends the workers' threads.
func (g *Generator) Close() {
	for _, p := range g.pools {
		p.Close()
	}
	g.pools = nil
}

// Sync puts weights in place of those before.
func (g *Generator) Sync(values map[string][]float32, version uint64) error {
	read := func(p hf.Param) ([]float32, error) {
		v, ok := values[p.Ours()]
		if !ok {
			return nil, fmt.Errorf("rl: there is no parameter %s", p.Ours())
		}
		return v, nil
	}
	errs := make([]error, len(g.workers))
	var wg sync.WaitGroup
	for i, w := range g.workers {
		wg.Go(func() { errs[i] = w.Load(read, version) })
	}
	wg.Wait()
	g.Version = version
	return errors.Join(errs...)
}

// Draw says what is to be drawn of each prompt.
type Draw struct {
	Starts      []Start
	Streams     uint64 // of the first completion; the i-th of start j has Streams + j·Group + i
	Group       int    // completions of each start
	MaxTokens   int    // after the prompt, those of a prefix included
	Temperature float64
	Seed        uint64
	Top         int // likeliest tokens kept with each
	Hidden      int
	Hook        Hook
	Between     func() error // called before each token of all sequences; nil: nothing
}

// Start is a prompt, and the completion's first tokens where it is to go on from there.
type Start struct {
	Prompt  tasks.Prompt
	Prefix  []int32
	Streams []uint64 // of its completions; nil: Draw.Streams and Draw.Group say
}

// Starts are prompts without prefixes.
func Starts(prompts []tasks.Prompt) []Start {
	out := make([]Start, len(prompts))
	for i, p := range prompts {
		out[i].Prompt = p
	}
	return out
}

// Hook is sample.Hook with the group that the sequence belongs to. Workers call it at the same time.
type Hook func(*Group, *sample.State) sample.Action

// Drawn is what came of it.
type Drawn struct {
	Groups  []*Group
	Bill    sample.Bill
	TooLong int // prompts that leave no room for a completion; they have no group
}

// Generate draws a group for each prompt. What a completion becomes depends on its stream, not on the number of workers.
func (g *Generator) Generate(ctx context.Context, d Draw) (*Drawn, error) {
	out := &Drawn{}
	groups := make([]*Group, len(d.Starts))
	for i, s := range d.Starts {
		p := s.Prompt
		ids, err := g.codec.Prompt(p.Text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, s.Prefix...)
		if len(ids) == 0 || len(ids) >= g.workers[0].Context() {
			out.TooLong++
			continue
		}
		groups[i] = &Group{Prompt: p, IDs: ids, Prefix: s.Prefix, start: i}
	}
	if err := g.run(ctx, d, groups, &out.Bill); err != nil {
		return nil, err
	}
	for _, x := range groups {
		if x != nil {
			out.Groups = append(out.Groups, x)
		}
	}
	return out, nil
}

// run steps all workers together, a token of every sequence at a time.
func (g *Generator) run(ctx context.Context, d Draw, groups []*Group, bill *sample.Bill) error {
	shares := make([]*share, len(g.workers))
	for w := range shares {
		lo, hi := w*len(groups)/len(g.workers), (w+1)*len(groups)/len(g.workers)
		var err error
		if shares[w], err = g.share(g.workers[w], d, groups[lo:hi]); err != nil {
			return err
		}
	}
	for more := true; more; {
		if d.Between != nil {
			if err := d.Between(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			for _, s := range shares {
				s.gen.Interrupt()
			}
			return ctx.Err()
		}
		var wg sync.WaitGroup
		for _, s := range shares[1:] {
			wg.Go(s.step)
		}
		shares[0].step()
		wg.Wait()
		more = false
		for _, s := range shares {
			if s.err != nil {
				return s.err
			}
			more = more || s.more
		}
	}
	for _, s := range shares {
		s.collect()
		addBill(bill, s.gen.Bill())
	}
	return nil
}

func addBill(to *sample.Bill, b sample.Bill) {
	to.Prompt, to.Sampled, to.Kept = to.Prompt+b.Prompt, to.Sampled+b.Sampled, to.Kept+b.Kept
	to.Discarded, to.Injected, to.Computed = to.Discarded+b.Discarded, to.Injected+b.Injected, to.Computed+b.Computed
}

// share is one worker's part of a draw.
type share struct {
	gen    *sample.Generator
	groups []*Group // by the generator's prompts
	most   int      // tokens of a completion, those of a prefix included
	more   bool
	err    error
}

func (g *Generator) share(dec Decoder, d Draw, groups []*Group) (*share, error) {
	s := &share{more: true, most: d.MaxTokens}
	o := sample.Options{MaxTokens: d.MaxTokens, Temperature: d.Temperature, Seed: d.Seed, Stop: []int32{g.codec.End()}, Batch: g.batch, Top: d.Top, Hidden: d.Hidden}
	o.Hook = func(st *sample.State) (a sample.Action) {
		g := s.groups[st.Sequence.Prompt]
		if d.Hook != nil {
			a = d.Hook(g, st)
		}
		if st.Sequence.End == sample.Running && d.MaxTokens > 0 && len(g.Prefix)+len(st.Sequence.Tokens) >= d.MaxTokens {
			a.Stop = true // the prefix counts
		}
		return a
	}
	gen, err := sample.New(dec, o)
	if err != nil {
		return nil, err
	}
	s.gen = gen
	for _, x := range groups {
		if x == nil {
			continue
		}
		p := sample.Prompt{IDs: x.IDs, Streams: d.Starts[x.start].Streams}
		for k := range d.Group {
			if d.Starts[x.start].Streams == nil {
				p.Streams = append(p.Streams, d.Streams+uint64(x.start*d.Group+k))
			}
		}
		if err := gen.Add(p); err != nil {
			return nil, err
		}
		s.groups = append(s.groups, x)
	}
	return s, nil
}

// step draws a token of every sequence. A panic of decoder or hook is an error: generation may be tried again.
func (s *share) step() {
	defer func() {
		if p := recover(); p != nil {
			s.err = fmt.Errorf("rl: generation: %v\n%s", p, debug.Stack())
		}
	}()
	if s.more {
		s.more, s.err = s.gen.Step()
	}
}

func (s *share) collect() {
	for _, q := range s.gen.Sequences {
		if !q.Discarded {
			g := s.groups[q.Prompt]
			if q.End == sample.ByHook && s.most > 0 && len(g.Prefix)+len(q.Tokens) >= s.most {
				q.End = sample.ByLength
			}
			g.Rollouts = append(g.Rollouts, &Rollout{Stream: q.Stream, Tokens: q.Tokens, End: q.End, Lost: tasks.Kept})
		}
	}
}
