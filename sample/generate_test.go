package sample_test

import (
	"context"
	"math"
	"reflect"
	"slices"
	"testing"

	"heddle/num"
	"heddle/sample"
)

// fake is a Decoder whose logits are a function of the tokens before: a random row for each pair of the last two. It knows
// what every sequence holds, so that it finds wrong feeds.
type fake struct {
	vocab, context int
	texts          map[sample.Handle][]int32
	next           sample.Handle
	most           int // sequences open at once
	row            func(ids []int32) []float32
}

func newFake(vocab, context int) *fake {
	f := &fake{vocab: vocab, context: context, texts: map[sample.Handle][]int32{}}
	f.row = func(ids []int32) []float32 {
		stream := uint64(0)
		for _, id := range ids[max(0, len(ids)-2):] {
			stream = stream*uint64(vocab+1) + uint64(id) + 1
		}
		x := make([]float32, vocab)
		for i := range x {
			x[i] = float32(2 * num.Normal(3, stream, uint64(i)))
		}
		return x
	}
	return f
}

func (f *fake) Vocab() int      { return f.vocab }
func (f *fake) Context() int    { return f.context }
func (f *fake) Version() uint64 { return 5 }

func (f *fake) Fork(from sample.Handle, keep int) sample.Handle {
	h := f.next
	f.next++
	f.texts[h] = slices.Clone(f.texts[from][:keep])
	f.most = max(f.most, len(f.texts))
	return h
}

func (f *fake) Close(h sample.Handle) {
	if _, ok := f.texts[h]; !ok {
		panic("closed twice")
	}
	delete(f.texts, h)
}

func (f *fake) Forward(feeds []sample.Feed) error {
	for _, d := range feeds {
		f.texts[d.Seq] = append(f.texts[d.Seq], d.Tokens...)
		if d.Logits != nil {
			copy(d.Logits, f.row(f.texts[d.Seq]))
		}
	}
	return nil
}

func generate(t *testing.T, f *fake, o sample.Options, prompts ...sample.Prompt) ([]*sample.Sequence, sample.Bill) {
	t.Helper()
	seqs, bill, err := sample.Generate(context.Background(), f, o, prompts...)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.texts) != 0 {
		t.Fatalf("%d sequences are still open", len(f.texts))
	}
	if bill.Sampled != bill.Kept+bill.Discarded {
		t.Fatalf("bill does not add up: %+v", bill)
	}
	return seqs, bill
}

// A sequence does not depend on its neighbours: alone, in any batch, from a shared prompt or its own.
func TestSequencesDoNotDependOnTheBatch(t *testing.T) {
	o := sample.Options{MaxTokens: 12, Temperature: 0.9, Seed: 11, Stop: []int32{3}, Top: 2}
	prompts := []sample.Prompt{{IDs: []int32{1, 2, 4}, Streams: []uint64{0, 1, 2, 9}}, {IDs: []int32{7}, Streams: []uint64{4}}, {IDs: []int32{1, 2, 4}, Streams: []uint64{9}}}
	want, _ := generate(t, newFake(17, 100), o, prompts...)
	if !reflect.DeepEqual(want[3].Tokens, want[5].Tokens) {
		t.Error("equal prompts with equal streams differ")
	}
	for _, batch := range []int{1, 2, 4} {
		o.Batch = batch
		f := newFake(17, 100)
		got, bill := generate(t, f, o, prompts...)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("batch %d: other sequences", batch)
		}
		if f.most > batch+3 { // one for each prompt that streams still start from
			t.Errorf("batch %d: %d sequences open at once", batch, f.most)
		}
		// Of the prompts 3+1+3 tokens; each stream computes the last one again, and every token but its own last.
		if sampled := bill.Sampled; bill.Prompt != 7 || bill.Computed != 2+0+2+sampled {
			t.Errorf("batch %d: bill %+v", batch, bill)
		}
	}
	for i, s := range want {
		p := prompts[s.Prompt]
		alone, _ := generate(t, newFake(17, 100), o, sample.Prompt{IDs: p.IDs, Streams: []uint64{s.Stream}})
		if !reflect.DeepEqual(alone[0].Tokens, s.Tokens) {
			t.Errorf("sequence %d is another one alone", i)
		}
	}
}

// Every number of a token is what float64 makes of the fake's logits. float32 exp is within 2 ulp, sums of 17 add 17 roundings:
// 1e-5 leaves an order of magnitude.
func TestTokensCarryTheirMeasures(t *testing.T) {
	f := newFake(17, 100)
	o := sample.Options{MaxTokens: 20, Temperature: 0.7, TopK: 9, TopP: 0.8, Seed: 2, Top: 3}
	prompt := []int32{5, 6}
	seqs, _ := generate(t, f, o, sample.Prompt{IDs: prompt, Streams: []uint64{0, 1, 2, 3}})
	for _, s := range seqs {
		ids := slices.Clone(prompt)
		for at, tok := range s.Tokens {
			logp := logSoftmax(f.row(ids), 1)
			entropy := 0.0
			for _, l := range logp {
				entropy -= math.Exp(l) * l
			}
			near(t, "logprob", tok.LogProb, logp[tok.ID])
			near(t, "entropy", tok.Entropy, entropy)
			order := byLogProb(logp)
			for i, c := range tok.Top {
				if c.ID != order[i] {
					t.Fatalf("candidate %d is %d, want %d", i, c.ID, order[i])
				}
				near(t, "candidate", c.LogProb, logp[c.ID])
			}
			near(t, "drawn", tok.Drawn, cutLogProb(logSoftmax(f.row(ids), o.Temperature), tok.ID, o.TopK, o.TopP))
			if tok.Version != 5 {
				t.Fatalf("version %d at %d, want 5", tok.Version, at)
			}
			ids = append(ids, tok.ID)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-5) {
		t.Fatalf("%s %g, want %g", what, got, want)
	}
}

func logSoftmax(x []float32, temperature float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) / temperature)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)/temperature - math.Log(sum)
	}
	return out
}

func byLogProb(logp []float64) []int32 {
	ids := make([]int32, len(logp))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortStableFunc(ids, func(a, b int32) int {
		if logp[a] > logp[b] {
			return -1
		}
		return 1
	})
	return ids
}

// cutLogProb is the logarithm of id's share of the top k and of those of the top p; −Inf where it is cut off.
func cutLogProb(logp []float64, id int32, k int, p float64) float64 {
	order := byLogProb(logp)[:k]
	all := 0.0
	for _, i := range order {
		all += math.Exp(logp[i])
	}
	kept, found := 0.0, false
	for _, i := range order {
		if kept += math.Exp(logp[i]); i == id {
			found = true
		}
		if kept >= p*all {
			break
		}
	}
	if !found {
		return math.Inf(-1)
	}
	return logp[id] - math.Log(kept)
}

// Frequencies follow the probabilities: 20,000 draws over 17 tokens; χ² with 16 degrees of freedom is below 45 but once in 10⁴.
// The seed is fixed, so the test either always passes or never.
func TestFrequenciesFollowProbabilities(t *testing.T) {
	for _, o := range []sample.Options{{Temperature: 1}, {Temperature: 1.7}, {Temperature: 1, TopK: 5}, {Temperature: 1, TopP: 0.6}} {
		f := newFake(17, 100)
		o.MaxTokens, o.Seed, o.Batch = 1, 77, 500
		const n = 20000
		p := sample.Prompt{IDs: []int32{5, 6}}
		for i := range n {
			p.Streams = append(p.Streams, uint64(i))
		}
		seqs, _ := generate(t, f, o, p)
		count := make([]float64, 17)
		for _, s := range seqs {
			count[s.Tokens[0].ID]++
		}
		k, top := o.TopK, o.TopP
		if k == 0 {
			k = 17
		}
		if top == 0 {
			top = 1
		}
		chi := 0.0
		logp := logSoftmax(f.row(p.IDs), o.Temperature)
		for id, c := range count {
			want := n * math.Exp(cutLogProb(logp, int32(id), k, top))
			if want == 0 && c > 0 {
				t.Fatalf("%+v: token %d is cut off and was drawn", o, id)
			}
			if want > 0 {
				chi += (c - want) * (c - want) / want
			}
		}
		if chi > 45 {
			t.Errorf("%+v: χ² is %.1f, want below 45", o, chi)
		}
	}
}

func TestGreedyTakesTheFirstOfEquals(t *testing.T) {
	f := newFake(5, 100)
	f.row = func([]int32) []float32 { return []float32{0, 2, 1, 2, float32(math.Inf(-1))} }
	seqs, _ := generate(t, f, sample.Options{MaxTokens: 3, Top: 5}, sample.Prompt{IDs: []int32{0}, Streams: []uint64{0}})
	if ids := seqs[0].IDs(); !slices.Equal(ids, []int32{1, 1, 1}) {
		t.Errorf("ids %v, want 1 1 1", ids)
	}
	top := seqs[0].Tokens[0].Top
	if top[0].ID != 1 || top[1].ID != 3 || top[4].ID != 4 || !math.IsInf(top[4].LogProb, -1) {
		t.Errorf("candidates %v", top)
	}
	if e := seqs[0].Tokens[0].Entropy; math.IsNaN(e) {
		t.Error("entropy is not a number where a logit is −∞")
	}
}

func TestCandidatesOfEqualProbabilityComeById(t *testing.T) {
	f := newFake(9, 100)
	f.row = func([]int32) []float32 { return []float32{1, 1, 3, 1, 3, 1, 1, 3, 1} }
	seqs, _ := generate(t, f, sample.Options{MaxTokens: 1, Top: 9}, sample.Prompt{IDs: []int32{0}, Streams: []uint64{0}})
	var ids []int32
	for _, c := range seqs[0].Tokens[0].Top {
		ids = append(ids, c.ID)
	}
	if !slices.Equal(ids, []int32{2, 4, 7, 0, 1, 3, 5, 6, 8}) {
		t.Errorf("candidates %v", ids)
	}
}

func TestEndsSayWhy(t *testing.T) {
	for _, c := range []struct {
		o    sample.Options
		stop bool
		end  sample.End
		n    int
	}{
		{sample.Options{MaxTokens: 4}, false, sample.ByLength, 4},
		{sample.Options{}, false, sample.ByContext, 7},
		{sample.Options{Stop: []int32{2}}, true, sample.ByStop, 3},
		{sample.Options{MaxTokens: 3, Stop: []int32{2}}, true, sample.ByStop, 3},
	} {
		f := newFake(4, 10)
		f.row = func(ids []int32) []float32 {
			x := make([]float32, 4)
			if x[1] = 1; c.stop && len(ids) == 5 {
				x[2] = 2
			}
			return x
		}
		seqs, _ := generate(t, f, c.o, sample.Prompt{IDs: []int32{0, 0, 0}, Streams: []uint64{0}})
		if s := seqs[0]; s.End != c.end || len(s.Tokens) != c.n {
			t.Errorf("%+v: ended by %q after %d tokens, want %q after %d", c.o, s.End, len(s.Tokens), c.end, c.n)
		}
	}
}

func TestRefusals(t *testing.T) {
	ok := sample.Prompt{IDs: []int32{1}, Streams: []uint64{0}}
	nan := newFake(4, 10)
	nan.row = func([]int32) []float32 { return []float32{0, float32(math.NaN()), 0, 0} }
	inf := newFake(4, 10)
	inf.row = func([]int32) []float32 { return []float32{0, float32(math.Inf(1)), 0, 0} }
	for name, c := range map[string]struct {
		f *fake
		o sample.Options
		p sample.Prompt
	}{
		"temperature below 0": {newFake(4, 10), sample.Options{Temperature: -1}, ok},
		"temperature NaN":     {newFake(4, 10), sample.Options{Temperature: math.NaN()}, ok},
		"top-p above 1":       {newFake(4, 10), sample.Options{TopP: 1.5}, ok},
		"top-k below 0":       {newFake(4, 10), sample.Options{TopK: -1}, ok},
		"stop outside":        {newFake(4, 10), sample.Options{Stop: []int32{4}}, ok},
		"empty prompt":        {newFake(4, 10), sample.Options{}, sample.Prompt{Streams: []uint64{0}}},
		"no stream":           {newFake(4, 10), sample.Options{}, sample.Prompt{IDs: []int32{1}}},
		"unknown token":       {newFake(4, 10), sample.Options{}, sample.Prompt{IDs: []int32{-1}, Streams: []uint64{0}}},
		"prompt too long":     {newFake(4, 10), sample.Options{}, sample.Prompt{IDs: make([]int32, 10), Streams: []uint64{0}}},
		"logits NaN":          {nan, sample.Options{}, ok},
		"logits infinite":     {inf, sample.Options{}, ok},
	} {
		if _, _, err := sample.Generate(context.Background(), c.f, c.o, c.p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestInterruptGivesWhatThereIs(t *testing.T) {
	f := newFake(17, 100)
	ctx, cancel := context.WithCancel(context.Background())
	o := sample.Options{Batch: 2, Hook: func(s *sample.State) sample.Action {
		if len(s.Sequence.Tokens) == 3 {
			cancel()
		}
		return sample.Action{}
	}}
	seqs, _, err := sample.Generate(ctx, f, o, sample.Prompt{IDs: []int32{1, 2}, Streams: []uint64{0, 1, 2}}, sample.Prompt{IDs: []int32{1, 2}, Streams: []uint64{0}})
	if err == nil || len(f.texts) != 0 {
		t.Fatalf("error %v, %d sequences open", err, len(f.texts))
	}
	for i, n := range []int{3, 3, 0, 0} {
		if s := seqs[i]; s.End != sample.Interrupted || len(s.Tokens) != n {
			t.Errorf("sequence %d: %q after %d tokens, want interrupted after %d", i, s.End, len(s.Tokens), n)
		}
	}
}
