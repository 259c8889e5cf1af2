package parity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"heddle/model"
	"heddle/parity/formula"
	"heddle/tensor"
	"heddle/train"
)

var policies = []string{"none", "selective", "full", "every2"}

// grid is schemes under schedules.
func grid(t *testing.T, in Input, names, policies []string, accumulate ...int) Grid {
	t.Helper()
	schedules, err := Schedules(policies, accumulate)
	if err != nil {
		t.Fatal(err)
	}
	var schemes []Scheme
	for _, n := range accumulate {
		if schemes, err = Schemes(names, in.Config, in.B/n, in.S); err != nil {
			t.Fatal(err)
		}
	}
	return Grid{schemes, schedules}
}

// Bytes, kept activations and the order of peaks, of every scheme, every policy and cuts of the batch, for models of one to five
// layers. heddle compare --recompute none,selective,full,every2 --accumulate 1,3 computes the whole table.
func TestSchedulesDryEqualTheClosedForms(t *testing.T) {
	names := append(append([]string{}, acceptance...), further...)
	check := func(family string, c model.Config, names []string, layers int) {
		c.Layers = layers
		in := NewInput(c, 36, 24, 1, 1)
		g := grid(t, in, names, append(policies, "every3"), 1, 3)
		r, err := Compare(t.Context(), in, g, train.Machine{Type: tensor.F32, Dry: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Schemes) != g.Rows() {
			t.Errorf("%d rows, want %d", len(r.Schemes), g.Rows())
		}
		for _, b := range r.Broken() {
			t.Errorf("%s, %d layers: %s", family, layers, b)
		}
	}
	third := func(i int) []string { return names[i%3*len(names)/3 : (i%3+1)*len(names)/3] }
	for i, layers := range []int{1, 2, 5} {
		check("tiny", Tiny(), third(i), layers)
	}
	of := families()
	for i, family := range slices.Sorted(maps.Keys(of)) { // each some others
		check(family, of[family], third(i)[:5], 2)
	}
}

// A sample of the table that computes: every policy and both cuts meet schemes of every kind.
func TestSchedulesHaveTheGradientOfOneRank(t *testing.T) {
	in := NewInput(model.Config{Layers: 3, Hidden: 16, Heads: 8, KV: 2, Head: 4, MLP: 24, Vocab: 67, Theta: 1e4, Eps: 1e-6}, 12, 16, 1, 1)
	for i, names := range [][]string{{"single", "dp2-fsdp2-megatron2"}, {"fsdp2-ulysses2", "tp4"}, {"megatron4", "dp2"}, {"ulysses4", "fsdp2-tp2"}} {
		g := grid(t, in, names, []string{policies[i], policies[(i+1)%4]}, 1, 3)
		r, err := Compare(t.Context(), in, g, train.Machine{Type: tensor.F64, Threads: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range r.Broken() {
			t.Error(b)
		}
	}
}

// Micro-batches of three cuts have unequal numbers of tokens, so that a mean of means is off.
func TestMicroBatchesHaveUnequalCounts(t *testing.T) {
	in := NewInput(Tiny(), 12, 16, 1, 1)
	counts := map[float32]bool{}
	for i := range 3 {
		n := float32(0)
		for _, on := range in.Mask[i*4*16 : (i+1)*4*16] {
			n += on
		}
		counts[n] = true
	}
	if len(counts) < 2 {
		t.Errorf("every micro-batch has as many tokens: %v", counts)
	}
}

func TestBrokenSeesPeaksThatDoNotFall(t *testing.T) {
	row := func(policy string, n int, peak int64) Row {
		return Row{Scheme: "tp2", Recompute: policy, Accumulate: n, Peak: 10 + peak/10*10, Saved: peak, SavedExpected: peak}
	}
	for want, rows := range map[string][]Row{
		"": {row("none", 1, 9), row("selective", 1, 8), row("every2", 1, 7), row("full", 1, 7), row("none", 3, 6), row("selective", 3, 5), row("full", 3, 4)},
		"9 are kept with recomputation none and 1 micro-batches, but 10 and 9 with selective": {row("selective", 1, 9), row("none", 1, 9)},
		"but 10 and 6 with full and 1":          {row("every2", 1, 5), row("full", 1, 6)},
		"micro-batches, but 10 and 5 with full": {row("full", 1, 5), row("full", 3, 5)},
		"the peak is 10 and 9":                  {row("none", 1, 9), {Scheme: "tp2", Recompute: "selective", Accumulate: 1, Peak: 11, Saved: 8, SavedExpected: 8}},
	} {
		got := strings.Join((&Comparison{Schemes: rows, Model: Tiny()}).Broken(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

// The closed form of what is kept, by hand: four layers of which every second runs again keep two inputs and two layers when
// Forward ends; full keeps four inputs then, and three and a layer when the last is rebuilt; where the first and the last run again, that
// is when most is kept.
func TestSavedByHand(t *testing.T) {
	m := formula.Shape{B: 1, S: 4, H: 3, A: 2, G: 1, D: 2, F: 5, V: 7, L: 4, Elem: 1, QKNorm: true, Gated: true}
	const input, layer = 4 * 3, 4 * (3 + 1 + 4 + 4 + 2 + 1 + 4 + 2 + 3 + 1 + 10)
	for s, want := range map[formula.Schedule]int64{
		{}:           4 * layer,
		{Full: 1}:    3*input + layer,
		{Full: 2}:    2*input + 2*layer,
		{Full: 3}:    input + 3*layer,
		{Keep: true}: 4 * (layer + 4*(3+3+5) + 4*(4+2)),
	} {
		if got := formula.Saved(m, formula.Layout{}, s); got != want {
			t.Errorf("%+v: %d, want %d", s, got, want)
		}
	}
}

func TestPolicyNames(t *testing.T) {
	for _, name := range append(policies, "every3") {
		p, err := model.ParsePolicy(name)
		if err != nil || p.Name() != name || p.Check() != nil {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, name := range []string{"", "all", "every", "every1", "every0", "every02", "every+2", "every-2", "every99999", "Full"} {
		if _, err := model.ParsePolicy(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
