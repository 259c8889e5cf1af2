package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"heddle/cuda"
	"heddle/kernel/gemm"
	"heddle/num"
)

// Shape is a product of a model's training: forward x·Wᵀ, dgrad dy·W with B transposed, wgrad dyᵀ·x with both transposed.
type Shape struct {
	Name   string `json:"name"`
	M      int    `json:"m"`
	N      int    `json:"n"`
	K      int    `json:"k"`
	TransA bool   `json:"ta,omitempty"`
	TransB bool   `json:"tb,omitempty"`
	In     string `json:"in,omitempty"`     // of A and B: bf16, e4m3 or e5m2; "": bf16
	Blocks bool   `json:"blocks,omitempty"` // with factors for blocks of 128, all of them 1 so that the peer computes the same
}

// like is what the shape asks of a configuration.
func (x Shape) like() (gemm.Config, error) {
	in, err := num.BF16, error(nil)
	if x.In != "" {
		in, err = num.ParseDType(x.In)
	}
	if err == nil && in != num.BF16 && in != num.E4M3 && in != num.E5M2 {
		err = fmt.Errorf("bench: %s: operands of type %s, want bf16, e4m3 or e5m2", x.Name, x.In)
	}
	return gemm.Config{In: in, Out: num.BF16, TransA: x.TransA, TransB: x.TransB, Blocks: x.Blocks, StreamK: true}.Full(), err
}

// ReadShapes reads a list such as bench/shapes.json.
func ReadShapes(path string) ([]Shape, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Shape
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("bench: %s: %w", path, err)
	}
	for _, x := range all {
		if _, err := x.like(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, path)
		}
		if x.Name == "" || x.M < 1 || x.N < 1 || x.K < 1 || x.M > 1<<24 || x.N > 1<<24 || x.K > 1<<24 {
			return nil, fmt.Errorf("bench: %s: shape %+v, want a name and sizes of 1..2^24", path, x)
		}
	}
	return all, nil
}

// shapes measures every shape that is not done yet.
func (s *session) shapes(ctx context.Context) error {
	done := map[string]bool{}
	for _, r := range s.cfg.Done {
		done[r.Name] = true
	}
	loaded := map[gemm.Config]contender{}
	for _, x := range s.cfg.Shapes {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w (at %s)", err, x.Name)
		}
		if done[x.Name] {
			continue
		}
		if err := s.named(x, loaded); err != nil {
			return fmt.Errorf("%w (at %s)", err, x.Name)
		}
	}
	return nil
}

// named measures one shape.
func (s *session) named(x Shape, loaded map[gemm.Config]contender) error {
	row := Row{Name: x.Name, M: x.M, N: x.N, K: x.K, TransA: x.TransA, TransB: x.TransB, Mode: "single"}
	kernels, err := s.forShape(x, loaded)
	if err != nil {
		return s.failShape(row, "gemm", err)
	}
	if !s.cfg.Search {
		row.Kernel = kernels[0].name()
	}
	like, err := x.like()
	if err != nil {
		return err
	}
	o, err := newOperands(s.helpers, x.M, x.N, x.K, like.In)
	if err != nil {
		return err
	}
	defer o.free()
	for i := range o.sets {
		o.sets[i].TransA, o.sets[i].TransB = x.TransA, x.TransB
	}
	s.protocol.Sets = len(o.sets)
	peers, times, err := s.peers(o)
	if err != nil {
		return s.failShape(row, "peer", err)
	}
	var own []Side
	for _, k := range kernels {
		if s.cfg.Try != nil {
			s.cfg.Try(k.name(), x.M)
		}
		ours, err := s.ours(k, o)
		if err == nil {
			err = o.agree(s.helpers.stream, ours, peers[0])
		}
		if err == nil {
			own = append(own, ours)
		} else if err := s.failShape(row, k.name(), err); err != nil {
			return err
		}
	}
	if len(own) == 0 {
		return nil
	}
	if s.cfg.Try != nil {
		s.cfg.Try("", x.M)
	}
	row.Recorded = times
	if row.Samples, err = s.protocol.Single(append(own, peers...), s.cfg.Pairs, s.cfg.Idle); err != nil {
		return err
	}
	if len(row.Samples[0].Micros) == 0 {
		return nil // the time was out before the first pair
	}
	if s.cfg.Search {
		return s.add(row)
	}
	s.result.Rows = append(s.result.Rows, row)
	r := Result{Rows: []Row{row}}
	for _, q := range r.Summary() {
		if q.Best {
			s.cfg.Progress("%-32s %7.1f against %7.1f TFLOP/s, %.3f (%.3f..%.3f)  %s", x.Name, q.Ours, q.Theirs, q.Speed.Value, q.Speed.Low, q.Speed.High, row.Kernel)
		}
	}
	return s.cfg.Store(s.result)
}

func (s *session) failShape(row Row, kernel string, err error) error {
	row.Mode, row.Kernel, row.Failure = "failed", kernel, err.Error()
	s.cfg.Progress("%-32s %s: %v", row.Name, kernel, err)
	if err := s.add(row); err != nil {
		return err
	}
	return s.dev.Synchronize() // sticky errors come back here
}

// forShape loads what a shape is measured on: the kernel that is chosen for it, or all that are searched, in its layout.
func (s *session) forShape(x Shape, loaded map[gemm.Config]contender) ([]contender, error) {
	like, err := x.like()
	if err != nil {
		return nil, err
	}
	c, err := gemm.Choose(x.M, x.N, x.K, s.dev.SMs, like)
	if err != nil {
		return nil, err
	}
	configs := []gemm.Config{c}
	if s.cfg.Search {
		configs = append(configs, worthwhile(s.cfg.Configs, c, x, like, s.dev.SMs)...)
	}
	var all []contender
	for _, c := range configs {
		k, err := s.loadOnce(c, loaded)
		if err != nil {
			return nil, err
		}
		if !s.cfg.Skip[k.name()] {
			all = append(all, k)
		}
	}
	return all, nil
}

// worthwhile are the configurations, but for the one chosen, that the cost model does not put far behind the best of them.
func worthwhile(all []gemm.Config, chosen gemm.Config, x Shape, like gemm.Config, sms int) []gemm.Config {
	const far = 1.35 // the model errs by up to 0.3 (gemm.Config.Clocks)
	least := chosen.Clocks(x.M, x.N, x.K, sms)
	var some []gemm.Config
	for _, c := range all {
		if c = c.Like(like); c.Check() == nil && c != chosen {
			least = min(least, c.Clocks(x.M, x.N, x.K, sms))
			some = append(some, c)
		}
	}
	return slices.DeleteFunc(some, func(c gemm.Config) bool { return c.Clocks(x.M, x.N, x.K, sms) > far*least })
}

// loadOnce loads a kernel for all shapes that share it.
func (s *session) loadOnce(c gemm.Config, loaded map[gemm.Config]contender) (contender, error) {
	if k := loaded[c]; k != nil {
		return k, nil
	}
	g, err := gemm.New(c)
	if err != nil {
		return nil, err
	}
	b := &builtGEMM{Gemm: g, run: s.run}
	begin := time.Now()
	k, err := b.load(s.dev, nil)
	if err != nil {
		return nil, err
	}
	k.Name, k.CompileMs = b.name(), time.Since(begin).Seconds()*1e3
	s.result.Kernels = append(s.result.Kernels, k)
	loaded[c] = b
	return b, nil
}

// agree compares rows of C spread over its height with the peer's, C being poisoned before each run.
func (o *operands) agree(s *cuda.Stream, ours, peer Side) error {
	p, step := o.sets[0], max(1, o.sets[0].M/13)
	var got [2][]byte
	for i, side := range []Side{ours, peer} {
		if err := s.Fill(p.C, 0xff, p.M*p.N*2); err != nil { // bf16 NaN everywhere
			return err
		}
		if err := side.Launch(0); err != nil {
			return err
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
		for row := 0; row < p.M; row += step {
			line := make([]byte, p.N*2)
			if err := o.dev.CopyOut(line, p.C+cuda.Ptr(row*p.N*2)); err != nil {
				return err
			}
			got[i] = append(got[i], line...)
		}
	}
	wrong, worst := 0, 0.0
	for i := 0; i < len(got[0]); i += 2 {
		a, b := bf16(got[0][i:]), bf16(got[1][i:])
		if d := math.Abs(a - b); !(d <= 2*p.bound(max(math.Abs(a), math.Abs(b)))) { // a NaN differs
			wrong, worst = wrong+1, max(worst, d)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("bench: %s is wrong: %d of %d elements differ from the peer's, by %.3g at most", ours.Name, wrong, len(got[0])/2, worst)
	}
	return nil
}

// PrintShapes writes the rows with names: each against its faster peer, and the geometric mean.
func PrintShapes(w io.Writer, r *Result) {
	n, sum, least := 0, 0.0, math.Inf(1)
	for _, row := range r.Rows {
		one := Result{Rows: []Row{row}}
		for _, q := range one.Summary() {
			if row.Name == "" || !q.Best {
				continue
			}
			fmt.Fprintf(w, "%-32s %6d×%6d×%6d %7.1f %7.1f  %.3f (%.3f..%.3f)  %s\n", row.Name, row.M, row.N, row.K, q.Ours, q.Theirs, q.Speed.Value, q.Speed.Low, q.Speed.High, row.Kernel)
			n, sum, least = n+1, sum+math.Log(q.Speed.Value), min(least, q.Speed.Value)
		}
	}
	if n > 0 {
		fmt.Fprintf(w, "%d shapes: geometric mean %.3f of the faster peer, least %.3f\n", n, math.Exp(sum/float64(n)), least)
	}
}
