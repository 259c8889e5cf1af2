package grpo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// pair is one group of two completions, rewards 1 and 0, with policy ratios 1.5, 0.9 and 0.7, 1.1, 1 and policies 0.3, 0.5 and 0.2, 0.4, 0.9.
func pair() (groups []Group, logProbs [][]float64) {
	ratios := [][]float64{{1.5, 0.9}, {0.7, 1.1, 1}}
	policy := [][]float64{{0.3, 0.5}, {0.2, 0.4, 0.9}}
	entropy := [][]float64{{0.1, 0.5}, {0.4, 0.2, 0.3}}
	g := Group{{Reward: 1}, {Reward: 0}}
	for i := range g {
		logProbs = append(logProbs, nil)
		for k, r := range ratios[i] {
			lp := math.Log(policy[i][k])
			logProbs[i] = append(logProbs[i], lp)
			old := lp - math.Log(r)
			g[i].Tokens = append(g[i].Tokens, Token{Drawn: old, Proximal: old, Ref: old, Entropy: entropy[i][k], Weight: 1})
		}
	}
	return []Group{g}, logProbs
}

// Each variant's loss on the example, worked out by hand from its paper's formula.
func TestEachVariantIsItsPapersFormula(t *testing.T) {
	ln := math.Log
	for _, x := range []struct {
		name   string
		change func(*Config)
		want   float64
	}{
		// GRPO, 2402.03300 eq. 3 without KL: advantages ±1. First: (min(1.5, 1.2) + 0.9)/2 = 1.05; second: (−0.8 − 1.1 − 1)/3.
		{"grpo", func(c *Config) { c.KL = 0 }, -(1.05 - 2.9/3) / 2},
		// With KL eq. 4: r − ln r − 1, r = π_ref/π = 1/ratio; the example's reference is the old policy.
		{"grpo", func(c *Config) { c.KL = 0.1 }, -(1.05-2.9/3)/2 + 0.1/2*((1/1.5+ln(1.5)-1+1/0.9+ln(0.9)-1)/2+(1/0.7+ln(0.7)-1+1/1.1+ln(1.1)-1+0)/3)},
		// Dr. GRPO, 2503.20783: advantages ±0.5, divided by two completions of 10 tokens.
		{"dr-grpo", func(c *Config) { c.Length = 10 }, -(0.5*(1.2+0.9) - 0.5*(0.8+1.1+1)) / 20},
		// DAPO, 2503.14476 eq. 8: 1 + 0.28 above, one mean over five tokens.
		{"dapo", nil, -(1.28 + 0.9 - 0.8 - 1.1 - 1) / 5},
		// GSPO, 2507.18071 eq. 5 and 7: ratios √(1.5·0.9) and ∛(0.7·1.1·1), clipped to 0.9 … 1.1.
		{"gspo", func(c *Config) { c.ClipLow, c.ClipHigh = 0.1, 0.1 }, -(1.1 - math.Cbrt(0.77)) / 2},
		// CISPO, 2506.13585 eq. 4: clip(ρ)·A·ln π over five tokens, here with the ratio held below 1.2.
		{"cispo", func(c *Config) { c.ClipHigh = 0.2 }, -(1.2*ln(0.3) + 0.9*ln(0.5) - 0.7*ln(0.2) - 1.1*ln(0.4) - ln(0.9)) / 5},
		// RLOO, 2402.14740 eq. 8: 1 − 0 and 0 − 1.
		{"rloo", nil, -(1.05 - 2.9/3) / 2},
		// 80/20, 2506.01939 eq. 5, with a share of 0.4: the tokens of entropy 0.5 (ratio 0.9) and 0.4 (ratio 0.7), still divided by five.
		{"80/20", func(c *Config) { c.TopEntropy = 0.4 }, -(0.9 - 0.8) / 5},
	} {
		c, err := Preset(x.name)
		if err != nil {
			t.Fatal(err)
		}
		if x.change != nil {
			x.change(&c)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		groups, lp := pair()
		_, m := Advantages(c, groups).Loss(lp)
		if math.Abs(m.Loss-x.want) > 1e-14 { // a dozen operations on numbers near 1
			t.Errorf("%s: loss %.17g, want %.17g", x.name, m.Loss, x.want)
		}
	}
}

// Leave-one-out and the standard deviation on three rewards, 1, 0, 0: 1 − 0, 0 − ½; mean ⅓, variance 2/9.
func TestAdvantages(t *testing.T) {
	three := []float64{1, 0, 0}
	for _, x := range []struct {
		c    Config
		want []float64
	}{
		{Config{}, []float64{2. / 3, -1. / 3, -1. / 3}},
		{Config{LeaveOneOut: true}, []float64{1, -0.5, -0.5}},
		{Config{Std: true}, []float64{math.Sqrt2, -math.Sqrt2 / 2, -math.Sqrt2 / 2}},
	} {
		got, mixed := x.c.advantages(three, 1, 3)
		for i := range got {
			if math.Abs(got[i]-x.want[i]) > 1e-15 || !mixed {
				t.Errorf("%+v: %v, want %v", x.c, got, x.want)
			}
		}
	}
}

// reference is the loss written from the formulas with no regard for derivatives; frozen are the log-probabilities at which stopped gradients stand.
func reference(c Config, b *Batch, lp, frozen [][]float64) float64 {
	total := 0.0
	for i, r := range b.Rows {
		n, sum, sumFrozen := 0.0, 0.0, 0.0
		for k, t := range r.Tokens {
			if t.Weight != 0 {
				n, sum, sumFrozen = n+1, sum+lp[i][k]-t.Proximal, sumFrozen+frozen[i][k]-t.Proximal
			}
		}
		for k, t := range r.Tokens {
			if !r.grad[k] {
				continue
			}
			ratio, stopped := math.Exp(lp[i][k]-t.Proximal), math.Exp(frozen[i][k]-t.Proximal)
			if c.Ratio == OfSequence {
				ratio, stopped = math.Exp(sum/n), math.Exp(sumFrozen/n)
			}
			clip := func(x float64) float64 { return math.Max(1-c.ClipLow, math.Min(1+c.ClipHigh, x)) }
			x := math.Min(ratio*r.Advantage, clip(ratio)*r.Advantage)
			if c.Objective == CISPO {
				x = clip(stopped) * r.Advantage * lp[i][k]
			}
			if c.ImportanceCap > 0 {
				x *= math.Min(c.ImportanceCap, math.Exp(t.Proximal-t.Drawn))
			}
			q := math.Exp(t.Ref - lp[i][k])
			total += t.Weight * r.scale * (c.KL*(q-math.Log(q)-1) - x)
		}
	}
	return total
}

// Every combination of ratio, objective, normaliser, KL, importance and entropy mask: the loss is the reference's, and its derivative is the central
// difference (f(x+h) − f(x−h))/2h, h = 1e-5. Its truncation is h²/6·f‴ with f‴ ≤ 10 here, its rounding 2⁻⁵³·|f|/h ≤ 1e-11·|f|, so that 1e-8 leaves room; no
// ratio of this seed lies within h of a kink of clipping (it would show).
func TestDerivativesAreCentralDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 0
	for _, ratio := range []Ratio{OfToken, OfSequence} {
		for _, objective := range []Objective{Clip, CISPO} {
			for _, norm := range []Norm{PerSequence, PerToken, Constant} {
				for _, top := range []float64{0, 0.5} {
					for _, kl := range []float64{0, 0.3} {
						c := Config{Std: true, Norm: norm, Length: 7, Ratio: ratio, Objective: objective, ClipLow: 0.2, ClipHigh: 0.3, KL: kl, Overlong: Keep, TopEntropy: top, ImportanceCap: 1.5}
						if err := c.Check(); err != nil {
							t.Fatal(err)
						}
						n += checkDerivative(t, c, r)
					}
				}
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d derivatives compared", n)
	}
}

func checkDerivative(t *testing.T, c Config, r *rand.Rand) (compared int) {
	var groups []Group
	for range 2 {
		var g Group
		for i := range 3 {
			s := Sample{Reward: float64(i % 2)}
			for range 3 + r.IntN(4) {
				old := -2 * r.Float64()
				s.Tokens = append(s.Tokens, Token{Proximal: old, Drawn: old + 0.5*r.NormFloat64(), Ref: old + 0.5*r.NormFloat64(), Entropy: r.Float64(), Weight: []float64{1, 1, 0.5, 0}[r.IntN(4)]})
			}
			g = append(g, s)
		}
		groups = append(groups, g)
	}
	b := Advantages(c, groups)
	var lp [][]float64
	for _, row := range b.Rows {
		var x []float64
		for _, k := range row.Tokens {
			x = append(x, k.Proximal+0.25*r.NormFloat64())
		}
		lp = append(lp, x)
	}
	grad, m := b.Loss(lp)
	if want := reference(c, b, lp, lp); math.Abs(m.Loss-want) > 1e-13 {
		t.Errorf("%+v: loss %g, reference %g", c, m.Loss, want)
	}
	const h = 1e-5
	for i := range lp {
		for k := range lp[i] {
			at := func(x float64) float64 {
				moved := append([][]float64(nil), lp...)
				moved[i] = append([]float64(nil), lp[i]...)
				moved[i][k] += x
				return reference(c, b, moved, lp)
			}
			if got, want := grad[i][k], (at(h)-at(-h))/(2*h); math.Abs(got-want) > 1e-8 {
				t.Errorf("%+v: row %d token %d: %.12g, difference %.12g", c, i, k, got, want)
			}
			compared++
		}
	}
	return compared
}

// The parts of a batch, as ranks hold them, have the batch's derivatives bit for bit, and their metrics merge to the batch's.
func TestPartsMakeTheWhole(t *testing.T) {
	c, _ := Preset("grpo")
	groups, lp := pair()
	groups, lp = append(groups, groups...), append(lp, lp...)
	b := Advantages(c, groups)
	grad, want := b.Loss(lp)
	var parts []Metrics
	for lo := 0; lo < 6; lo += 3 { // the last part reaches beyond the rows
		g, m := b.Part(lo, lo+3).Loss(lp[lo:min(lo+3, len(lp))])
		parts = append(parts, m)
		if fmt.Sprint(g) != fmt.Sprint(grad[lo:min(lo+3, len(lp))]) {
			t.Errorf("rows from %d: %v, want %v", lo, g, grad[lo:])
		}
	}
	got := Merge(parts...)
	for i, x := range append(got.means(), &got.Loss, &got.RatioMost) {
		if w := *append(want.means(), &want.Loss, &want.RatioMost)[i]; math.Abs(*x-w) > 1e-15 {
			t.Errorf("metric %d: %g, want %g", i, *x, w)
		}
	}
	if got.Tokens != want.Tokens || got.Tokens != 10 {
		t.Errorf("%d tokens, want %d", got.Tokens, want.Tokens)
	}
}

// What cannot teach has no loss, is counted, and changes nothing for the others.
func TestWhatCannotTeach(t *testing.T) {
	tok := func(n int) (out []Token) {
		for range n {
			out = append(out, Token{Drawn: -1, Proximal: -1, Weight: 1})
		}
		return out
	}
	mixed := Group{{Reward: 1, Tokens: tok(2)}, {Reward: 0, Tokens: tok(2)}}
	nan, inf := math.NaN(), math.Inf(1)
	for _, x := range []struct {
		name   string
		change func(*Config)
		group  Group
		rows   int
		counts Counts
	}{
		{"all equal", nil, Group{{Reward: 1, Tokens: tok(3)}, {Reward: 1, Tokens: tok(1)}}, 2, Counts{Equal: 1, Rows: 2, Tokens: 4}},
		{"all equal, dropped", func(c *Config) { c.DropEqual = true }, Group{{Reward: 1, Tokens: tok(3)}, {Reward: 1, Tokens: tok(1)}}, 0, Counts{Equal: 1}},
		{"one of three unscorable", nil, Group{{Reward: 1, Tokens: tok(1)}, {Reward: nan, Tokens: tok(9)}, {Reward: 0, Tokens: tok(1)}}, 2, Counts{Mixed: 1, Unscorable: 1, Rows: 2, Tokens: 2}},
		{"infinite reward", nil, Group{{Reward: 1, Tokens: tok(1)}, {Reward: inf, Tokens: tok(9)}, {Reward: 0, Tokens: tok(1)}}, 2, Counts{Mixed: 1, Unscorable: 1, Rows: 2, Tokens: 2}},
		{"none scorable", nil, Group{{Reward: nan, Tokens: tok(1)}, {Reward: nan, Tokens: tok(1)}}, 0, Counts{Unscored: 1, Unscorable: 2}},
		{"only one scorable", nil, Group{{Reward: 1, Tokens: tok(1)}, {Reward: nan, Tokens: tok(1)}}, 1, Counts{Equal: 1, Unscorable: 1, Rows: 1, Tokens: 1}},
		{"an empty completion", nil, Group{{Reward: 0}, {Reward: 1, Tokens: tok(2)}}, 1, Counts{Mixed: 1, Empty: 1, Rows: 1, Tokens: 2}},
		{"nothing but injected tokens", nil, Group{{Reward: 0, Tokens: []Token{{}}}, {Reward: 1, Tokens: tok(2)}}, 1, Counts{Mixed: 1, Rows: 1, Tokens: 2}},
		{"cut off and masked", func(c *Config) { c.Overlong = Mask }, Group{{Reward: 0, Truncated: true, Tokens: tok(5)}, {Reward: 1, Tokens: tok(2)}}, 1, Counts{Mixed: 1, Truncated: 1, Rows: 1, Tokens: 2}},
		{"no samples", nil, Group{}, 0, Counts{Unscored: 1}},
	} {
		c := Config{Std: true, Norm: PerToken, Ratio: OfToken, Objective: Clip, ClipLow: 0.2, ClipHigh: 0.2, Overlong: Keep}
		if x.change != nil {
			x.change(&c)
		}
		alone := Advantages(c, []Group{mixed})
		both := Advantages(c, []Group{mixed, x.group})
		want := x.counts
		want.Groups, want.Mixed, want.Samples, want.Rows, want.Tokens = 2, want.Mixed+1, 2+len(x.group), want.Rows+2, want.Tokens+4
		got := both.Counts
		if got.Reward = 0; got != want || len(both.Rows) != x.rows+2 {
			t.Errorf("%s: %+v, want %+v", x.name, got, want)
		}
		var lp [][]float64
		for i, r := range both.Rows {
			if i < 2 && r.Advantage != alone.Rows[i].Advantage {
				t.Errorf("%s: another group's advantage became %g", x.name, r.Advantage)
			}
			lp = append(lp, make([]float64, len(r.Tokens)))
			for k := range lp[i] {
				lp[i][k] = -1.1
			}
		}
		grad, m := both.Loss(lp)
		for i := range grad {
			for k, v := range grad[i] {
				if !finite(v) || both.Rows[i].Advantage == 0 && v != 0 {
					t.Errorf("%s: derivative of row %d token %d is %g", x.name, i, k, v)
				}
			}
		}
		if !finite(m.Loss) {
			t.Errorf("%s: loss %g", x.name, m.Loss)
		}
	}
	if _, m := Advantages(Config{}, nil).Loss(nil); m != (Metrics{}) {
		t.Errorf("nothing at all: %+v", m)
	}
}

// Equation 13 of DAPO with Length 10 and Buffer 4: nothing up to 6 tokens, −¼ at 7, −1 at 10.
func TestOverlongPenalty(t *testing.T) {
	c := Config{Overlong: Penalty, Length: 10, Buffer: 4}
	for n, want := range map[int]float64{0: 0, 6: 0, 7: -0.25, 9: -0.75, 10: -1, 12: -1} {
		if got := c.penalty(Sample{Tokens: make([]Token, n)}); got != want {
			t.Errorf("%d tokens: %g, want %g", n, got, want)
		}
	}
}

func TestConfigIsCheckedBeforeUse(t *testing.T) {
	for _, name := range []string{"grpo", "dr-grpo", "dapo", "gspo", "cispo", "rloo", "80/20"} {
		c, err := Preset(name)
		if c.Norm == Constant {
			c.Length = 8
		}
		if err != nil || c.Check() != nil {
			t.Errorf("%s: %v %v", name, err, c.Check())
		}
	}
	if _, err := Preset("ppo"); err == nil || !strings.Contains(err.Error(), "hint") {
		t.Errorf("%v", err)
	}
	for says, change := range map[string]func(*Config){
		"norm": func(c *Config) { c.Norm = "" }, "ratio": func(c *Config) { c.Ratio = "x" }, "objective": func(c *Config) { c.Objective = "x" }, "overlong": func(c *Config) { c.Overlong = "" },
		"clip_low": func(c *Config) { c.ClipLow = 1.5 }, "clip_high": func(c *Config) { c.ClipHigh = math.NaN() }, "kl": func(c *Config) { c.KL = -1 }, "top_entropy": func(c *Config) { c.TopEntropy = 2 },
		"importance_cap": func(c *Config) { c.ImportanceCap = 0.5 }, "length": func(c *Config) { c.Norm = Constant }, "buffer is": func(c *Config) { c.Overlong, c.Length = Penalty, 4 },
		"no effect": func(c *Config) { c.Buffer = 4 }, "std divides": func(c *Config) { c.LeaveOneOut = true },
	} {
		c, _ := Preset("grpo")
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func ExamplePreset() {
	c, _ := Preset("dapo")
	fmt.Println(c.Norm, c.ClipLow, c.ClipHigh, c.DropEqual)
	// Output: token 0.2 0.28 true
}
