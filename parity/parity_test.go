package parity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"heddle/model"
	"heddle/model/hf"
	"heddle/tensor"
	"heddle/train"
)

func TestEverySchemeHasTheGradientOfOneRank(t *testing.T) {
	in := NewInput(Tiny(), 4, 32, 1, 1)
	ref := oracle(t, in)
	for _, name := range append([]string{"tp4", "ulysses2-tp2"}, acceptance...) {
		agrees(t, in, name, ref)
	}
}

func TestCompareIsWithinTheLimitInFloat32(t *testing.T) {
	in := NewInput(Tiny(), 4, 32, 1, 1)
	schemes, err := Schemes(acceptance, in.Config, in.B, in.S)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	c, err := Compare(t.Context(), in, Grid{Schemes: schemes}, train.Machine{Type: tensor.F32, Threads: 1}, func(name string) { names = append(names, name) })
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range c.Broken() {
		t.Error(b)
	}
	if !slices.Equal(names, acceptance) {
		t.Errorf("told of %v", names)
	}
	if len(c.Schemes) != len(acceptance) || c.Noise <= 0 || c.Noise > LimitF32 || len(c.Crossings) != 2 {
		t.Errorf("%d schemes, noise %g, %d crossings", len(c.Schemes), c.Noise, len(c.Crossings))
	}
}

// families are small models of every family, with all the biases that a family may have.
func families() map[string]model.Config {
	base := model.Config{Layers: 2, Hidden: 32, Heads: 8, KV: 2, Head: 4, MLP: 24, Vocab: 67, Theta: 1e4, Eps: 1e-6, Std: 0.02}
	llama, qwen2, gpt2 := base, base, base
	llama.Family, llama.AttentionBias, llama.MLPBias = hf.Llama, true, true
	llama.Llama3 = model.Llama3{Factor: 8, Low: 1, High: 4, Positions: 16}
	qwen2.Family, qwen2.Tied = hf.Qwen2, true
	gpt2.Family, gpt2.KV, gpt2.Positions, gpt2.Tied = hf.GPT2, 8, 24, true
	return map[string]model.Config{"qwen3": base, "llama": llama, "qwen2": qwen2, "gpt2": gpt2}
}

func TestEveryFamilyHasTheGradientOfOneRank(t *testing.T) {
	for _, c := range families() {
		in := NewInput(c, 4, 16, 1, 1)
		ref := oracle(t, in)
		for _, name := range append([]string{"tp4", "megatron8", "ulysses2-tp2"}, acceptance...) {
			agrees(t, in, name, ref)
		}
	}
}

// One token to a sequence: attention's weights are 1 whatever q and k are, so their gradients are nothing but rounding, which is no error.
func TestCompareOfSequencesOfOneToken(t *testing.T) {
	for _, on := range []train.Machine{{Type: tensor.F32, Threads: 1}, {Type: tensor.F64, Threads: 1}} {
		for _, b := range []int{1, 2} {
			in := NewInput(Tiny(), 2*b, 1, 1, 1)
			schemes, err := Schemes([]string{"single", "dp2", "tp4", "fsdp2-tp2"}, in.Config, in.B, in.S)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Compare(t.Context(), in, Grid{Schemes: schemes}, on, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range c.Broken() {
				t.Errorf("%v, batch %d: %s", on.Type, in.B, x)
			}
		}
	}
}

func TestBrokenNamesWhatIsBeyondALimit(t *testing.T) {
	row := func() Row {
		return Row{Scheme: "tp2", Recompute: "selective", Accumulate: 1, Measured: &Measured{DrySame: true, GradErr: 1e-15, NormRatio: 1, Loss: 6}, Bytes: map[string]int64{"tp/all-reduce": 8},
			BytesExpected: map[string]int64{"tp/all-reduce": 8}, Saved: 4, SavedExpected: 4}
	}
	for want, alter := range map[string]func(*Row){
		"":                          func(*Row) {},
		"a gradient is off by":      func(r *Row) { r.GradErr = 2e-12 },
		"norm is off by":            func(r *Row) { r.NormRatio = 1 - 2e-12 },
		"ranks' copies":             func(r *Row) { r.spread = 1e-30 },
		"the closed form says map[": func(r *Row) { r.Bytes = map[string]int64{"tp/all-reduce": 16} },
		"received map[tp/all-reduc": func(r *Row) { r.BytesExpected = map[string]int64{} },
		"the closed form says 4":    func(r *Row) { r.Saved = 5 },
	} {
		r := row()
		alter(&r)
		got := strings.Join((&Comparison{Schemes: []Row{r}, Limit: LimitF64}).Broken(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}

func TestCompareEndsBetweenSchemes(t *testing.T) {
	in := NewInput(extreme().Config, 4, 16, 1, 1)
	schemes, err := Schemes([]string{"single", "dp2", "tp2"}, in.Config, in.B, in.S)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var last string
	_, err = Compare(ctx, in, Grid{Schemes: schemes}, train.Machine{Type: tensor.F64}, func(name string) {
		if last = name; name == "dp2" {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || last != "dp2" {
		t.Errorf("ended with %v after %s", err, last)
	}
}

func TestNeedsIsTheLargestSchemesPeakAndTwoGradients(t *testing.T) {
	in := NewInput(extreme().Config, 4, 16, 1, 1)
	r, err := Gradient(in, must(t, "ulysses4"), Options{On: train.Machine{Type: tensor.F64}})
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for _, rank := range r.Ranks {
		want += int64(rank.Memory.Peak)
	}
	for _, g := range r.Grads {
		want += int64(2 * 8 * len(g))
	}
	got, err := Needs(in, Grid{Schemes: []Scheme{{"tp2", must(t, "tp2")}, {"ulysses4", must(t, "ulysses4")}}}, tensor.F64)
	if err != nil || got != want {
		t.Errorf("needs %d, want %d, %v", got, want, err)
	}
}

// A mean of the ranks' means is not the mean: every way to cut the batch gives its ranks different numbers of tokens.
func TestMasksAreUnevenOverRanksAndSequences(t *testing.T) {
	in := NewInput(Tiny(), 4, 32, 1, 1)
	for _, cut := range []struct{ b, s int }{{4, 1}, {2, 1}, {1, 2}, {1, 4}, {2, 2}} {
		counts := map[float32]int{}
		for part := range cut.b * cut.s {
			n := float32(0)
			for i, on := range in.Mask {
				if i/in.S/(in.B/cut.b) == part/cut.s && i%in.S/(in.S/cut.s) == part%cut.s {
					n += on
				}
			}
			counts[n]++
		}
		if len(counts) < 2 {
			t.Errorf("batch in %d, sequence in %d: every rank has as many tokens: %v", cut.b, cut.s, counts)
		}
	}
}
