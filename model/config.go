// Package model is the transformer: its blocks with explicit forward and backward passes, the stack that runs them, and the
// families that configure them.
//
// Letters: B batch, S sequence, H hidden width, A query heads, G key/value heads, R = A/G, D head size, F MLP width, V
// vocabulary, L layers, P ranks. Read attention.go first: it has the form of every block; then stack.go. rows.go is the list of
// all parameters.
package model

import (
	"fmt"
	"math"

	"heddle/compute"
	"heddle/model/hf"
)

// Config is the shape of a transformer. Blocks are pre-norm: attention over grouped heads, then an MLP. The family says what
// they are made of (methods below); no family is Qwen3.
//
//	qwen3   RMSNorm, also of q and k; rotary positions; SwiGLU                   (Qwen3 technical report, 2025)
//	llama   RMSNorm; rotary positions, which Llama 3.1 stretches; SwiGLU         (Touvron et al. 2023)
//	qwen2   llama with biases on q, k and v                                      (Qwen2 technical report, 2024)
//	gpt2    LayerNorm; a learned embedding of positions; GELU; biases throughout (Radford et al. 2019)
type Config struct {
	Family    hf.Family `yaml:"family" json:"family"`
	Layers    int       `yaml:"layers" json:"layers"`       // L
	Hidden    int       `yaml:"hidden" json:"hidden"`       // H
	Heads     int       `yaml:"heads" json:"heads"`         // A
	KV        int       `yaml:"kv_heads" json:"kv_heads"`   // G
	Head      int       `yaml:"head_dim" json:"head_dim"`   // D
	MLP       int       `yaml:"mlp" json:"mlp"`             // F
	Vocab     int       `yaml:"vocab" json:"vocab"`         // V
	Positions int       `yaml:"positions" json:"positions"` // longest sequence it is made for; 0: not said. A hard limit where positions are learned
	Theta     float64   `yaml:"rope_theta" json:"rope_theta"`
	Llama3    Llama3    `yaml:"rope_llama3" json:"rope_llama3"`
	Eps       float64   `yaml:"norm_eps" json:"norm_eps"`
	Tied      bool      `yaml:"tied" json:"tied"` // the head is the embedding
	Std       float64   `yaml:"init_std" json:"init_std"`

	AttentionBias bool `yaml:"attention_bias" json:"attention_bias"` // llama, qwen3: biases on q, k, v and o as well
	MLPBias       bool `yaml:"mlp_bias" json:"mlp_bias"`             // llama: biases on gate, up and down as well
}

// Llama3 stretches slow rotary frequencies (compute.Llama3); factor 0 does not.
type Llama3 struct {
	Factor    float64 `yaml:"factor" json:"factor"`
	Low       float64 `yaml:"low" json:"low"`
	High      float64 `yaml:"high" json:"high"`
	Positions int     `yaml:"positions" json:"positions"` // that the model was trained for before
}

// LayerNorm tells whether norms take the mean off and have a bias.
func (c Config) LayerNorm() bool { return c.Family == hf.GPT2 }

// Learned tells whether positions are an embedding, not rotations.
func (c Config) Learned() bool { return c.Family == hf.GPT2 }

// Gated tells whether the MLP is SwiGLU, not GELU.
func (c Config) Gated() bool { return c.Family != hf.GPT2 }

// QKNorm tells whether heads of q and k are normed.
func (c Config) QKNorm() bool { return c.Family == hf.Qwen3 || c.Family == "" }

// QKVBiased, OBiased and MLPBiased tell which projections have biases.
func (c Config) QKVBiased() bool {
	return c.AttentionBias || c.Family == hf.Qwen2 || c.Family == hf.GPT2
}
func (c Config) OBiased() bool   { return c.AttentionBias || c.Family == hf.GPT2 }
func (c Config) MLPBiased() bool { return c.MLPBias || c.Family == hf.GPT2 }

// rope is how heads turn with their positions.
func (c Config) rope() compute.Rope {
	l := c.Llama3
	return compute.Rope{Theta: c.Theta, Llama3: compute.Llama3{Factor: l.Factor, Low: l.Low, High: l.High, Original: float64(l.Positions)}}
}

// Check refuses shapes that are no model.
func (c Config) Check() error {
	const wide, tiny = 1 << 24, 0x1p-126 // tiny: float32's smallest normal number
	for _, x := range []struct {
		name    string
		n, most int
	}{{"layers", c.Layers, 1 << 12}, {"hidden", c.Hidden, wide}, {"heads", c.Heads, wide}, {"kv_heads", c.KV, wide}, {"head_dim", c.Head, wide}, {"mlp", c.MLP, wide}, {"vocab", c.Vocab, wide}} {
		if x.n < 1 || x.n > x.most {
			return fmt.Errorf("model: %s is %d, want 1 to %d", x.name, x.n, x.most)
		}
	}
	if err := c.checkFamily(); err != nil {
		return err
	}
	switch {
	case c.Heads%c.KV != 0:
		return fmt.Errorf("model: %d attention heads are not divisible by %d key/value heads; hint: use %d", c.Heads, c.KV, c.Heads/c.KV*c.KV+c.KV)
	case c.Head%2 != 0 && !c.Learned():
		return fmt.Errorf("model: head_dim is %d, rotary positions need an even one", c.Head)
	case c.Heads*c.Head > wide:
		return fmt.Errorf("model: %d attention heads of head_dim %d are %d wide, want at most %d", c.Heads, c.Head, c.Heads*c.Head, wide)
	case !(c.Eps >= tiny) || !(c.Eps <= 1):
		return fmt.Errorf("model: norm_eps is %g, want %g to 1; hint: 1e-6", c.Eps, tiny)
	case !c.Learned() && (!(c.Theta >= 1) || math.IsInf(c.Theta, 0)):
		return fmt.Errorf("model: rope_theta is %g, want 1 or more; hint: 10000", c.Theta)
	case !(c.Std >= 0 && c.Std <= 10):
		return fmt.Errorf("model: init_std is %g, want 0 to 10; hint: 0.02", c.Std)
	}
	return nil
}

// checkFamily refuses what the family cannot say, so that what is trained can be written as transformers' config.json.
func (c Config) checkFamily() error {
	l := c.Llama3
	switch f := c.Family; {
	case f != "" && f != hf.Qwen3 && f != hf.Llama && f != hf.Qwen2 && f != hf.GPT2:
		return fmt.Errorf("model: family is %q, want %s, %s, %s or %s", f, hf.Qwen3, hf.Llama, hf.Qwen2, hf.GPT2)
	case c.AttentionBias && (f == hf.Qwen2 || f == hf.GPT2):
		return fmt.Errorf("model: attention_bias has no effect on %s, which has its own biases", f)
	case c.MLPBias && f != hf.Llama:
		return fmt.Errorf("model: mlp_bias is llama's, the family is %s", f)
	case f == hf.GPT2 && (c.KV != c.Heads || c.Heads*c.Head != c.Hidden):
		return fmt.Errorf("model: gpt2 has as many kv_heads as heads, and heads × head_dim = hidden; got %d, %d, %d, %d", c.KV, c.Heads, c.Head, c.Hidden)
	case f == hf.GPT2 && c.Positions < 1:
		return fmt.Errorf("model: positions is %d; gpt2 learns an embedding of each; hint: model.positions=1024", c.Positions)
	case c.Positions < 0 || c.Positions > 1<<32:
		return fmt.Errorf("model: positions is %d, want 0 to %d", c.Positions, 1<<32)
	case l != (Llama3{}) && !(l.Factor >= 1 && l.Low > 0 && l.High > l.Low && l.Positions > 0) || math.IsInf(l.Factor+l.High, 0):
		return fmt.Errorf("model: rope_llama3 is %+v, want factor of 1 or more, 0 < low < high, positions of 1 or more", l)
	case l != (Llama3{}) && c.Learned():
		return fmt.Errorf("model: rope_llama3 has no effect on gpt2, which learns its positions")
	}
	return nil
}

// Fits refuses sequences of more tokens than there are learned positions.
func (c Config) Fits(seq int) error {
	if c.Learned() && seq > c.Positions {
		return fmt.Errorf("model: a sequence of %d tokens, the model has learned %d positions; hint: seq=%d", seq, c.Positions, c.Positions)
	}
	return nil
}

// Rep is R, the query heads of one key/value head.
func (c Config) Rep() int { return c.Heads / c.KV }
