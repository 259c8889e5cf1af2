package sample_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"heddle/sample"
)

// once acts when sequence index has n tokens.
func once(index, n int, a sample.Action) sample.Hook {
	return func(s *sample.State) sample.Action {
		if s.Index == index && len(s.Sequence.Tokens) == n {
			return a
		}
		return sample.Action{}
	}
}

// A fork with its parent's stream repeats the parent from any cut; with another stream it is the text that this stream gives to
// the longer prompt.
func TestForkContinuesFromTheCut(t *testing.T) {
	prompt := []int32{1, 2, 3}
	base := sample.Options{MaxTokens: 10, Temperature: 1, Seed: 4}
	want, _ := generate(t, newFake(17, 100), base, sample.Prompt{IDs: prompt, Streams: []uint64{8}})
	for keep := range 7 {
		o := base
		o.Hook = once(0, 6, sample.Action{Fork: []sample.Fork{{Keep: keep, Stream: 8}, {Keep: keep, Stream: 9}}})
		got, bill := generate(t, newFake(17, 100), o, sample.Prompt{IDs: prompt, Streams: []uint64{8}})
		if len(got) != 3 || got[1].Parent != 0 || got[1].Shared != keep {
			t.Fatalf("keep %d: sequences %+v", keep, got)
		}
		for i := range 2 {
			if !reflect.DeepEqual(got[i].Tokens, want[0].Tokens) {
				t.Errorf("keep %d: sequence %d differs from the one without forks", keep, i)
			}
		}
		longer := sample.Prompt{IDs: append(slices.Clone(prompt), want[0].IDs()[:keep]...), Streams: []uint64{9}}
		o = base
		o.MaxTokens -= keep
		other, _ := generate(t, newFake(17, 100), o, longer)
		if !reflect.DeepEqual(got[2].Tokens[keep:], other[0].Tokens) {
			t.Errorf("keep %d: the fork is not what its stream gives to the longer prompt", keep)
		}
		if bill.Sampled != 10+2*(10-keep) || bill.Discarded != 0 {
			t.Errorf("keep %d: bill %+v", keep, bill)
		}
	}
}

// Discarded tokens are counted once, and those that a kept fork shares are kept.
func TestBillOfARewind(t *testing.T) {
	o := sample.Options{MaxTokens: 10, Temperature: 1}
	o.Hook = func(s *sample.State) sample.Action {
		switch n := len(s.Sequence.Tokens); {
		case s.Index == 0 && n == 6: // back to 4, and again from there
			return sample.Action{Fork: []sample.Fork{{Keep: 4, Stream: 1}}, Discard: true}
		case s.Index == 1 && n == 7: // back to 2
			return sample.Action{Fork: []sample.Fork{{Keep: 2, Stream: 2}}, Discard: true}
		}
		return sample.Action{}
	}
	seqs, bill := generate(t, newFake(17, 100), o, sample.Prompt{IDs: []int32{1}, Streams: []uint64{0}})
	// 6 + (7−4) + (10−2) drawn; kept are the last sequence's 10, the first 2 of them drawn by the first.
	if bill.Sampled != 17 || bill.Kept != 10 || bill.Discarded != 7 {
		t.Errorf("bill %+v", bill)
	}
	if !seqs[0].Discarded || seqs[0].End != sample.ByHook || seqs[2].Discarded || seqs[2].End != sample.ByLength {
		t.Errorf("ends %q %v, %q %v", seqs[0].End, seqs[0].Discarded, seqs[2].End, seqs[2].Discarded)
	}
}

// Tokens put in are part of the text as if the prompt had held them, in the sequence and in forks.
func TestInjectedTokensAreRead(t *testing.T) {
	base := sample.Options{MaxTokens: 9, Temperature: 1, Seed: 4}
	put := []int32{11, 12}
	o := base
	o.Hook = once(0, 3, sample.Action{Inject: put, Fork: []sample.Fork{{Keep: 2, Stream: 6, Inject: put[:1]}}})
	got, bill := generate(t, newFake(17, 100), o, sample.Prompt{IDs: []int32{1, 2}, Streams: []uint64{5}})
	for i, c := range []struct {
		cut    int
		put    []int32
		stream uint64
	}{{3, put, 5}, {2, put[:1], 6}} {
		ids := got[i].IDs()
		if !slices.Equal(ids[c.cut:c.cut+len(c.put)], c.put) || !got[i].Tokens[c.cut].Injected || got[i].Tokens[c.cut].LogProb != 0 {
			t.Fatalf("sequence %d: tokens %v", i, got[i].Tokens)
		}
		o := base
		o.MaxTokens -= c.cut + len(c.put)
		rest, _ := generate(t, newFake(17, 100), o, sample.Prompt{IDs: append([]int32{1, 2}, ids[:c.cut+len(c.put)]...), Streams: []uint64{c.stream}})
		if !reflect.DeepEqual(got[i].Tokens[c.cut+len(c.put):], rest[0].Tokens) {
			t.Errorf("sequence %d goes on as if nothing had been put in", i)
		}
	}
	if bill.Injected != 3 || bill.Sampled != 7+6 || bill.Discarded != 0 {
		t.Errorf("bill %+v", bill)
	}
}

// What does not fit is cut off, and the sequence ends.
func TestInjectionEndsAtTheLimit(t *testing.T) {
	o := sample.Options{MaxTokens: 4, Hook: once(0, 2, sample.Action{Inject: []int32{1, 2, 3}, Fork: []sample.Fork{{Keep: 1, Inject: []int32{1, 2, 3}}}})}
	seqs, _ := generate(t, newFake(17, 100), o, sample.Prompt{IDs: []int32{1}, Streams: []uint64{0}})
	for i, s := range seqs {
		if len(s.Tokens) != 4 || s.End != sample.ByLength {
			t.Errorf("sequence %d has %d tokens, ended by %q", i, len(s.Tokens), s.End)
		}
	}
}

func TestHookSetsTemperatureAndStops(t *testing.T) {
	cold := 0.0
	o := sample.Options{MaxTokens: 12, Temperature: 3, Seed: 1}
	o.Hook = func(s *sample.State) sample.Action {
		switch len(s.Sequence.Tokens) {
		case 5:
			return sample.Action{Temperature: &cold}
		case 9:
			return sample.Action{Stop: true}
		}
		return sample.Action{}
	}
	f := newFake(17, 100)
	seqs, _ := generate(t, f, o, sample.Prompt{IDs: []int32{1, 2}, Streams: []uint64{0}})
	s, ids := seqs[0], []int32{1, 2}
	if len(s.Tokens) != 9 || s.End != sample.ByHook || s.Discarded {
		t.Fatalf("%d tokens, ended by %q", len(s.Tokens), s.End)
	}
	for i, tok := range s.Tokens {
		likeliest := byLogProb(logSoftmax(f.row(ids), 1))[0]
		if i >= 5 && (tok.ID != likeliest || tok.Drawn != 0) {
			t.Errorf("token %d at temperature 0 is %d (drawn %g), want %d", i, tok.ID, tok.Drawn, likeliest)
		}
		ids = append(ids, tok.ID)
	}
}

func TestHookRefusals(t *testing.T) {
	minus := -1.0
	for name, a := range map[string]sample.Action{
		"fork beyond the end":     {Fork: []sample.Fork{{Keep: 3}}},
		"fork below 0":            {Fork: []sample.Fork{{Keep: -1}}},
		"fork temperature":        {Fork: []sample.Fork{{Temperature: &minus}}},
		"unknown token":           {Inject: []int32{17}},
		"unknown token in a fork": {Fork: []sample.Fork{{Inject: []int32{-1}}}},
		"temperature":             {Temperature: &minus},
	} {
		if _, _, err := sample.Generate(context.Background(), newFake(17, 100), sample.Options{MaxTokens: 5, Hook: once(0, 2, a)}, sample.Prompt{IDs: []int32{1}, Streams: []uint64{0}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The hook sees the logits the token came from.
func TestHookSeesLogits(t *testing.T) {
	f := newFake(17, 100)
	calls := 0
	o := sample.Options{MaxTokens: 4, Temperature: 1, Hook: func(s *sample.State) sample.Action {
		calls++
		ids := append([]int32{1, 2}, s.Sequence.IDs()...)
		if !slices.Equal(s.Logits, f.row(ids[:len(ids)-1])) {
			t.Errorf("call %d: other logits", calls)
		}
		return sample.Action{}
	}}
	if generate(t, f, o, sample.Prompt{IDs: []int32{1, 2}, Streams: []uint64{0}}); calls != 4 {
		t.Errorf("%d calls, want 4", calls)
	}
}
