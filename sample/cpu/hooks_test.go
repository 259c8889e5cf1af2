package cpu_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"heddle/compute/cpu/blas"
	"heddle/sample"
	"heddle/sample/cpu"
)

// meddler is a hook that forks, injects, heats and stops at random, from a seed of its own.
type meddler struct {
	r     *rand.Rand
	forks int // still allowed
}

func (m *meddler) act(s *sample.State) (a sample.Action) {
	n := len(s.Sequence.Tokens)
	ids := func() (out []int32) {
		for range m.r.IntN(4) {
			out = append(out, m.r.Int32N(101))
		}
		return out
	}
	for m.r.IntN(10) == 0 && m.forks > 0 {
		m.forks--
		f := sample.Fork{Keep: m.r.IntN(n + 1), Stream: m.r.Uint64(), Inject: ids()}
		if m.r.IntN(2) == 0 {
			warm := 0.5 + m.r.Float64()
			f.Temperature = &warm
		}
		a.Fork = append(a.Fork, f)
	}
	switch m.r.IntN(80) {
	case 0:
		a.Stop = true
	case 1:
		a.Discard = true
	case 2, 3:
		a.Inject = ids()
	case 4:
		cold := 0.0
		a.Temperature = &cold
	}
	return a
}

// Whatever hooks do, a sequence is what it says: computed anew, one row after the other and without a cache shared with anybody,
// its tokens have the same probabilities, to the bit. And nothing stays in the cache: a second run needs no more memory.
func TestMeddledSequencesAreWhatTheySay(t *testing.T) {
	c := qwen3(2)
	d, judge := decoder(t, c, blas.BestSet(), 2), decoder(t, c, blas.BestSet(), 1)
	for _, seed := range []uint64{1, 2, 3} {
		m := &meddler{rand.New(rand.NewPCG(seed, 5)), 30}
		o := sample.Options{MaxTokens: 90, Temperature: 1, Seed: seed, Batch: 5, Hook: m.act}
		prompts := []sample.Prompt{{IDs: text(40, 1), Streams: []uint64{1, 2, 3}}, {IDs: text(1, 2), Streams: []uint64{4, 5}}, {IDs: text(64, 3), Streams: []uint64{6}}}
		seqs, bill, err := sample.Generate(context.Background(), d, o, prompts...)
		if err != nil {
			t.Fatal(err)
		}
		drawn := 0
		for i, s := range seqs {
			drawn += recompute(t, judge, i, prompts[s.Prompt].IDs, s)
		}
		if len(seqs) < 20 || drawn != bill.Sampled || bill.Discarded == 0 || bill.Injected == 0 {
			t.Errorf("seed %d: %d sequences, %d tokens drawn, bill %+v", seed, len(seqs), drawn, bill)
		}
	}
	first := d.CacheBytes()
	for range 3 {
		m := &meddler{rand.New(rand.NewPCG(1, 5)), 30}
		o := sample.Options{MaxTokens: 90, Temperature: 1, Seed: 1, Batch: 5, Hook: m.act}
		if _, _, err := sample.Generate(context.Background(), d, o, sample.Prompt{IDs: text(40, 1), Streams: []uint64{1, 2, 3}}); err != nil {
			t.Fatal(err)
		}
	}
	if d.CacheBytes() != first {
		t.Errorf("the cache grows from %d to %d bytes when generation is repeated", first, d.CacheBytes())
	}
}

// recompute holds a sequence to a fresh pass over its text and returns how many tokens it drew itself.
func recompute(t *testing.T, judge *cpu.Decoder, index int, prompt []int32, s *sample.Sequence) (drawn int) {
	t.Helper()
	logits := make([]float32, judge.Vocab())
	h := judge.Fork(sample.None, 0)
	defer judge.Close(h)
	feed := func(ids ...int32) {
		if err := judge.Forward([]sample.Feed{{Seq: h, Tokens: ids, Logits: logits}}); err != nil {
			t.Fatal(err)
		}
	}
	feed(prompt...)
	for at, tok := range s.Tokens {
		if at >= s.Shared && !tok.Injected {
			drawn++
		}
		if want := sample.LogProb(logits, tok.ID); !tok.Injected && tok.LogProb != want {
			t.Fatalf("sequence %d, token %d: log-probability %.17g, computed anew %.17g", index, at, tok.LogProb, want)
		}
		feed(tok.ID)
	}
	return drawn
}
