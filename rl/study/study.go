// Package study asks whether a rollout's fate is leaked by its token entropy early enough that acting on it helps.
//
// The policy is frozen. Rollouts of many prompts are drawn with traces; a ladder of predictors is fitted on half of the prompts and judged on the other half,
// within prompts as well as pooled; prefix values say what is decided when; then a grid of triggers × actions is drawn, with shams, matched random triggers,
// triggers that know only position or difficulty, the classifier with its firings shuffled, oracle and anti-oracle. The unit of every statistic is the prompt.
//
// For a prompt of success rate p, restarting once where a trigger fires with rates s on would-be successes and f on would-be failures changes success by
// exactly p(1−p)(f−s): what a trigger knows about the prompt alone earns nothing. Read Run, then trigger.go, action.go, stats.go.
package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"heddle/rl"
	"heddle/rl/tasks"
)

// Config is a study. The primary outcome is named before it runs, and echoed.
type Config struct {
	Group       int     `yaml:"group" json:"group"`               // rollouts of each prompt
	Window      int     `yaml:"window" json:"window"`             // tokens that VIX-like features look back over
	FalseAlarms float64 `yaml:"false_alarms" json:"false_alarms"` // share of successes that a trigger may fire on
	Branches    int     `yaml:"branches" json:"branches"`         // of the arms that choose among several
	Bootstrap   int     `yaml:"bootstrap" json:"bootstrap"`       // resamples
	Hidden      bool    `yaml:"hidden" json:"hidden"`             // keep hidden states, for the probe
	Later       int     `yaml:"later" json:"later"`               // steps of reinforcement after which the predictors are tested again; 0: not
	Primary     string  `yaml:"primary" json:"primary"`           // an arm, "trigger / action"
	Against     string  `yaml:"against" json:"against"`           // the arm that its gain is compared with
	Seed        uint64  `yaml:"-" json:"seed"`
}

// Default is a study of minutes.
func Default() Config {
	return Config{Group: 16, Window: 4, FalseAlarms: 0.1, Branches: 4, Bootstrap: 1000, Hidden: true, Later: 20, Primary: string(Entropy) + " / " + string(ForkCut), Against: "random / " + string(ForkCut), Seed: 1}
}

// Check refuses what cannot run.
func (c Config) Check() error {
	switch {
	case c.Group < 2 || c.Group > 1<<12 || c.Branches < 2 || c.Branches > 64:
		return fmt.Errorf("study: group is %d and branches %d, want 2 to 4096 and 2 to 64", c.Group, c.Branches)
	case c.Window < 2 || c.Window > 1<<12 || c.Bootstrap < 20 || c.Bootstrap > 1<<20 || c.Later < 0:
		return fmt.Errorf("study: window is %d, bootstrap %d and later %d, want 2 to 4096, 20 to 2^20, and 0 or more", c.Window, c.Bootstrap, c.Later)
	case !(c.FalseAlarms > 0 && c.FalseAlarms < 1):
		return fmt.Errorf("study: false_alarms is %g, want a share between 0 and 1", c.FalseAlarms)
	}
	return nil
}

// Rung is what one predictor is worth.
type Rung struct {
	Kind        Kind        `json:"kind"`
	AUC         []AUC       `json:"auc"`
	Calibration Calibration `json:"calibration"`
	Trigger     Quality     `json:"trigger"` // at the threshold that fires on FalseAlarms of the successes it was set on
	Asked       float64     `json:"false_alarms_asked"`
	Later       *LaterRung  `json:"later,omitempty"`

	predictor Predictor
	below     threshold
	fires     fires
}

// LaterRung is the same predictor, threshold included, on a policy that has learned since.
type LaterRung struct {
	AUC         []AUC       `json:"auc"`
	Calibration Calibration `json:"calibration"`
	Trigger     Quality     `json:"trigger"`
}

// Baseline is what as many tokens buy without any trigger.
type Baseline struct {
	K      int     `json:"k"` // samples of each prompt
	Mean   float64 `json:"mean"`
	Vote   float64 `json:"vote"` // the most common completion
	Pass   float64 `json:"pass"` // any
	Tokens float64 `json:"tokens"`
}

// Comparison is the primary outcome: one arm's gain less another's.
type Comparison struct {
	Arm        string   `json:"arm"`
	Against    string   `json:"against"`
	Difference Estimate `json:"difference"`
	P          float64  `json:"p"`
}

// Result is a study's numbers.
type Result struct {
	Config     Config     `json:"config"`
	Task       string     `json:"task"`
	Power      Power      `json:"power"` // said before anything was drawn
	Prompts    int        `json:"prompts"`
	Fit        int        `json:"fit_prompts"`
	Rollouts   int        `json:"rollouts"`
	Unscorable int        `json:"unscorable"`
	Success    float64    `json:"success"`
	Truncated  float64    `json:"truncated"` // share of rollouts without an end
	Mixed      int        `json:"mixed_prompts"`
	Length     float64    `json:"tokens_a_rollout"`
	Ladder     []*Rung    `json:"ladder"`
	Aligned    Aligned    `json:"aligned"`
	Values     *Values    `json:"values,omitempty"`
	Arms       []*Arm     `json:"arms"`
	Baselines  []Baseline `json:"baselines"`
	Primary    Comparison `json:"primary"`
	Adds       []Estimate `json:"entropy_adds"` // within-prompt AUC of entropy less that of length and difficulty, after 1, 2, … tokens
	Ceiling    *Arm       `json:"ceiling"`      // the oracle's best arm
	Training   *Training  `json:"training,omitempty"`
	Answer     []string   `json:"answer"`
	Seconds    float64    `json:"seconds"`
}

// Subject is what is studied.
type Subject struct {
	World   World
	Prompts []tasks.Prompt
	Levels  int
	Hidden  int                                                 // width of the hidden states; 0: none
	Ways    func() ([]*rl.Ways, error)                          // all successes of each prompt; nil: no exact values
	Later   func(ctx context.Context, steps int) (World, error) // the policy after some reinforcement; nil: none
	Success float64                                             // of the policy's evaluation, for the statement of power
	Task    string
}

// Run is the frozen-policy phase. talk hears what is going on.
func Run(ctx context.Context, c Config, s Subject, talk func(format string, args ...any)) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if len(s.Prompts) < 4 {
		return nil, fmt.Errorf("study: %d prompts, want 4 or more: half to fit on, half to judge on", len(s.Prompts))
	}
	half := len(s.Prompts) / 2
	res := &Result{Config: c, Task: s.Task, Prompts: len(s.Prompts), Fit: half, Power: power(len(s.Prompts)-half, c.Group, s.Success, 0.3)}
	talk("primary outcome: gain of %q over %q\n%d rollouts to judge on: a gain of %.1f points is seen with 80 %% power if 30 %% of the rollouts fire\n", c.Primary, c.Against, res.Power.Rollouts, 100*res.Power.Detectable)
	hidden := 0
	if c.Hidden {
		hidden = s.Hidden
	}
	all, unscorable, err := capture(ctx, s.World, s.Prompts, rl.Draw{Group: c.Group, Seed: c.Seed}, hidden)
	if err != nil {
		return nil, err
	}
	if err := evaluate(s, all); err != nil {
		return nil, err
	}
	res.Unscorable = unscorable
	var fit, judge []*Trace
	for _, t := range all {
		if t.Prompt < half {
			fit = append(fit, t)
		} else {
			judge = append(judge, t)
		}
	}
	if len(fit) == 0 || len(judge) == 0 {
		return nil, errors.New("study: no rollout could be scored")
	}
	st := &study{c: c, s: s, res: res, talk: talk, fit: fit, judge: judge, groups: byPrompt(judge), view: view{s.Levels, window(c.Window)}}
	st.describe()
	for _, phase := range []func(context.Context) error{st.ladder, st.arms, st.later} {
		if err := phase(ctx); err != nil {
			return nil, err
		}
	}
	st.conclude()
	res.Conclude()
	return res, nil
}

// evaluate gives traces their exact values, where every prompt has them.
func evaluate(s Subject, traces []*Trace) error {
	if s.Ways == nil {
		return nil
	}
	ways, err := s.Ways()
	if err != nil {
		return err
	}
	if slices.Contains(ways, nil) {
		return nil
	}
	for _, t := range traces {
		t.Value = value(t.IDs, ways[t.Prompt])
	}
	return nil
}

// study is a run under way.
type study struct {
	c          Config
	s          Subject
	res        *Result
	talk       func(string, ...any)
	fit, judge []*Trace
	groups     [][]*Trace // judge by prompt
	view       view
	longest    int
}

func (st *study) describe() {
	r := st.res
	r.Rollouts, r.Success = len(st.judge), share(st.judge)
	for _, t := range st.judge {
		st.longest = max(st.longest, t.Len())
		r.Length += float64(t.Len()) / float64(len(st.judge))
		if t.Truncated {
			r.Truncated += 1 / float64(len(st.judge))
		}
	}
	for _, g := range st.groups {
		if s := share(g); s > 0 && s < 1 {
			r.Mixed++
		}
	}
	r.Aligned = align(st.judge, st.longest)
	if st.judge[0].Value != nil {
		v := values(st.groups, st.longest)
		r.Values = &v
	}
	r.Baselines = baselines(st.groups)
	st.talk("%d rollouts of %d prompts, %.1f %% right, %d prompts with both outcomes\n", r.Rollouts, len(st.groups), 100*r.Success, r.Mixed)
}

// ladder fits every rung on the fitting prompts and judges it on the others.
func (st *study) ladder(ctx context.Context) error {
	kinds := Ladder(st.c.Hidden && st.s.Hidden > 0)
	if st.judge[0].Value != nil {
		kinds = append(kinds, Exact)
	}
	rungs := make([]*Rung, len(kinds))
	var wg sync.WaitGroup
	for i, k := range kinds {
		wg.Go(func() { rungs[i] = st.climb(k) })
	}
	wg.Wait()
	for _, r := range rungs {
		st.talk("%-16s %s\n", r.Kind, summary(r))
	}
	st.res.Ladder = rungs
	st.res.Adds = st.adds()
	return nil
}

// climb fits and judges one rung.
func (st *study) climb(k Kind) *Rung {
	r := &Rung{Kind: k, Asked: st.c.FalseAlarms, predictor: exact{}}
	if k != Exact {
		r.predictor = st.view.fit(k, st.fit)
	}
	r.below = calibrate(r.predictor, st.fit, st.c.FalseAlarms)
	r.fires = r.below.all(st.judge)
	r.AUC, r.Calibration, r.Trigger = st.curve(r.predictor, st.groups), calibration(r.predictor, st.judge), quality(r.fires, st.judge)
	return r
}

func summary(r *Rung) string {
	mid := r.AUC[len(r.AUC)/2]
	return fmt.Sprintf("AUC after %d tokens: within %.3f, pooled %.3f; fires on %.0f %% of failures, %.0f %% of successes", mid.At, mid.Within.Value, mid.Pooled.Value, 100*r.Trigger.OnWrong, 100*r.Trigger.OnRight)
}

func (st *study) curve(p Predictor, groups [][]*Trace) (out []AUC) {
	for n := 1; n < st.longest; n++ {
		if a := auc(p, groups, n, st.c.Bootstrap, st.c.Seed); a.Mixed > 0 {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		nan := Estimate{0.5, 0, 1}
		out = append(out, AUC{At: 1, Within: nan, Pooled: nan})
	}
	return out
}

// adds is, after n tokens, the within-prompt AUC of entropy less that of length and difficulty, on the same resampled prompts.
func (st *study) adds() (out []Estimate) {
	base, over := st.rung(Length).predictor, st.rung(Entropy).predictor
	for n := 1; n < st.longest; n++ {
		var a, b, pairs []float64
		for _, g := range st.groups {
			var x, y []scored
			for _, t := range g {
				if t.Len() > n {
					x, y = append(x, scored{base.Predict(t, n), t.Right}), append(y, scored{over.Predict(t, n), t.Right})
				}
			}
			h, m := concordance(x)
			k, _ := concordance(y)
			a, b, pairs = append(a, h), append(b, k), append(pairs, m)
		}
		if e := bootstrap(len(a), st.c.Bootstrap, st.c.Seed, func(pick []int) float64 { return ratioOf(b, pairs)(pick) - ratioOf(a, pairs)(pick) }); !math.IsNaN(e.Value) {
			out = append(out, e)
		}
	}
	return out
}

func (st *study) rung(k Kind) *Rung { return st.res.rung(k) }

// later tests predictors and thresholds, as they are, on the policy after some reinforcement.
func (st *study) later(ctx context.Context) error {
	if st.c.Later == 0 || st.s.Later == nil {
		return nil
	}
	st.talk("reinforcing for %d steps, to test the predictors on a later policy\n", st.c.Later)
	w, err := st.s.Later(ctx, st.c.Later)
	if err != nil {
		return err
	}
	hidden := 0
	if st.c.Hidden {
		hidden = st.s.Hidden
	}
	half := st.res.Fit
	traces, _, err := capture(ctx, w, st.s.Prompts[half:], rl.Draw{Group: st.c.Group, Seed: st.c.Seed + 1}, hidden)
	if err != nil {
		return err
	}
	groups := byPrompt(traces)
	var wg sync.WaitGroup
	for _, r := range st.res.Ladder {
		if r.Kind == Exact { // of the policy before
			continue
		}
		wg.Go(func() {
			r.Later = &LaterRung{AUC: st.curve(r.predictor, groups), Calibration: calibration(r.predictor, traces), Trigger: quality(r.below.all(traces), traces)}
		})
	}
	wg.Wait()
	st.talk("the later policy is right in %.1f %%\n", 100*share(traces))
	return nil
}

// triggers are the rows of the grid. matched is the one that random, position and difficulty triggers are matched to.
func (st *study) triggers() (names []string, all map[string]fires) {
	r := rand.New(rand.NewPCG(st.c.Seed, 5))
	all = map[string]fires{}
	add := func(name string, f fires) {
		names = append(names, name)
		all[name] = f
	}
	matched := st.rung(Entropy).fires
	for _, k := range []Kind{Entropy, Window, Network, Probe, Exact} {
		if rung := st.rung(k); rung != nil {
			add(string(k), rung.fires)
		}
	}
	position := middle(matched)
	prior := st.rung(Prior).predictor
	add("random", permuted(matched, st.judge, false, r))
	add("entropy shuffled within prompt", permuted(matched, st.judge, true, r))
	add("window shuffled within prompt", permuted(st.rung(Window).fires, st.judge, true, r))
	add("position", ranked(st.judge, func(*Trace) float64 { return 0 }, position, matched.rate(), r))
	add("difficulty", ranked(st.judge, func(t *Trace) float64 { return -prior.Predict(t, 1) }, position, matched.rate(), r))
	add("oracle", oracle(st.judge))
	add("anti-oracle", antiOracle(matched, st.judge, r))
	return names, all
}

// middle is the median position at which a trigger fired.
func middle(f fires) int {
	var at []int
	for _, n := range f {
		if n != never {
			at = append(at, n)
		}
	}
	if len(at) == 0 {
		return 1
	}
	slices.Sort(at)
	return at[len(at)/2]
}

// arms draws the grid.
func (st *study) arms(ctx context.Context) error {
	g := &grid{world: st.s.World, prompts: st.s.Prompts, seed: st.c.Seed, fresh: 1 << 40}
	names, all := st.triggers()
	if err := st.arm(ctx, g, Arm{Trigger: string(Entropy), Action: Nothing}, all[string(Entropy)], nil); err != nil {
		return err
	}
	for _, name := range names {
		for _, a := range actions() {
			if err := st.arm(ctx, g, Arm{Trigger: name, Action: a}, all[name], nil); err != nil {
				return err
			}
		}
		st.talk("arms of %s drawn\n", name)
	}
	r := rand.New(rand.NewPCG(st.c.Seed, 6))
	judge := st.rung(Window).predictor
	for _, x := range []struct {
		choice string
		pick   choose
	}{
		{"random", func(list []branch) int { return r.IntN(len(list)) }},
		{"length", func(list []branch) int { return best(list, func(b branch) float64 { return -float64(b.trace.Len()) }) }},
		{"classifier", func(list []branch) int {
			return best(list, func(b branch) float64 { return judge.Predict(b.trace, max(1, b.trace.Len()-1)) })
		}},
		{"truth", func(list []branch) int { return best(list, func(b branch) float64 { return truth(b.trace) }) }},
	} {
		for _, name := range []string{string(Window), "random"} {
			if err := st.arm(ctx, g, Arm{Trigger: name, Action: ForkCut, Branches: st.c.Branches, Choice: x.choice}, all[name], x.pick); err != nil {
				return err
			}
		}
	}
	var p []float64
	for _, a := range st.res.Arms {
		p = append(p, a.P)
	}
	for i, v := range holm(p) {
		st.res.Arms[i].Holm = v
	}
	return nil
}

// best is the first branch of the largest score.
func best(list []branch, score func(branch) float64) (at int) {
	for i := range list {
		if score(list[i]) > score(list[at]) {
			at = i
		}
	}
	return at
}

func (st *study) arm(ctx context.Context, g *grid, a Arm, f fires, pick choose) error {
	a.Branches = max(1, a.Branches)
	out, err := g.act(ctx, a.Action, f, st.judge, a.Branches)
	if err != nil {
		return fmt.Errorf("study: %s: %w", a.Name(), err)
	}
	arm := settle(a, f, st.judge, out, pick, st.c.Bootstrap, st.c.Seed)
	if v, ok := expected(a.Action, f, st.judge); ok && a.Branches == 1 {
		arm.Expected = &v
	}
	st.res.Arms = append(st.res.Arms, arm)
	return nil
}
