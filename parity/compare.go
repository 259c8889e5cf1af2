package parity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"heddle/compute"
	"heddle/model"
	"heddle/parallel"
	"heddle/parity/formula"
	"heddle/tensor"
	"heddle/train"
)

// Scheme is a layout by its name, checked against a model and a batch.
type Scheme struct {
	Name   string
	Layout parallel.Layout
}

// Schemes reads names and refuses those that the model or a batch of b sequences of s tokens cannot take.
func Schemes(names []string, c model.Config, b, s int) (out []Scheme, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if b < 1 || s < 1 || b > 1<<24 || s > 1<<24 || b*s > 1<<26 {
		return nil, fmt.Errorf("parity: batch of %d sequences of %d tokens; want 1 or more of each, at most %d tokens", b, s, 1<<26)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("parity: no scheme; hint: single,megatron2,ulysses2")
	}
	for _, name := range names {
		l, err := parallel.ParseLayout(name)
		if err != nil {
			return nil, err
		}
		sc, err := parallel.New(l, parallel.Heads{G: c.KV, R: c.Rep()})
		if err == nil {
			err = errors.Join(sc.Fits(b, s, c.MLP), c.Fits(s))
		}
		if err != nil {
			return nil, &SchemeError{name, err}
		}
		out = append(out, Scheme{name, l})
	}
	return out, nil
}

// SchemeError is a scheme that a model or batch cannot take.
type SchemeError struct {
	Scheme string
	Err    error
}

func (e *SchemeError) Error() string { return "scheme " + e.Scheme + ": " + e.Err.Error() }
func (e *SchemeError) Unwrap() error { return e.Err }

// Comparison is several schemes on the same weights and batch, beside one rank in float64.
type Comparison struct {
	Schemes   []Row              `json:"schemes"`
	Model     model.Config       `json:"model"`
	Batch     int                `json:"batch"`
	Seq       int                `json:"seq"`
	DType     string             `json:"dtype"`
	Limit     float64            `json:"limit,omitempty"` // of max_rel_grad_err, and of the norm ratio's distance from 1
	Noise     float64            `json:"noise,omitempty"` // float32: max_rel_grad_err of one rank
	Crossings []formula.Crossing `json:"crossings"`
}

// Row is one scheme. Bytes are what the rank that receives most receives in a step, by axis and operation; memory is the
// maximum over ranks.
type Row struct {
	Scheme     string `json:"scheme"`
	Recompute  string `json:"recompute"`  // none, selective, full, everyN
	Accumulate int    `json:"accumulate"` // micro-batches
	*Measured
	Bytes         formula.Table `json:"bytes"`
	BytesExpected formula.Table `json:"bytes_expected"`
	Saved         int64         `json:"saved_bytes"`
	SavedExpected int64         `json:"saved_bytes_expected"`
	Peak          int64         `json:"peak_bytes"`
}

// Measured is what only a machine that computes can tell.
type Measured struct {
	GradErr   float64 `json:"max_rel_grad_err"` // over tensors, max|Δ| ÷ max|ref|; below 1e-9 × the model's largest |gradient| ÷ a hundredth of that
	NormRatio float64 `json:"grad_norm_ratio"`  // the one furthest from 1 of every tensor above that floor and the whole
	Loss      float64 `json:"loss"`             // nats a token
	StepMS    float64 `json:"step_ms"`          // the fastest of a few
	DrySame   bool    `json:"dry_same"`         // a dry run has the same calls and memory on every rank
	spread    float64 // largest difference between two ranks' copies of one element, and largest gradient of padding: 0
}

// Limits of GradErr and of NormRatio's distance from 1.
//
// float64: sums of the same terms in another order differ by about √terms ulp of the largest term, 1e-14 for a few thousand;
// 1e-12 leaves two digits for depth. float32 has 9 digits less: 1e-14·2²⁹ is 5e-6, again with room for depth.
const (
	LimitF64 = 1e-12
	LimitF32 = 1e-4
)

// Grid is what is compared: every scheme under every schedule; no schedule is one micro-batch and selective recomputation.
type Grid struct {
	Schemes   []Scheme
	Schedules []Schedule
}

// Rows is the number of lines that the grid has.
func (g Grid) Rows() int { return len(g.Schemes) * max(1, len(g.Schedules)) }

func (g Grid) schedules() []Schedule {
	if len(g.Schedules) == 0 {
		return []Schedule{{}}
	}
	return g.Schedules
}

// Compare runs every scheme on a machine and measures it against one rank in float64. A dry machine yields bytes and memory
// only. Before each row it calls next, which may be nil, and looks whether ctx has ended.
func Compare(ctx context.Context, in Input, g Grid, on train.Machine, next func(name string)) (*Comparison, error) {
	c := &Comparison{Model: in.Config, Batch: in.B, Seq: in.S, DType: on.Type.String(), Crossings: crossings(in, g.Schemes, on.Type)}
	var ref *Result
	if !on.Dry {
		var err error
		if ref, err = Gradient(in, parallel.Layout{}, Options{On: train.Machine{Type: tensor.F64}}); err != nil {
			return nil, err
		}
		c.Limit = LimitF64
		if on.Type == tensor.F32 {
			c.Limit = LimitF32
			one, err := Gradient(in, parallel.Layout{}, Options{On: on})
			if err != nil {
				return nil, err
			}
			c.Noise = measure(ref, one).GradErr
		}
	}
	for _, under := range g.schedules() {
		for _, s := range g.Schemes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if next != nil {
				next(s.Name)
			}
			row, err := compare(in, s, Options{On: on, Schedule: under}, ref)
			if err != nil {
				return nil, fmt.Errorf("scheme %s: %w", s.Name, err)
			}
			c.Schemes = append(c.Schemes, row)
		}
	}
	return c, nil
}

const timedSteps = 3

// Needs is about how many bytes Compare holds at once on a machine that computes: the ranks of the largest scheme at their
// peaks, and the reference's gradients beside the scheme's on the host.
func Needs(in Input, g Grid, t tensor.DType) (int64, error) {
	peak := func(s Scheme, under Schedule) (n int64, err error) {
		r, err := Gradient(in, s.Layout, Options{On: train.Machine{Type: t, Dry: true}, Schedule: under})
		if err != nil {
			return 0, fmt.Errorf("scheme %s: %w", s.Name, err)
		}
		for _, rank := range r.Ranks {
			n += int64(rank.Memory.Peak)
		}
		return n, nil
	}
	most, err := peak(Scheme{"single", parallel.Layout{}}, Schedule{})
	if err != nil {
		return 0, err
	}
	most *= int64(tensor.F64.Size() / t.Size()) // as the reference
	for _, s := range g.Schemes {
		for _, under := range g.schedules() {
			n, err := peak(s, under)
			if err != nil {
				return 0, err
			}
			most = max(most, n)
		}
	}
	one, err := parallel.New(parallel.Layout{}, parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
	if err != nil {
		return 0, err
	}
	return most + 2*8*int64(in.Config.Table(one).Elems()), nil
}

func compare(in Input, s Scheme, o Options, ref *Result) (Row, error) {
	if !o.On.Dry {
		o.Steps = timedSteps
	}
	r, err := Gradient(in, s.Layout, o)
	if err != nil {
		return Row{}, err
	}
	m, l, f := shape(in.Config, in.B, in.S, o.On.Type), layout(s.Layout), o.Schedule.formula()
	row := Row{Scheme: s.Name, Recompute: o.Recompute.Name(), Accumulate: max(1, o.Accumulate), Bytes: r.bytes(), BytesExpected: formula.Bytes(m, l, f), SavedExpected: formula.Saved(m, l, f)}
	for _, rank := range r.Ranks {
		row.Saved, row.Peak = max(row.Saved, int64(rank.Memory.Max[compute.Saved])), max(row.Peak, int64(rank.Memory.Peak))
	}
	if ref != nil {
		x := measure(ref, r)
		x.StepMS = float64(r.Step) / float64(time.Millisecond)
		if x.DrySame, err = drySame(in, s.Layout, o, r); err != nil {
			return Row{}, err
		}
		row.Measured = &x
	}
	return row, nil
}

// measure compares gradients with the reference's. What is not a number counts as infinitely wrong.
//
// A tensor below the floor has no gradient but for rounding, as q and k of a sequence of one token. Rounding is some 1e-16 (float32: 6e-8) of the gradients it
// comes from, so such a tensor counts over a hundredth of the largest: over the floor itself it would be off by 1e-7 (float32: 40) in every scheme.
func measure(ref, r *Result) Measured {
	most := 0.0
	for _, g := range ref.Grads {
		most = max(most, largest(g))
	}
	floor, least := 1e-9*most, 1e-2*most
	x := Measured{Loss: number(r.Loss), NormRatio: over(r.Norm, ref.Norm, 1), spread: number(r.Spread)}
	for name, g := range ref.Grads {
		top, diff, sq, sqRef := largest(g), 0.0, 0.0, 0.0
		for i, want := range g {
			got := r.Grads[name][i]
			diff = max(diff, math.Abs(got-want)) // max of NaN is NaN
			sq, sqRef = sq+got*got, sqRef+want*want
		}
		if top < floor {
			x.GradErr = max(x.GradErr, over(diff, least, 0))
			continue
		}
		x.GradErr = max(x.GradErr, over(diff, top, 0))
		if ratio := math.Sqrt(over(sq, sqRef, 1)); math.Abs(ratio-1) > math.Abs(x.NormRatio-1) {
			x.NormRatio = ratio
		}
	}
	return x
}

// over is a ÷ b, and same where both are zero: a vocabulary of one word has no gradient at all.
func over(a, b, same float64) float64 {
	if a == 0 && b == 0 {
		return same
	}
	return number(a / b)
}

// number is x, or the largest number in place of what JSON cannot say.
func number(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.MaxFloat64
	}
	return x
}

// Broken lists what is beyond the limits; nothing when all is well.
func (c *Comparison) Broken() (out []string) {
	for _, r := range c.Schemes {
		if r.Recompute != "selective" || r.Accumulate > 1 {
			r.Scheme += fmt.Sprintf(" (recomputation %s, %d micro-batches)", r.Recompute, r.Accumulate)
		}
		if m := r.Measured; m != nil {
			if m.GradErr > c.Limit {
				out = append(out, fmt.Sprintf("%s: a gradient is off by %.1e, at most %.0e", r.Scheme, m.GradErr, c.Limit))
			}
			if d := math.Abs(m.NormRatio - 1); d > c.Limit {
				out = append(out, fmt.Sprintf("%s: a gradient's norm is off by %.1e, at most %.0e", r.Scheme, d, c.Limit))
			}
		}
		if m := r.Measured; m != nil && !m.DrySame {
			out = append(out, fmt.Sprintf("%s: a dry run has other calls or other memory", r.Scheme))
		}
		if m := r.Measured; m != nil && m.spread != 0 {
			out = append(out, fmt.Sprintf("%s: two ranks' copies of a gradient differ by %.1e", r.Scheme, m.spread))
		}
		if !maps.Equal(r.Bytes, r.BytesExpected) {
			out = append(out, fmt.Sprintf("%s: received %v bytes, the closed form says %v", r.Scheme, r.Bytes, r.BytesExpected))
		}
		if r.Saved != r.SavedExpected {
			out = append(out, fmt.Sprintf("%s: keeps %d bytes of activations, the closed form says %d", r.Scheme, r.Saved, r.SavedExpected))
		}
	}
	return append(out, c.order()...)
}

// crossings are those of every number of ranks for which both pure schemes are compared.
func crossings(in Input, schemes []Scheme, t tensor.DType) []formula.Crossing {
	out := []formula.Crossing{}
	for _, a := range schemes {
		p := a.Layout.TP
		if a.Name != fmt.Sprintf("megatron%d", p) {
			continue
		}
		for _, b := range schemes {
			if b.Name == fmt.Sprintf("ulysses%d", p) {
				out = append(out, formula.Cross(shape(in.Config, in.B, in.S, t), p))
				break
			}
		}
	}
	return out
}
