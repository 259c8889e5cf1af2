package rl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
	"heddle/rl/grpo"
	"heddle/tensor"
	"heddle/train"
)

var small = model.Config{Layers: 1, Hidden: 8, Heads: 2, KV: 2, Head: 4, MLP: 12, Vocab: 7, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.3}

func newLearner(t testing.TB, m model.Config, l parallel.Layout, dtype tensor.DType) *Learner {
	t.Helper()
	out, err := NewLearner(LearnerConfig{Model: m, Parallel: l, Optim: optim.Config{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Clip: 1}, Machine: train.Machine{Type: dtype}}, nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

// rollouts are two groups of three random completions with what a behaviour policy near the learner's would have left.
func rollouts(t testing.TB, l *Learner, r *rand.Rand) (rows [][]row, groups []grpo.Group) {
	t.Helper()
	for range 2 {
		var list []row
		for range 3 {
			x := row{from: 2}
			for range 4 + r.IntN(3) {
				x.ids = append(x.ids, int32(r.IntN(7)))
			}
			list = append(list, x)
		}
		lp, err := l.LogProbs(list)
		if err != nil {
			t.Fatal(err)
		}
		var g grpo.Group
		for i := range list {
			s := grpo.Sample{Reward: float64(i % 2)}
			for _, v := range lp[i] {
				old := v + 0.2*r.NormFloat64()
				s.Tokens = append(s.Tokens, grpo.Token{Drawn: old + 0.1*r.NormFloat64(), Proximal: old, Ref: old + 0.3*r.NormFloat64(), Entropy: r.Float64(), Weight: 1})
			}
			g = append(g, s)
		}
		rows, groups = append(rows, list), append(groups, g)
	}
	return rows, groups
}

// The gradient of every parameter, for every preset, on one rank and under dp, tp and fsdp: it is Σ g·∂log π/∂θ with the loss's derivatives g, which rl/grpo
// compares with differences of its own; here ∂log π/∂θ comes from central differences of the forward pass in float64. h = 1e-5: truncation h²/6·f‴ ≈ 1e-11·f‴,
// rounding 2⁻⁵³·20/h ≈ 2e-10; 1e-6 of the largest gradient is asked for, and met with room.
func TestPolicyGradientsAreCentralDifferences(t *testing.T) {
	for _, layout := range []parallel.Layout{{}, {DP: 2}, {TP: 2}, {FSDP: 2}} {
		l := newLearner(t, small, layout, tensor.F64)
		for _, name := range []string{"grpo", "dr-grpo", "dapo", "gspo", "cispo", "rloo", "80/20"} {
			c, err := grpo.Preset(name)
			if err != nil {
				t.Fatal(err)
			}
			c.Length, c.ImportanceCap = 8, 2
			byGroup, groups := rollouts(t, l, rand.New(rand.NewPCG(5, 6)))
			b := grpo.Advantages(c, groups)
			var rows []row
			for _, r := range b.Rows {
				rows = append(rows, byGroup[r.Group][r.Sample])
			}
			checkGradient(t, fmt.Sprintf("%s on %+v", name, layout), l, rows, b)
		}
	}
}

func checkGradient(t *testing.T, what string, l *Learner, rows []row, b *grpo.Batch) {
	t.Helper()
	lp, err := l.LogProbs(rows)
	if err != nil {
		t.Fatal(err)
	}
	slopes, _ := b.Loss(lp)
	loss := func() (sum float64) {
		lp, err := l.LogProbs(rows)
		if err != nil {
			t.Fatal(err)
		}
		for i := range lp {
			for k := range lp[i] {
				sum += slopes[i][k] * lp[i][k]
			}
		}
		return sum
	}
	got := gradients(t, l, rows, b)
	largest := 0.0
	for _, g := range got {
		for _, v := range g {
			largest = max(largest, math.Abs(v))
		}
	}
	weights, err := l.Weights() // float32, but these came from it
	if err != nil {
		t.Fatal(err)
	}
	const h = 1e-5
	r := rand.New(rand.NewPCG(8, 9))
	for name, w := range weights {
		for range 2 {
			i := r.IntN(len(w))
			nudge(t, l, name, i, h)
			up := loss()
			nudge(t, l, name, i, -2*h)
			down := loss()
			nudge(t, l, name, i, h)
			if want := (up - down) / (2 * h); math.Abs(got[name][i]-want) > 1e-6*largest {
				t.Errorf("%s: %s[%d]: %.9g, difference %.9g, largest %.3g", what, name, i, got[name][i], want, largest)
			}
		}
	}
}

// gradients are those of one Reinforce, whole, without the optimiser.
func gradients(t *testing.T, l *Learner, rows []row, b *grpo.Batch) map[string][]float64 {
	t.Helper()
	p := l.pack(rows)
	out := map[string][]float64{}
	var mu = &shared{by: map[int]grpo.Metrics{}}
	err := l.do(func(r *replica) error {
		r.model.Shards.ZeroGrads()
		sc := r.Dev.Open()
		r.model.PolicyGradients(r.model.NewBatch(p.b, p.s, p.ids, p.labels, p.mask), func(lp []float64) []float64 { return r.weigh(p, rows, b, 0, lp, mu) })
		r.Dev.Close(sc)
		r.model.Shards.Settle()
		for _, piece := range r.model.Shards.Pieces() {
			host := r.Dev.Download(piece.Grad)
			mu.mu.Lock()
			if out[piece.Row.Name] == nil {
				out[piece.Row.Name] = make([]float64, piece.Row.Elems())
			}
			r.model.Shards.Global(piece, func(i, global int) {
				if global < len(out[piece.Row.Name]) {
					out[piece.Row.Name][global] = host[i]
				}
			})
			mu.mu.Unlock()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// nudge moves one weight wherever it lies.
func nudge(t *testing.T, l *Learner, name string, at int, by float64) {
	t.Helper()
	err := l.do(func(r *replica) error {
		for _, p := range r.model.Shards.Pieces() {
			if p.Row.Name != name {
				continue
			}
			host := r.Dev.Download(p.Weight)
			r.model.Shards.Global(p, func(i, global int) {
				if global == at {
					host[i] += by
				}
			})
			r.Dev.Upload(p.Weight, host)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Micro-batches and layouts change the order of sums alone: a step's metrics agree to 1e-12 in float64, and its weights to what Adam makes of that.
func TestStepIsTheSameInMicroBatchesAndLayouts(t *testing.T) {
	var want map[string][]float32
	var loss float64
	for i, x := range []struct {
		layout parallel.Layout
		rows   int
	}{{}, {rows: 2}, {layout: parallel.Layout{DP: 2}}, {layout: parallel.Layout{DP: 2}, rows: 4}, {layout: parallel.Layout{TP: 2}}, {layout: parallel.Layout{FSDP: 2}, rows: 3}} {
		l := newLearner(t, small, x.layout, tensor.F64)
		byGroup, groups := rollouts(t, l, rand.New(rand.NewPCG(5, 6)))
		c, _ := grpo.Preset("dapo")
		b := grpo.Advantages(c, groups)
		var rows []row
		for _, r := range b.Rows {
			rows = append(rows, byGroup[r.Group][r.Sample])
		}
		l.cfg.Rows = x.rows
		m, _, err := l.Reinforce(rows, b, 1e-3)
		if err != nil {
			t.Fatal(err)
		}
		w, err := l.Weights()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want, loss = w, m.Loss
			continue
		}
		if math.Abs(m.Loss-loss) > 1e-12 {
			t.Errorf("%+v: loss %.17g, want %.17g", x, m.Loss, loss)
		}
		for name := range want {
			for k := range want[name] {
				if math.Abs(float64(w[name][k]-want[name][k])) > 1e-6 {
					t.Fatalf("%+v: %s[%d] is %g, want %g", x, name, k, w[name][k], want[name][k])
				}
			}
		}
	}
}

// A batch of which nothing is left leaves the weights as they are.
func TestEmptyBatchLeavesTheWeights(t *testing.T) {
	l := newLearner(t, small, parallel.Layout{DP: 2}, tensor.F32)
	before, _ := l.Weights()
	c, _ := grpo.Preset("dapo")
	if _, _, err := l.Reinforce(nil, grpo.Advantages(c, nil), 1); err != nil || l.Updates != 0 {
		t.Fatalf("%v, %d updates", err, l.Updates)
	}
	after, _ := l.Weights()
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("the weights moved")
	}
}

// A rank that fails or panics ends the others, the error says which, and nothing hangs, whether the others have finished their job or wait in a collective.
func TestFailingRankEndsTheLearner(t *testing.T) {
	for _, how := range []string{"error", "panic", "panic while the other waits"} {
		l := newLearner(t, small, parallel.Layout{DP: 2}, tensor.F32)
		err := l.do(func(r *replica) error {
			if r.Index == 1 {
				if how == "error" {
					return fmt.Errorf("broken")
				}
				panic("broken")
			}
			if how == "panic while the other waits" {
				r.Grp.Barrier("wait", r.Dev.Mesh.Every())
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%s: %v", how, err)
		}
		if err := l.do(func(*replica) error { return nil }); err == nil {
			t.Errorf("%s: a learner that has ended takes a job", how)
		}
	}
	l := newLearner(t, small, parallel.Layout{}, tensor.F32)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.do(func(*replica) error { return nil }); err == nil || l.Close() != nil {
		t.Errorf("closed: %v", err)
	}
}

func TestLayoutsThatCutCompletionsAreRefused(t *testing.T) {
	_, err := NewLearner(LearnerConfig{Model: small, Parallel: parallel.Layout{CP: 2}}, nil, 1)
	if err == nil || !strings.Contains(err.Error(), "hint") {
		t.Errorf("%v", err)
	}
}
