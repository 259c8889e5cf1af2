package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"heddle/num"
	"heddle/rl"
	"heddle/rl/tasks"
	"heddle/sample"
)

// planted is a world whose every chance is known: a prompt succeeds with chance p, whatever the prefix; the entropy of token 2 is high with chance f in failures
// and s in successes. Rollouts have six tokens, and a failure is lost at token 3.
type planted struct {
	p    func(tasks.Prompt) float64
	s, f float64
}

func (w planted) Draw(_ context.Context, d rl.Draw) (*rl.Drawn, error) {
	out := &rl.Drawn{}
	for j, s := range d.Starts {
		g := &rl.Group{Prompt: s.Prompt, Prefix: s.Prefix}
		streams := s.Streams
		for i := 0; streams == nil && i < d.Group; i++ {
			g.Rollouts = append(g.Rollouts, w.rollout(s, d.Streams+uint64(j*d.Group+i), d.Seed))
		}
		for _, x := range streams {
			g.Rollouts = append(g.Rollouts, w.rollout(s, x, d.Seed))
		}
		out.Groups = append(out.Groups, g)
	}
	return out, nil
}

const plantedLength = 6

func (w planted) rollout(s rl.Start, stream, seed uint64) *rl.Rollout {
	right := num.Uniform(seed, stream, 1) < w.p(s.Prompt)
	high := num.Uniform(seed, stream, 2) < w.f
	if right {
		high = num.Uniform(seed, stream, 2) < w.s
	}
	r := &rl.Rollout{Stream: stream, Scored: true, Lost: 3}
	if right {
		r.Reward, r.Lost = 1, tasks.Kept
	}
	for k := len(s.Prefix); k < plantedLength; k++ {
		t := sample.Token{ID: int32(k), LogProb: -1, Entropy: 1}
		if k == 2 && high {
			t.Entropy = 2
		}
		r.Tokens = append(r.Tokens, t)
	}
	return r
}

// chances are six prompts' worth of difficulty, from hard to easy, on levels 0 to 5.
func chance(p tasks.Prompt) float64 { return []float64{0.05, 0.2, 0.4, 0.6, 0.8, 0.95}[p.Level] }

func prompts(n int) (out []tasks.Prompt) {
	for i := range n {
		out = append(out, tasks.Prompt{ID: fmt.Sprint(i), Level: i % 6})
	}
	return out
}

func traces(t *testing.T, w World, list []tasks.Prompt, group int) []*Trace {
	t.Helper()
	out, unscorable, err := capture(context.Background(), w, list, rl.Draw{Group: group, Seed: 11}, 0)
	if err != nil || unscorable != 0 {
		t.Fatalf("%v, %d unscorable", err, unscorable)
	}
	return out
}

func arm(t *testing.T, w World, list []tasks.Prompt, all []*Trace, a Action, f fires) *Arm {
	t.Helper()
	g := &grid{world: w, prompts: list, seed: 11, fresh: 1 << 40}
	out, err := g.act(context.Background(), a, f, all, 1)
	if err != nil {
		t.Fatal(err)
	}
	return settle(Arm{Trigger: "planted", Action: a, Branches: 1}, f, all, out, nil, 400, 1)
}

// onHigh fires where the planted entropy is.
func onHigh(all []*Trace) fires {
	f := make(fires, len(all))
	for i, t := range all {
		if f[i] = never; t.Entropy[2] > 1.5 {
			f[i] = 3
		}
	}
	return f
}

// The theory: restarting gains p(1−p)·(f−s) averaged over prompts, whatever else; the measured gain has it within its interval, and the prediction from the
// trigger's own rates is near it. With 600 prompts of 40 rollouts the standard error of the gain is below 0.004.
func TestRestartGainsWithinPromptJ(t *testing.T) {
	list := prompts(600)
	for _, x := range []struct{ s, f float64 }{{0.1, 0.38}, {0.3, 0.3}, {0.4, 0.1}} {
		w := planted{chance, x.s, x.f}
		all := traces(t, w, list, 40)
		f := onHigh(all)
		want := 0.0
		for _, p := range list {
			want += chance(p) * (1 - chance(p)) * (x.f - x.s) / float64(len(list))
		}
		got, q := arm(t, w, list, all, Restart, f), quality(f, all)
		if got.Gain.Low > want || got.Gain.High < want || got.Gain.High-got.Gain.Low > 0.02 {
			t.Errorf("f %g, s %g: gain %+v, want %.4f within", x.f, x.s, got.Gain, want)
		}
		if math.Abs(q.Predicted-want) > 0.006 || math.Abs(q.Within-(x.f-x.s)) > 0.03 {
			t.Errorf("f %g, s %g: predicted %.4f (want %.4f), within-prompt J %.3f", x.f, x.s, q.Predicted, want, q.Within)
		}
	}
}

// A trigger that knows difficulty alone gains nothing, however large its pooled J is. Of eight studies' 95 % intervals all but one or two must have 0 within
// (three misses have a chance of 0.6 %), and their mean gain is 0 within four standard errors: 0.4·9,600 rollouts fire, each gain has a variance of at most 0.5.
func TestDifficultyTriggerGainsNothing(t *testing.T) {
	list := prompts(240)
	w := planted{chance, 0, 0}
	missed, mean := 0, 0.0
	for seed := range uint64(8) {
		all, _, err := capture(context.Background(), w, list, rl.Draw{Group: 40, Seed: seed}, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := ranked(all, func(t *Trace) float64 { return -float64(t.Level) }, 3, 0.4, rand.New(rand.NewPCG(seed, 1)))
		got, q := arm(t, w, list, all, Restart, f), quality(f, all)
		if q.Pooled < 0.3 {
			t.Errorf("pooled J %.3f: the trigger does not sense difficulty, the test says nothing", q.Pooled)
		}
		if got.Gain.Low > 0 || got.Gain.High < 0 {
			missed++
		}
		mean += got.Gain.Value / 8
		if math.Abs(q.Within) > 0.02 || math.Abs(q.Predicted) > 0.003 {
			t.Errorf("within-prompt J %.4f, predicted gain %.4f, want 0", q.Within, q.Predicted)
		}
	}
	if missed > 2 || math.Abs(mean) > 4*math.Sqrt(0.4*0.5/9600/8) {
		t.Errorf("%d of 8 intervals miss 0, mean gain %.4f", missed, mean)
	}
}

// Firings shuffled within a prompt know what the trigger knows of prompts and no more: their gain is 0, and their rate in each prompt is the trigger's.
func TestShuffledWithinPromptGainsNothing(t *testing.T) {
	list := prompts(600)
	w := planted{chance, 0.1, 0.5}
	all := traces(t, w, list, 40)
	f := onHigh(all)
	shuffled := permuted(f, all, true, rand.New(rand.NewPCG(2, 2)))
	count := map[int]int{}
	for i, t := range all {
		if f[i] != never {
			count[t.Prompt]++
		}
		if shuffled[i] != never {
			count[t.Prompt]--
		}
	}
	for p, n := range count {
		if n != 0 {
			t.Fatalf("prompt %d fires %d times less", p, n)
		}
	}
	if got := arm(t, w, list, all, Restart, shuffled); got.Gain.Low > 0 || got.Gain.High < 0 {
		t.Errorf("gain %+v", got.Gain)
	}
	if random := permuted(f, all, false, rand.New(rand.NewPCG(3, 3))); random.rate() != f.rate() {
		t.Errorf("random fires at %g, want %g", random.rate(), f.rate())
	}
}

// The oracle acts on failures alone and gains what enumeration says: here (1−p)·p a prompt; the anti-oracle acts on successes and loses p·(1−p).
func TestOracleGainsWhatEnumerationSays(t *testing.T) {
	list := prompts(600)
	w := planted{chance, 0.1, 0.3}
	all := traces(t, w, list, 40)
	want := 0.0
	for _, p := range list {
		want += chance(p) * (1 - chance(p)) / float64(len(list))
	}
	for _, a := range []Action{Restart, ForkCut} { // the planted chance does not depend on the prefix
		if got := arm(t, w, list, all, a, oracle(all)); got.Gain.Low > want || got.Gain.High < want {
			t.Errorf("oracle, %s: gain %+v, want %.4f within", a, got.Gain, want)
		}
		if got := arm(t, w, list, all, a, antiOracle(onHigh(all), all, rand.New(rand.NewPCG(1, 1)))); got.Gain.Low > -want || got.Gain.High < -want {
			t.Errorf("anti-oracle, %s: gain %+v, want %.4f within", a, got.Gain, -want)
		}
	}
	for i, n := range oracle(all) {
		if all[i].Right != (n == never) || n != never && n != 4 {
			t.Fatalf("the oracle fires after %d tokens on %+v", n, all[i])
		}
	}
}

// Tokens are all on the bill: after a cut at 3 of 6 a restart draws 6 more and saves the 3 that were not drawn; stopping saves 3 and loses what was right.
func TestEveryTokenIsCounted(t *testing.T) {
	list := prompts(6)
	w := planted{chance, 0.5, 0.5}
	all := traces(t, w, list, 10)
	f := make(fires, len(all))
	for i := range f {
		f[i] = 3
	}
	for a, extra := range map[Action]float64{Restart: 3, ForkCut: 1, Cooler: 0, Stop: -3} {
		if got := arm(t, w, list, all, a, f); got.Extra != extra || math.Abs(got.Relative-extra/6) > 1e-12 || got.Fired != 1 {
			t.Errorf("%s: %g extra tokens, %g of the control's, want %g", a, got.Extra, got.Relative, extra)
		}
	}
	if got := arm(t, w, list, all, Stop, f); got.Success != 0 || got.Gain.Value != -share(all) {
		t.Errorf("stopping all: %+v", got)
	}
}

// What a predictor sees after n tokens does not change with what comes later, nor with the rollout's length: nothing leaks, and serving sees what fitting saw.
func TestFeaturesAreCausal(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	v := view{levels: 3, window: 4}
	for range 50 {
		a := &Trace{Level: r.IntN(3)}
		for range 9 {
			a.IDs = append(a.IDs, 1)
			a.LogProb, a.Entropy, a.Top = append(a.LogProb, -r.Float64()), append(a.Entropy, r.Float64()), append(a.Top, r.Float64())
			a.Hidden = append(a.Hidden, []float32{r.Float32(), r.Float32()})
		}
		n := 1 + r.IntN(8)
		b := &Trace{Level: a.Level, IDs: a.IDs[:n], LogProb: append([]float64(nil), a.LogProb[:n]...), Entropy: append([]float64(nil), a.Entropy[:n]...), Top: append([]float64(nil), a.Top[:n]...), Hidden: a.Hidden[:n], Right: true}
		for _, k := range Ladder(true) {
			if x, y := v.features(k, a, n), v.features(k, b, n); fmt.Sprint(x) != fmt.Sprint(y) {
				t.Errorf("%s after %d: %v and %v", k, n, x, y)
			}
		}
	}
}

// VIX features of 1, 3, 2 in a window of 4, worked out by hand: differences 2 and −1.
func TestVIXFeatures(t *testing.T) {
	got := window(4).vix([]float64{1, 3, 2}, 3)
	want := []float64{math.Sqrt(2.5), 0.5, math.Sqrt2, math.Sqrt(0.5), 1, 1, 2} // the largest RMS was 2, of the first difference alone
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-15 {
			t.Errorf("feature %d is %g, want %g", i, got[i], want[i])
		}
	}
	if first := window(4).vix([]float64{7}, 1); fmt.Sprint(first) != "[0 0 0 0 0 0 0]" {
		t.Errorf("after one token: %v", first)
	}
}

// A study of a planted world ends with the primary outcome, the oracle above, the difficulty trigger at 0, and p-values adjusted upwards.
func TestStudyOfAPlantedWorld(t *testing.T) {
	list := prompts(120)
	c := Default()
	c.Group, c.Bootstrap, c.Later = 20, 200, 0
	res, err := Run(context.Background(), c, Subject{World: planted{chance, 0.05, 0.6}, Prompts: list, Levels: 6, Success: 0.5, Task: "planted"}, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) *Arm {
		for _, a := range res.Arms {
			if a.Name() == name {
				return a
			}
		}
		t.Fatalf("no arm %q", name)
		return nil
	}
	if sham := find("entropy / nothing"); sham.Gain.Value != 0 || sham.P != 1 || sham.Extra != 0 {
		t.Errorf("sham: %+v", sham)
	}
	if e := find("entropy / restart"); e.Gain.Low <= 0 || e.Gain.Value > find("oracle / restart").Gain.Value {
		t.Errorf("entropy: %+v", e.Gain)
	}
	if d := find("difficulty / restart"); d.Gain.Low > 0 || d.Gain.High < 0 {
		t.Errorf("difficulty: %+v", d.Gain)
	}
	if res.Primary.Difference.Low <= 0 || res.Ceiling == nil || res.Ceiling.Gain.Low <= 0 {
		t.Errorf("primary %+v, ceiling %+v", res.Primary, res.Ceiling)
	}
	for _, a := range res.Arms {
		if a.Holm < a.P || a.Holm > 1 {
			t.Errorf("%s: p %g, adjusted %g", a.Name(), a.P, a.Holm)
		}
	}
	if len(res.Adds) < 3 || res.Adds[3].Low <= 0 || !strings.Contains(strings.Join(res.Answer, " "), "adds something") {
		t.Errorf("entropy adds %+v; %v", res.Adds, res.Answer)
	}
	for _, r := range res.Ladder {
		if r.Kind == Length || r.Kind == Prior {
			for _, a := range r.AUC {
				if math.Abs(a.Within.Value-0.5) > 1e-9 { // all rollouts of a prompt have the same features
					t.Errorf("%s after %d: within %g", r.Kind, a.At, a.Within.Value)
				}
				if a.Pooled.Value < 0.7 {
					t.Errorf("%s after %d: pooled %g; difficulty is there to be told", r.Kind, a.At, a.Pooled.Value)
				}
			}
		}
	}
}

func TestConfigAndSubjectAreChecked(t *testing.T) {
	talk := func(string, ...any) {}
	for says, change := range map[string]func(*Config){"group": func(c *Config) { c.Group = 1 }, "window": func(c *Config) { c.Window = 1 }, "bootstrap": func(c *Config) { c.Bootstrap = 1 }, "false_alarms": func(c *Config) { c.FalseAlarms = 0 }} {
		c := Default()
		change(&c)
		if _, err := Run(context.Background(), c, Subject{}, talk); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := Run(context.Background(), Default(), Subject{Prompts: prompts(3)}, talk); err == nil {
		t.Error("three prompts are enough")
	}
}
