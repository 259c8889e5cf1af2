package model

import (
	"math"
	"testing"

	"heddle/model/hf"
	"heddle/parallel"
)

// The table has the parameters that package hf lists for the same configuration, by name and number of elements, in the same order within a layer.
func TestTableIsHuggingFacesList(t *testing.T) {
	base := Config{Layers: 2, Hidden: 24, Heads: 6, KV: 3, Head: 4, MLP: 20, Vocab: 31, Theta: 1e4, Eps: 1e-6, Std: 0.02}
	gpt2 := base
	gpt2.Family, gpt2.KV, gpt2.Positions, gpt2.Tied = hf.GPT2, 6, 9, true
	llama := base
	llama.Family, llama.AttentionBias, llama.MLPBias = hf.Llama, true, true
	qwen2 := base
	qwen2.Family, qwen2.Tied = hf.Qwen2, true
	s, err := parallel.New(parallel.Layout{}, parallel.Heads{G: 3, R: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{base, gpt2, llama, qwen2} {
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		want, layer := map[string]int{}, []string{}
		for _, p := range c.ToHF(8).Params() {
			want[p.Ours()] = 1
			for _, d := range p.Shape {
				want[p.Ours()] *= d
			}
			if p.Layer == 1 {
				layer = append(layer, p.Ours())
			}
		}
		table := c.Table(s)
		for i, r := range table {
			if want[r.Name] != r.Elems() {
				t.Errorf("%s: %s has %d elements, want %d", c.Family, r.Name, r.Elems(), want[r.Name])
			}
			delete(want, r.Name)
			if k := i - (len(table) - len(layer)); k >= 0 && layer[k] != r.Name {
				t.Errorf("%s: %s stands where %s does in package hf", c.Family, r.Name, layer[k])
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: the table lacks %v", c.Family, want)
		}
		m, err := FromHF(c.ToHF(8))
		if c.Family == "" {
			m.Family = ""
		}
		if m.Positions = c.Positions; err != nil || m != c && !(c.Family == hf.GPT2 && m.Theta == 0) {
			t.Errorf("through config.json %+v becomes %+v, %v", c, m, err)
		}
	}
}

// Only gains start at 1, only matrices are random and decay, and gpt2's additions to the stream are smaller by √(2L).
func TestParametersStartByTheirKind(t *testing.T) {
	c := Config{Family: hf.GPT2, Layers: 8, Hidden: 8, Heads: 2, KV: 2, Head: 4, MLP: 8, Vocab: 5, Positions: 4, Eps: 1e-5, Std: 0.02}
	s, err := parallel.New(parallel.Layout{}, parallel.Heads{G: 2, R: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Table(s) {
		start, std := 0.0, 0.0
		switch r.Name {
		case "norm", "layers.3.attention.norm", "layers.3.mlp.norm":
			start = 1
		case "embed", "position", "head", "layers.3.attention.q", "layers.3.attention.k", "layers.3.attention.v", "layers.3.mlp.up":
			std = 0.02
		case "layers.3.attention.o", "layers.3.mlp.down":
			std = 0.02 / 4
		default:
			if r.Unit != 4 || len(r.Name) < 5 || r.Name[len(r.Name)-5:] != "_bias" {
				continue
			}
		}
		if r.Start != start || math.Abs(r.Std-std) > 1e-18 || r.Decay != (std > 0) {
			t.Errorf("%s starts at %g ± %g, decays %v; want %g ± %g", r.Name, r.Start, r.Std, r.Decay, start, std)
		}
	}
}
