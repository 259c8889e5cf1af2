package rl

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/model"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/token"
	"heddle/train"
)

// folder is a model with a tokenizer of single bytes, as other programs would leave it.
func folder(t *testing.T) string {
	t.Helper()
	tok, err := token.Train(slices.Values([][]byte{[]byte("a")}), token.TrainOptions{VocabSize: token.LeastVocab})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m := model.Config{Layers: 1, Hidden: 16, Heads: 2, KV: 1, Head: 8, MLP: 24, Vocab: tok.VocabSize(), Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.2}
	l := newLearner(t, m, parallel.Layout{}, tensor.F32)
	w, err := l.Weights()
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tok.Separator()
	c := m.ToHF(256)
	c.EOS = []int{int(end)}
	if err := pretrained.Write(dir, c, safetensors.F32, pretrained.MaxShard, (&train.Whole{Values: w}).Of); err != nil {
		t.Fatal(err)
	}
	if err := tok.Write(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Somebody's model is reinforced on sums in words: it starts from the folder's weights, ratios are 1, there is nothing to supervise and no number for it.
func TestReinforcingAModelFromAFolder(t *testing.T) {
	c, err := Preset("arithmetic", "text")
	if err != nil {
		t.Fatal(err)
	}
	c.Init, c.Seeds, c.Task.Digits = folder(t), 2, 1
	c.Reinforce.Steps, c.Reinforce.Prompts, c.Reinforce.Group, c.Reinforce.EvalEach = 2, 3, 2, 0
	c.Reinforce.Loss.DropEqual, c.Reinforce.Loss.ImportanceCap = false, 2 // a random model's groups are all wrong
	c.Eval = Eval{Prompts: 4, Samples: 1}
	tokens := 0
	res, err := Experiment(context.Background(), c, func(e Event) {
		if r := e.Reinforce; r != nil {
			tokens += r.Metrics.Tokens
			if r.Metrics.RatioMost != 1 || r.Counts.Groups != 3 || r.TooLong != 0 {
				t.Errorf("%+v, %+v", r.Metrics, r.Counts)
			}
		}
	})
	if err != nil || res.More != nil || len(res.Each) != 2 || res.Each[0].Sampled == 0 || tokens == 0 {
		t.Fatalf("%v: %+v, %d tokens learned from", err, res, tokens)
	}
	b, err := OpenBase(c.Init)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := b.Codec.Prompt("What is 1 + 2?")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := b.Codec.Decode(append(ids, b.Codec.End(), ids[0])); err != nil || text != "What is 1 + 2?" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestModelsThatCannotBeReinforcedAreRefused(t *testing.T) {
	c, _ := Preset("arithmetic", "text")
	if _, err := Experiment(context.Background(), c, func(Event) {}); err == nil || !strings.Contains(err.Error(), "init=") {
		t.Errorf("without a model: %v", err)
	}
	c.Init = t.TempDir()
	if _, err := Experiment(context.Background(), c, func(Event) {}); err == nil {
		t.Error("an empty folder is a model")
	}
	dir := folder(t)
	config := filepath.Join(dir, "config.json")
	text, _ := os.ReadFile(config)
	os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "eos_token_id", "eos_token_id_not")), 0o644)
	if _, err := OpenBase(dir); err == nil || !strings.Contains(err.Error(), "no token that ends") {
		t.Errorf("without an end: %v", err)
	}
}
