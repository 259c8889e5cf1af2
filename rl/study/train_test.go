package study

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"heddle/rl"
)

// always fires after so many tokens.
type always struct{}

func (always) Predict(*Trace, int) float64 { return 0 }

// A treatment replaces what fired, or adds to the group; what stays of the old rollout stays, token for token, and the bill counts what was drawn: of a rollout
// of six tokens cut after one, a restart pays 1 + 6.
func TestTreatmentReplacesAndCounts(t *testing.T) {
	w := planted{chance, 0.1, 0.3}
	for _, x := range []struct {
		r      recipe
		size   int
		tokens int
	}{{recipe{act: Restart}, 4, 4 * 7}, {recipe{act: ForkCut}, 4, 4 * 7}, {recipe{act: ForkCut, tree: true}, 8, 4 * 12}, {recipe{act: Restart, random: true}, 4, 4 * 7}} {
		d, err := w.Draw(context.Background(), rl.Draw{Starts: rl.Starts(prompts(1)), Group: 4, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		d.Bill.Sampled = 24
		old := append([]*rl.Rollout(nil), d.Groups[0].Rollouts...)
		tr := &treatment{recipe: x.r, trigger: threshold{always{}, 0.5}, r: rand.New(rand.NewPCG(1, 1))}
		err = tr.apply(context.Background(), d, func(ctx context.Context, more rl.Draw) (*rl.Drawn, error) {
			more.Streams, more.Seed = 1<<20, 3
			out, err := w.Draw(ctx, more)
			for _, g := range out.Groups {
				out.Bill.Sampled += len(g.Rollouts[0].Tokens)
			}
			return out, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(d.Groups[0].Rollouts); n != x.size || d.Bill.Sampled != x.tokens || tr.rate() != 1 {
			t.Errorf("%+v: %d rollouts, %d tokens on the bill, %g treated", x.r, n, d.Bill.Sampled, tr.rate())
		}
		for i, r := range d.Groups[0].Rollouts {
			if len(r.Tokens) != plantedLength || i < 4 && x.r.tree && r != old[i] || i < 4 && !x.r.tree && r == old[i] {
				t.Errorf("%+v: rollout %d is %+v", x.r, i, r)
			}
		}
	}
	never := &treatment{recipe: recipe{act: Restart}, trigger: threshold{always{}, -1}, r: rand.New(rand.NewPCG(1, 1))}
	d, _ := w.Draw(context.Background(), rl.Draw{Starts: rl.Starts(prompts(1)), Group: 2, Seed: 3})
	if err := never.apply(context.Background(), d, nil); err != nil || never.rate() != 0 || len(d.Groups[0].Rollouts) != 2 {
		t.Errorf("nothing fires: %v, %g", err, never.rate())
	}
}

// Every arm trains the same policy until it has drawn its tokens, no more than a round too many; arms that treat do, the others do not; treated rollouts are
// learned from with ratios of 1, because one policy drew all their tokens.
func TestArmsTrainToEqualTokens(t *testing.T) {
	p := policy(t)
	c := Default()
	c.Group = 8
	out := &Training{Tokens: 1500}
	for range 2 {
		if err := out.Train(context.Background(), c, p, t.Logf); err != nil {
			t.Fatal(err)
		}
	}
	out.Finish()
	if out.Seeds != 2 || math.Abs(out.Before-p.Success) > 1e-12 || len(out.Arms) != len(recipes()) {
		t.Fatalf("%+v", out)
	}
	for i, a := range out.Arms {
		treats := recipes()[i].act != ""
		if (a.Fired > 0) != treats || len(a.Each) != 2 {
			t.Errorf("%s: %g treated", a.Name, a.Fired)
		}
		for _, run := range a.Each {
			if round := run.Tokens / run.Steps; run.Tokens < out.Tokens || run.Tokens > out.Tokens+3*round || len(run.Curve) < 2 || run.Curve[len(run.Curve)-1].Success != run.Success {
				t.Errorf("%s: %+v", a.Name, run)
			}
		}
		if a.Each[0].Success != a.Each[1].Success || a.Over.Low != a.Over.High { // the same seed twice
			t.Errorf("%s: the same seed came to %g and %g", a.Name, a.Each[0].Success, a.Each[1].Success)
		}
	}
	if o := out.Arms[0].Over; o.Value != 0 {
		t.Errorf("GRPO over itself: %+v", o)
	}
	tr, err := p.Trainer(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	fire := &treatment{recipe: recipe{act: ForkEntropy}, trigger: threshold{always{}, 0.5}, r: rand.New(rand.NewPCG(1, 1))}
	tr.Treat = fire.apply
	rep, err := tr.Step(context.Background())
	if err != nil || rep.Metrics.RatioMost != 1 || fire.rate() != 1 {
		t.Errorf("%v, ratio %g, %g treated", err, rep.Metrics.RatioMost, fire.rate())
	}
}
