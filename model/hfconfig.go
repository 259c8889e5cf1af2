package model

import (
	"fmt"

	"heddle/model/hf"
)

// FromHF is the configuration of a Hugging Face folder.
func FromHF(c hf.Config) (Config, error) {
	if c.Family != hf.Qwen3 {
		return Config{}, fmt.Errorf("model: family %s is not built yet, want %s", c.Family, hf.Qwen3)
	}
	return Config{Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KV: c.KVHeads, Head: c.HeadDim, MLP: c.MLP, Vocab: c.Vocab,
		Theta: c.Rope.Theta, Eps: c.Eps, Tied: c.Tied, Std: c.InitStd}, nil
}

// ToHF is what config.json says about the model. positions is the longest sequence it was trained on.
func (c Config) ToHF(positions int) hf.Config {
	return hf.Config{Family: hf.Qwen3, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KV, HeadDim: c.Head, MLP: c.MLP, Vocab: c.Vocab,
		Positions: positions, Eps: c.Eps, Activation: hf.SiLU, Rope: hf.Rope{Theta: c.Theta}, QKNorm: true, Tied: c.Tied, InitStd: c.Std, DType: "float32", BOS: -1}
}
