package rl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"heddle/checkpoint"
	"heddle/internal/atomicfile"
	"heddle/parallel"
	"heddle/sample"
)

// run trains asynchronously and returns the weights and what each step reported.
func run(t *testing.T, tr *Trainer, r Run) (map[string][]float32, []StepReport, []*Round, error) {
	t.Helper()
	var reports []StepReport
	var rounds []*Round
	on := r.On
	r.On = func(s StepReport, x *Round) error {
		reports, rounds = append(reports, s), append(rounds, x)
		if on != nil {
			return on(s, x)
		}
		return nil
	}
	err := tr.Run(context.Background(), r)
	w, werr := tr.Weights()
	if err == nil {
		err = werr
	}
	return w, reports, rounds, err
}

func differ(a, b map[string][]float32) string {
	for name := range a {
		for i := range a[name] {
			if math.Float32bits(a[name][i]) != math.Float32bits(b[name][i]) {
				return fmt.Sprintf("%s[%d]: %g and %g", name, i, a[name][i], b[name][i])
			}
		}
	}
	if len(a) == 0 || len(a) != len(b) {
		return fmt.Sprintf("%d and %d parameters", len(a), len(b))
	}
	return ""
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// At staleness 0 asynchronous training is synchronous training, bit for bit, whether the sides run freely or take turns.
func TestAheadZeroIsSynchronous(t *testing.T) {
	sync, _ := tiny(t, nil)
	var want []StepReport
	for range 5 {
		rep, err := sync.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, rep)
	}
	w, _ := sync.Weights()
	for _, seed := range []uint64{0, 1, 2} {
		tr, _ := tiny(t, nil)
		got, reports, _, err := run(t, tr, Run{Steps: 5, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if d := differ(w, got); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
		if asJSON(t, reports) != asJSON(t, want) {
			t.Errorf("seed %d: reports %s, want %s", seed, asJSON(t, reports), asJSON(t, want))
		}
	}
}

func ahead(k, most int, at SyncAt, old OldPolicy) func(*Config) {
	return func(c *Config) {
		c.Staleness = Staleness{Ahead: k, Most: most, Old: old, Sync: at}
		c.Reinforce.Loss.ImportanceCap = 2
	}
}

// The reported histogram is the ages of the tokens, each the version that learned from it less the version stamped on it; nothing is older than Ahead, and
// with turns it is older than 0 at times. Rounds are learned from in order.
func TestHistogramIsTheAgesOfTheTokens(t *testing.T) {
	for _, at := range []SyncAt{AtRounds, InFlight} {
		for seed := range uint64(4) { // 0: no turns
			tr, c := tiny(t, ahead(3, 3, at, Drop))
			_, reports, rounds, err := run(t, tr, Run{Steps: 8, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			oldest := 0
			for i, rep := range reports {
				want := map[int]int{}
				for _, g := range rounds[i].Groups {
					for _, r := range g.Rollouts {
						last := uint64(0)
						for k, x := range r.Tokens {
							age := i - int(x.Version)
							want[age]++
							oldest = max(oldest, age)
							if x.Version < last || k > 0 && at == AtRounds && x.Version != last {
								t.Errorf("%s: versions of one completion: %d after %d", at, x.Version, last)
							}
							last = x.Version
						}
					}
				}
				if fmt.Sprint(rep.Stale.Histogram) != fmt.Sprint(want) || rounds[i].Index != uint64(i) || rep.Stale.Dropped != 0 {
					t.Errorf("%s seed %d step %d: %v of round %d, want %v", at, seed, i, rep.Stale, rounds[i].Index, want)
				}
			}
			if oldest > c.Staleness.Ahead || seed > 0 && oldest == 0 {
				t.Errorf("%s seed %d: the oldest token is %d versions old", at, seed, oldest)
			}
		}
	}
}

// What is older than Most is dropped, or weighs less; both are what the histogram says.
func TestOldTokensAreDroppedOrWeighLess(t *testing.T) {
	tr, _ := tiny(t, ahead(4, 1, AtRounds, Drop))
	_, reports, rounds, err := run(t, tr, Run{Steps: 8, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for i, rep := range reports {
		want := 0
		for _, g := range rounds[i].Groups {
			for _, r := range g.Rollouts {
				if i-int(r.Tokens[0].Version) > 1 {
					want++
				}
			}
		}
		if rep.Stale.Dropped != want || rep.Counts.Empty != 0 {
			t.Errorf("step %d: %d dropped, want %d; %+v", i, rep.Stale.Dropped, want, rep.Counts)
		}
		dropped += want
	}
	if dropped == 0 {
		t.Error("nothing was old enough to drop: the test says nothing")
	}
	old := []*Group{{Rollouts: []*Rollout{{Scored: true, Tokens: []sample.Token{{Version: 1}, {Version: 3}, {Version: 5}, {Version: 5, Injected: true}}}}}}
	got, counts := samples(old, 5, Staleness{Most: 1, Old: DownWeight})
	for i, want := range []float64{0.25, 0.5, 1, 0} {
		if w := got[0][0].Tokens[i].Weight; w != want {
			t.Errorf("token %d of version %d weighs %g, want %g", i, old[0].Rollouts[0].Tokens[i].Version, w, want)
		}
	}
	if counts.Dropped != 0 || counts.Histogram[4] != 1 || counts.Histogram[0] != 2 {
		t.Errorf("%+v", counts)
	}
	s := Staleness{Most: 2, Old: DownWeight}
	for age, want := range map[int]float64{0: 1, 2: 1, 3: 0.5, 5: 0.25} {
		if got := s.weight(age); got != want || s.drops(age) {
			t.Errorf("age %d: weight %g, want %g", age, got, want)
		}
	}
}

// Older tokens are corrected by π/π_drawn, cut at the cap: the drift that is reported is not 0 once the weights have moved.
func TestStaleTokensAreCorrected(t *testing.T) {
	tr, _ := tiny(t, func(c *Config) {
		ahead(3, 3, AtRounds, Drop)(c)
		c.Reinforce.LR = 1e-2
		c.Reinforce.Loss.ImportanceCap = 1.01
	})
	_, reports, _, err := run(t, tr, Run{Steps: 6, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	drifted, capped := false, false
	for _, r := range reports {
		old := 0
		for age, n := range r.Stale.Histogram {
			if age > 0 {
				old += n
			}
		}
		drifted, capped = drifted || r.Metrics.Drift != 0, capped || r.Metrics.Capped > 0
		if old == 0 && (r.Metrics.Drift != 0 || r.Metrics.Capped != 0) || r.Metrics.RatioMost != 1 && r.Metrics.Tokens > 0 {
			t.Errorf("%+v with ages %v", r.Metrics, r.Stale.Histogram)
		}
	}
	if !drifted || !capped {
		t.Error("no step learned from old tokens")
	}
}

// A run that is killed after any step and resumed ends with the weights, reports and rounds of one that was not: at staleness 0, and with turns for more,
// where rounds wait in the queue. Both sides save at the same steps.
func TestKilledAndResumedEndsBitEqual(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(*Config)
		seed   uint64
	}{{"synchronous", nil, 0}, {"synchronous with turns", nil, 5}, {"two ahead", ahead(2, 2, AtRounds, Drop), 5}, {"three ahead, in flight", ahead(3, 1, InFlight, DownWeight), 6}} {
		with := func(c *Config) {
			if c.Reinforce.SaveEvery = 2; x.change != nil {
				x.change(c)
			}
		}
		store := func() *checkpoint.Store { return &checkpoint.Store{FS: atomicfile.OS{}, Root: t.TempDir()} }
		whole, _ := tiny(t, with)
		want, reports, _, err := run(t, whole, Run{Steps: 9, Seed: x.seed, Keep: store()})
		if err != nil {
			t.Fatal(err)
		}
		queued := 0
		for _, kill := range []int{3, 4, 7} {
			s := store()
			first, _ := tiny(t, with)
			killed := errors.New("killed")
			_, _, _, err := run(t, first, Run{Steps: 9, Seed: x.seed, Keep: s, On: func(r StepReport, _ *Round) error {
				if r.Step > kill {
					return killed
				}
				return nil
			}})
			if !errors.Is(err, killed) {
				t.Fatal(err)
			}
			c, _, err := checkpoint.Latest(s.Root)
			if err != nil {
				t.Fatal(err)
			}
			second, _ := tiny(t, with)
			if err := second.Resume(c); err != nil {
				t.Fatal(err)
			}
			queued += len(second.resumed.Queue)
			from := int(second.Steps)
			if n := second.learner.Updates; n < 1 || n > from {
				t.Errorf("%s: %d updates in %d steps", x.name, n, from)
			}
			got, rest, _, err := run(t, second, Run{Steps: 9, Seed: x.seed, Keep: store()})
			if err != nil {
				t.Fatal(err)
			}
			if d := differ(want, got); d != "" || from != kill/2*2 {
				t.Errorf("%s: killed after %d, resumed from %d: %s", x.name, kill, from, d)
			}
			if asJSON(t, rest) != asJSON(t, reports[from:]) {
				t.Errorf("%s: killed after %d: reports\n%s\nwant\n%s", x.name, kill, asJSON(t, rest), asJSON(t, reports[from:]))
			}
			c.Close()
		}
		if strings.Contains(x.name, "ahead") && queued == 0 {
			t.Errorf("%s: no checkpoint had a queue", x.name)
		}
	}
}

// Learner and generator in different layouts and numbers: two ranks by tensor parallelism, three workers.
func TestLearnerAndGeneratorMayLieDifferently(t *testing.T) {
	tr, _ := tiny(t, func(c *Config) {
		ahead(2, 2, InFlight, Drop)(c)
		c.Parallel, c.Workers, c.Model.KV = parallel.Layout{TP: 2}, 3, 2
	})
	_, reports, _, err := run(t, tr, Run{Steps: 4, Seed: 2})
	if err != nil || len(reports) != 4 {
		t.Fatalf("%v after %d steps", err, len(reports))
	}
	for _, r := range reports {
		if r.Metrics.Tokens > 0 && r.Metrics.RatioMost > 1+1e-4 { // the ratio is to the learner's own log-probabilities
			t.Errorf("%+v", r.Metrics)
		}
	}
}

// When generation fails for good the run ends with its reason, and nothing hangs, on either side of the queue.
func TestFailingGenerationEndsTheRun(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		tr, _ := tiny(t, ahead(2, 2, AtRounds, Drop))
		left := 1 << 30
		tr.gen.workers[1] = panicking{tr.gen.workers[1], &left}
		if _, _, _, err := run(t, tr, Run{Steps: 3, Seed: seed}); err == nil || !strings.Contains(err.Error(), "out of memory") {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// A context that ends stops both sides.
func TestRunEndsWithItsContext(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		tr, _ := tiny(t, ahead(2, 2, AtRounds, Drop))
		ctx, cancel := context.WithCancel(context.Background())
		err := tr.Run(ctx, Run{Steps: 1 << 20, Seed: seed, On: func(r StepReport, _ *Round) error {
			if r.Step == 3 {
				cancel()
			}
			return nil
		}})
		if !errors.Is(err, context.Canceled) || tr.Steps > 4 {
			t.Errorf("seed %d: %v after %d steps", seed, err, tr.Steps)
		}
		cancel()
	}
}

// Checkpoints whose state is none are refused.
func TestDamagedStateIsRefused(t *testing.T) {
	tr, _ := tiny(t, nil)
	for _, bad := range []string{"", "{", `{"queue": [null]}`, `{"queue": [{"index": 5}], "next": 3}`, `{"draw": "AAAA"}`} {
		c := &checkpoint.Checkpoint{}
		c.State = map[string]string{stateKey: bad}
		if err := tr.Resume(c); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
