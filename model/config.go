// Package model is the transformer: its blocks with explicit forward and backward passes, the stack that runs them, and the
// families that configure them.
//
// Letters: B batch, S sequence, H hidden width, A query heads, G key/value heads, R = A/G, D head size, F MLP width, V
// vocabulary, L layers, P ranks. Read attention.go first: it has the form of every block; then stack.go.
package model

import (
	"fmt"
	"math"

	"heddle/parallel"
	"heddle/param"
)

// Config is the shape of a Qwen3-shaped transformer (Qwen3 technical report, 2025): RMSNorm before each sub-block,
// grouped-query attention with norms on q and k and rotary positions, SwiGLU.
type Config struct {
	Layers int     `yaml:"layers" json:"layers"`     // L
	Hidden int     `yaml:"hidden" json:"hidden"`     // H
	Heads  int     `yaml:"heads" json:"heads"`       // A
	KV     int     `yaml:"kv_heads" json:"kv_heads"` // G
	Head   int     `yaml:"head_dim" json:"head_dim"` // D
	MLP    int     `yaml:"mlp" json:"mlp"`           // F
	Vocab  int     `yaml:"vocab" json:"vocab"`       // V
	Theta  float64 `yaml:"rope_theta" json:"rope_theta"`
	Eps    float64 `yaml:"norm_eps" json:"norm_eps"`
	Tied   bool    `yaml:"tied" json:"tied"` // the head is the embedding
	Std    float64 `yaml:"init_std" json:"init_std"`
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
	switch {
	case c.Heads%c.KV != 0:
		return fmt.Errorf("model: %d attention heads are not divisible by %d key/value heads; hint: use %d", c.Heads, c.KV, c.Heads/c.KV*c.KV+c.KV)
	case c.Head%2 != 0:
		return fmt.Errorf("model: head_dim is %d, rotary positions need an even one", c.Head)
	case c.Heads*c.Head > wide:
		return fmt.Errorf("model: %d attention heads of head_dim %d are %d wide, want at most %d", c.Heads, c.Head, c.Heads*c.Head, wide)
	case !(c.Eps >= tiny) || !(c.Eps <= 1):
		return fmt.Errorf("model: norm_eps is %g, want %g to 1; hint: 1e-6", c.Eps, tiny)
	case !(c.Theta > 0) || math.IsInf(c.Theta, 0):
		return fmt.Errorf("model: rope_theta is %g, want a positive number; hint: 10000", c.Theta)
	case !(c.Std >= 0 && c.Std <= 10):
		return fmt.Errorf("model: init_std is %g, want 0 to 10; hint: 0.02", c.Std)
	}
	return nil
}

// Rep is R, the query heads of one key/value head.
func (c Config) Rep() int { return c.Heads / c.KV }

// The rows of a layer's unit, in order.
const (
	rowNorm1 = iota
	rowQ
	rowK
	rowV
	rowQNorm
	rowKNorm
	rowO
	rowNorm2
	rowGate
	rowUp
	rowDown
)

// The rows of the root unit; the head is absent where it is tied.
const (
	rowEmbed = iota
	rowFinal
	rowHead
)

// Table is the parameter table of the model under a scheme, names as in transformers' Qwen3ForCausalLM.
func (c Config) Table(s *parallel.Scheme) param.Table {
	h, g, r, d, f, v := c.Hidden, c.KV, c.Rep(), c.Head, c.MLP, s.VocabPad(c.Vocab)
	var t param.Table
	add := func(unit int, name, hf, letters string, role parallel.Role, std float64, dims ...int) {
		row := param.Row{Name: name, HF: hf, Letters: letters, Dims: dims, Valid: dims[0], Use: s.Use(role), Unit: unit, Std: std, Decay: len(dims) > 1, Train: true}
		if role == parallel.Vocab {
			row.Valid = c.Vocab
		}
		t = append(t, row)
	}
	add(0, "embed", "model.embed_tokens.weight", "vh", parallel.Vocab, c.Std, v, h)
	add(0, "norm", "model.norm.weight", "h", parallel.Vector, 0, h)
	if !c.Tied {
		add(0, "head", "lm_head.weight", "vh", parallel.Vocab, c.Std, v, h)
	}
	for l := range c.Layers {
		n, hf, u := fmt.Sprintf("layers.%d.", l), fmt.Sprintf("model.layers.%d.", l), l+1
		add(u, n+"attention.norm", hf+"input_layernorm.weight", "h", parallel.Vector, 0, h)
		add(u, n+"attention.q", hf+"self_attn.q_proj.weight", "grdh", parallel.Query, c.Std, g, r, d, h)
		add(u, n+"attention.k", hf+"self_attn.k_proj.weight", "gdh", parallel.KeyValue, c.Std, g, d, h)
		add(u, n+"attention.v", hf+"self_attn.v_proj.weight", "gdh", parallel.KeyValue, c.Std, g, d, h)
		add(u, n+"attention.q_norm", hf+"self_attn.q_norm.weight", "d", parallel.HeadNorm, 0, d)
		add(u, n+"attention.k_norm", hf+"self_attn.k_norm.weight", "d", parallel.HeadNorm, 0, d)
		add(u, n+"attention.o", hf+"self_attn.o_proj.weight", "hgrd", parallel.Query, c.Std, h, g, r, d)
		add(u, n+"mlp.norm", hf+"post_attention_layernorm.weight", "h", parallel.Vector, 0, h)
		add(u, n+"mlp.gate", hf+"mlp.gate_proj.weight", "fh", parallel.MLP, c.Std, f, h)
		add(u, n+"mlp.up", hf+"mlp.up_proj.weight", "fh", parallel.MLP, c.Std, f, h)
		add(u, n+"mlp.down", hf+"mlp.down_proj.weight", "hf", parallel.MLP, c.Std, h, f)
	}
	return t
}

// HFDims is the shape under which a row stands in transformers' files: heads and head size are one dim there.
func HFDims(r *param.Row) []int {
	switch r.Letters {
	case "grdh":
		return []int{r.Dims[0] * r.Dims[1] * r.Dims[2], r.Dims[3]}
	case "gdh":
		return []int{r.Dims[0] * r.Dims[1], r.Dims[2]}
	case "hgrd":
		return []int{r.Dims[0], r.Dims[1] * r.Dims[2] * r.Dims[3]}
	case "vh":
		return []int{r.Valid, r.Dims[1]}
	}
	return r.Dims
}
