package model

import (
	"fmt"

	"heddle/model/hf"
)

// FromHF is the configuration of a Hugging Face folder.
func FromHF(c hf.Config) (Config, error) {
	if c.Experts.Count > 0 {
		return Config{}, fmt.Errorf("model: family %s is not built yet, want %s, %s, %s or %s", c.Family, hf.Qwen3, hf.Llama, hf.Qwen2, hf.GPT2)
	}
	m := Config{Family: c.Family, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KV: c.KVHeads, Head: c.HeadDim, MLP: c.MLP, Vocab: c.Vocab,
		Positions: c.Positions, Theta: c.Rope.Theta, Eps: c.Eps, Tied: c.Tied, Std: c.InitStd}
	if l := c.Rope.Llama3; l != nil {
		m.Llama3 = Llama3{Factor: l.Factor, Low: l.Low, High: l.High, Positions: l.OriginalPositions}
	}
	if c.Family == hf.Llama || c.Family == hf.Qwen3 {
		m.AttentionBias, m.MLPBias = c.QKVBias, c.MLPBias
	}
	return m, m.Check()
}

// ToHF is what config.json says about the model. seq is the longest sequence it was trained on.
func (c Config) ToHF(seq int) hf.Config {
	f := hf.Config{Family: c.Family, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KV, HeadDim: c.Head, MLP: c.MLP, Vocab: c.Vocab,
		Positions: max(c.Positions, seq), LayerNorm: c.LayerNorm(), Eps: c.Eps, Activation: hf.SiLU, LearnedPositions: c.Learned(),
		QKNorm: c.QKNorm(), QKVBias: c.QKVBiased(), OBias: c.OBiased(), MLPBias: c.MLPBiased(), Tied: c.Tied, InitStd: c.Std, DType: "float32", BOS: -1}
	if f.Family == "" {
		f.Family = hf.Qwen3
	}
	if !c.Gated() {
		f.Activation = hf.GELUTanh
	}
	if !c.Learned() {
		f.Rope.Theta = c.Theta
	}
	if l := c.Llama3; l != (Llama3{}) {
		f.Rope.Llama3 = &hf.Llama3{Factor: l.Factor, Low: l.Low, High: l.High, OriginalPositions: l.Positions}
	}
	return f
}
