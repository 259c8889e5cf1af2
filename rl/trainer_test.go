package rl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"heddle/rl/tasks"
	"heddle/sample"
	"heddle/tensor"
)

// tiny is a trainer whose policy has been taught for a moment.
func tiny(t testing.TB, change func(*Config)) (*Trainer, Config) {
	t.Helper()
	c, err := Preset("path", "tiny")
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c)
	}
	return start(t, c, nil), c
}

func start(t testing.TB, c Config, task tasks.Task) *Trainer {
	t.Helper()
	p, err := NewProblem(c.Task, c.Seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if task != nil {
		p.Task = task
	}
	c.Model.Vocab = p.Codec.Size()
	l := newLearner(t, c.Model, c.Parallel, tensor.F32)
	teach, err := newTeacher(&c, p, c.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		rows, err := teach.batch(i)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Supervise(rows, 1e-2); err != nil {
			t.Fatal(err)
		}
	}
	w, err := l.Weights()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := NewTrainer(&c, p, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// wrong is a task whose verifier misbehaves in a way; other prompts are judged as ever.
type wrong struct {
	*tasks.Path
	how string
}

func (w wrong) Verify(ctx context.Context, p tasks.Prompt, completion string) (tasks.Verdict, error) {
	v, err := w.Path.Verify(ctx, p, completion)
	if (p.ID[1]+p.ID[3])%2 == 0 {
		switch w.how {
		case "panic":
			panic("verifier bug")
		case "error":
			return v, errors.New("no connection")
		case "nan":
			v.Reward = math.NaN()
		case "inf":
			v.Reward = math.Inf(1)
		}
	}
	return v, err
}

// A verifier that fails on some prompts costs those rollouts and nothing else: they are counted, with the first reason, and the run goes on.
func TestRunSurvivesAFailingVerifier(t *testing.T) {
	for how, says := range map[string]string{"panic": "verifier bug", "error": "no connection", "nan": "reward NaN", "inf": "reward +Inf"} {
		c, _ := Preset("path", "tiny")
		p, err := NewProblem(c.Task, c.Seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := start(t, c, wrong{p.Task.(*tasks.Path), how})
		for range 2 {
			rep, err := tr.Step(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			n := rep.Faults.Unscorable
			if n == 0 || n == rep.Counts.Samples || n%c.Reinforce.Group != 0 || rep.Counts.Unscorable != n || rep.Counts.Unscored*c.Reinforce.Group != n || !strings.Contains(rep.Faults.First, says) {
				t.Errorf("%s: %+v, %+v", how, rep.Faults, rep.Counts)
			}
			if !finite(rep.Metrics.Loss) || !finite(rep.GradNorm) {
				t.Errorf("%s: loss %g, norm %g", how, rep.Metrics.Loss, rep.GradNorm)
			}
		}
	}
}

// Dynamic sampling draws until there are enough groups of mixed rewards, and no longer than it may.
func TestDynamicSamplingKeepsMixedGroups(t *testing.T) {
	tr, c := tiny(t, func(c *Config) { c.Reinforce.Resample = 3 })
	rep, err := tr.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if rep.Counts.Mixed != rep.Counts.Groups || rep.Counts.Groups > c.Reinforce.Prompts || rep.Draws < 1 || rep.Draws > 3 || rep.Counts.Groups < c.Reinforce.Prompts && rep.Draws != 3 {
		t.Errorf("%+v after %d draws", rep.Counts, rep.Draws)
	}
	if got := rep.Counts.Groups + rep.Equal; got > rep.Draws*c.Reinforce.Prompts {
		t.Errorf("%d groups of %d draws", got, rep.Draws)
	}
}

// On policy the ratio of the learner to the sampler is exactly 1: log-probabilities have the same bits.
func TestRatioIsOneOnPolicy(t *testing.T) {
	tr, _ := tiny(t, func(c *Config) { c.Reinforce.Loss.ImportanceCap, c.Reinforce.Loss.DropEqual = 2, false })
	for range 3 {
		rep, err := tr.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if m := rep.Metrics; m.RatioMost != 1 || m.Drift != 0 || m.Capped != 0 || rep.Metrics.Tokens == 0 {
			t.Errorf("%+v", m)
		}
		if len(rep.Stale.Histogram) != 1 || rep.Stale.Histogram[0] != rep.Metrics.Tokens {
			t.Errorf("%v of %d tokens", rep.Stale.Histogram, rep.Metrics.Tokens)
		}
	}
}

// The reference is the policy that reinforcement began with: the divergence is 0 at first, then grows.
func TestDivergenceFromTheReference(t *testing.T) {
	tr, _ := tiny(t, func(c *Config) { c.Reinforce.Loss.KL, c.Reinforce.LR = 0.01, 1e-2 })
	for i := range 4 {
		rep, err := tr.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if kl := rep.Metrics.KL; i == 0 && kl != 0 || i == 3 && !(kl > 1e-6) {
			t.Errorf("step %d: %g", i, kl)
		}
	}
}

// Over a few epochs on the same rollouts the policy leaves the sampler, and ratios with it.
func TestEpochsMoveTheRatio(t *testing.T) {
	tr, _ := tiny(t, func(c *Config) { c.Reinforce.Epochs, c.Reinforce.LR = 4, 1e-2 })
	rep, err := tr.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !(rep.Metrics.RatioMost > 1.001) || tr.learner.Updates != 4 || tr.Steps != 1 {
		t.Errorf("%+v after %d updates of %d rounds", rep.Metrics, tr.learner.Updates, tr.Steps)
	}
}

// long is a task one of whose prompts leaves no room.
type long struct{ *tasks.Path }

func (l long) Prompt(d tasks.Draw) tasks.Prompt {
	p := l.Path.Prompt(d)
	if d.Index%4 == 0 {
		p.Text = strings.Repeat(p.Text, 40)
	}
	return p
}

func TestPromptsLongerThanTheContextAreLeftOutAndCounted(t *testing.T) {
	c, _ := Preset("path", "tiny")
	p, err := NewProblem(c.Task, c.Seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := start(t, c, long{p.Task.(*tasks.Path)})
	rep, err := tr.Step(context.Background())
	if err != nil || rep.TooLong != c.Reinforce.Prompts/4 || rep.Counts.Groups != c.Reinforce.Prompts*3/4 {
		t.Errorf("%v: %d too long, %d groups", err, rep.TooLong, rep.Counts.Groups)
	}
}

// Completions do not depend on how many workers draw them, and a prefix goes on as it would have with the same stream.
func TestCompletionsDoNotDependOnWorkers(t *testing.T) {
	tr, _ := tiny(t, nil)
	w, _ := tr.Weights()
	prompts := HeldOut(tr.problem.Task, 1, 4)
	var want []*Group
	for _, workers := range []int{1, 2, 3} {
		g, err := NewGenerator(tr.learner.cfg.Model, tr.problem.Codec, workers, tr.problem.Context)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if err := g.Sync(w, 0); err != nil {
			t.Fatal(err)
		}
		d := Draw{Starts: Starts(prompts), Group: 5, MaxTokens: tr.problem.Tokens, Temperature: 1, Seed: 4}
		got, err := g.Generate(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got.Groups
		} else if fmt.Sprint(tokens(got.Groups)) != fmt.Sprint(tokens(want)) {
			t.Errorf("%d workers: other completions", workers)
		}
		first := want[0].Rollouts[0].Tokens
		again, err := g.Generate(context.Background(), Draw{Starts: []Start{{Prompt: prompts[0], Prefix: []int32{first[0].ID}}}, Group: 1, MaxTokens: tr.problem.Tokens, Temperature: 1, Seed: 4})
		if err != nil || fmt.Sprint(tokens(again.Groups)) != fmt.Sprint([][]sample.Token{first[1:]}) {
			t.Errorf("%d workers: from its first token on: %v, want %v; %v", workers, tokens(again.Groups), first[1:], err)
		}
	}
}

func tokens(groups []*Group) (out [][]sample.Token) {
	for _, g := range groups {
		for _, r := range g.Rollouts {
			out = append(out, r.Tokens)
		}
	}
	return out
}

// The token at which a rollout was lost is the one that holds the verifier's byte.
func TestLostTokenHoldsTheByte(t *testing.T) {
	c, err := tasks.NewSymbols([]string{"ab", "c"})
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := c.Encode("abcab")
	ids = append(ids, c.End())
	for at, want := range map[int]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 2, 5: 3} {
		if got := lostToken(c, ids, at); got != want {
			t.Errorf("byte %d: token %d, want %d", at, got, want)
		}
	}
}

// panicking fails the first times it is asked.
type panicking struct {
	Decoder
	left *int
}

func (p panicking) Forward(f []sample.Feed) error {
	if *p.left > 0 {
		*p.left--
		panic("out of memory")
	}
	return p.Decoder.Forward(f)
}

// Generation that fails is tried again, to the same completions; where it keeps failing the run ends with the reason.
func TestRunSurvivesAFailingGenerator(t *testing.T) {
	good, _ := tiny(t, nil)
	want, err := good.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, times := range []int{1, attempts - 1, attempts} {
		tr, _ := tiny(t, nil)
		left := times
		tr.gen.workers[0] = panicking{tr.gen.workers[0], &left}
		rep, err := tr.Step(context.Background())
		if times < attempts && (err != nil || fmt.Sprint(rep) != fmt.Sprint(want)) {
			t.Errorf("after %d failures: %v, %+v, want %+v", times, err, rep, want)
		}
		if times == attempts && (err == nil || !strings.Contains(err.Error(), "out of memory")) {
			t.Errorf("after %d failures: %v", times, err)
		}
	}
}

// The published points of Student's t (97.5 %): n = 2: 4.303, 12: 2.179, 30: 2.042, 120: 1.980.
func TestStudent(t *testing.T) {
	for n, want := range map[int]float64{2: 4.303, 10: 2.228, 12: 2.179, 30: 2.042, 120: 1.980} {
		if got := student(n); math.Abs(got-want) > 1e-3 {
			t.Errorf("%d: %g, want %g", n, got, want)
		}
	}
	// Over many draws the interval of three covers the mean 95 times of 100: ±3 standard deviations of the count, √(2000·0.95·0.05) = 9.7.
	r := rand.New(rand.NewPCG(1, 1))
	covered := 0
	for range 2000 {
		_, lo, hi := Interval([]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()})
		if lo <= 0 && hi >= 0 {
			covered++
		}
	}
	if math.Abs(float64(covered)-1900) > 30 {
		t.Errorf("%d of 2000", covered)
	}
}

func TestConfigIsCheckedBeforeUse(t *testing.T) {
	for says, change := range map[string]func(*Config){
		"seeds": func(c *Config) { c.Seeds = 0 }, "group": func(c *Config) { c.Reinforce.Group = 1 }, "errors": func(c *Config) { c.Supervise.Errors = 1.5 }, "lr": func(c *Config) { c.Reinforce.LR = -1 },
		"temperature": func(c *Config) { c.Reinforce.Temperature = 0.7 }, "drop_equal": func(c *Config) { c.Reinforce.Resample, c.Reinforce.Loss.DropEqual = 2, false },
		"importance_cap": func(c *Config) { c.Staleness.Ahead = 2 }, "staleness.old": func(c *Config) { c.Staleness.Old = "" }, "staleness.ahead": func(c *Config) { c.Staleness.Ahead = -1 }, "norm": func(c *Config) { c.Reinforce.Loss.Norm = "x" },
	} {
		c, _ := Preset("path", "quick")
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := Preset("path", "slow"); err == nil {
		t.Error("preset slow exists")
	}
	for _, task := range []Task{{Name: "chess", Digits: 1}, {Name: "path", Digits: 1}, {Name: "add"}, {Name: "countdown", Digits: 1}} {
		if _, err := task.New(1); err == nil {
			t.Errorf("%+v is a task", task)
		}
	}
}
