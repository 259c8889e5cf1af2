// Package hf knows the folders of Hugging Face transformers: it reads and writes config.json and says which tensors a model has, under
// transformers' names and under ours.
//
// It knows the families qwen3, qwen3_moe, qwen2, llama and gpt2, and refuses what they may ask for that heddle does not compute: sliding windows, other
// activations or RoPE types, quantised weights, partly dense mixtures. A field it does not know is listed in Config.Ignored for the user to see; dropout
// rates are training options, not part of the model, and are not read.
//
// Start with Config, then Parse, Config.Params and Match.
package hf

import (
	"fmt"
	"os"
	"path/filepath"
)

// Family is a model_type of transformers.
type Family string

// The families read.
const (
	Qwen3    Family = "qwen3"
	Qwen3MoE Family = "qwen3_moe"
	Qwen2    Family = "qwen2"
	Llama    Family = "llama"
	GPT2     Family = "gpt2"
)

// Activation is the function inside the MLP.
type Activation string

// SiLU gates (down(silu(gate x) · up x)); GELUTanh is the tanh approximation, without a gate (gpt2).
const (
	SiLU     Activation = "silu"
	GELUTanh Activation = "gelu_new"
)

// Config is what config.json says about a model's mathematics. Letters as in the rest of heddle.
type Config struct {
	Family    Family
	Layers    int // L
	Hidden    int // H
	Heads     int // A
	KVHeads   int // G, divides A
	HeadDim   int // D; A·D need not be H
	MLP       int // F of dense layers
	Vocab     int // V
	Positions int // longest sequence it was trained for; with LearnedPositions a hard limit

	LayerNorm        bool // LayerNorm with bias; else RMSNorm
	Eps              float64
	Activation       Activation
	LearnedPositions bool // an embedding [Positions, H] is added; else RoPE
	Rope             Rope
	QKNorm           bool // RMSNorm over D of each q and k head, before RoPE
	QKVBias, OBias   bool
	MLPBias          bool
	Tied             bool // the head is the embedding
	Experts          Experts

	InitStd float64 // standard deviation of fresh weights
	DType   string  // type the weights were saved in: float32, bfloat16, float16; "" if not said
	BOS     int     // -1: none
	EOS     []int   // tokens that end a text; nil: none

	Ignored []string // fields of the file that were not understood, and token ids outside the vocabulary; for the user to see
}

// Rope is rotary position embedding: inverse frequency Theta^(-2i/D) for pair i, halves rotated (not interleaved).
type Rope struct {
	Theta  float64
	Llama3 *Llama3 // nil: frequencies as they are
}

// Llama3 stretches the slow frequencies (Llama 3.1; transformers' rope type "llama3").
type Llama3 struct {
	Factor            float64 // of the slow ones
	Low, High         float64 // slow: fewer than Low turns over OriginalPositions; fast: more than High; between them a ramp
	OriginalPositions int
}

// Experts describes the mixture of every layer; Count 0: dense.
type Experts struct {
	Count    int  // E
	PerToken int  // k
	MLP      int  // F of an expert
	NormTopK bool // the k weights are divided by their sum
	AuxCoef  float64
}

// Read reads the config.json of a folder.
func Read(dir string) (Config, error) { return ReadFile(filepath.Join(dir, "config.json")) }

// ReadFile reads a config.json by its own name.
func ReadFile(path string) (Config, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Config{}, fmt.Errorf("hf: %w", err)
	}
	if st.Size() > maxConfig {
		return Config{}, fmt.Errorf("hf: %s has %d bytes, at most %d are allowed", path, st.Size(), maxConfig)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("hf: %w", err)
	}
	c, err := Parse(text)
	if err != nil {
		return Config{}, fmt.Errorf("hf: %s: %w", path, err)
	}
	return c, nil
}

const maxConfig = 1 << 20 // bytes

// bounds of what a config may say: far above any model, low enough that no product of three overflows.
const (
	maxLayers  = 1 << 14
	maxWidth   = 1 << 22 // hidden, MLP, heads, head size, experts
	maxVocab   = 1 << 26
	maxExperts = 1 << 17 // in all layers together: Params lists them one by one
	maxLength  = 1 << 32
)

// check refuses sizes that no model can have.
func (c Config) check() error {
	for _, x := range []struct {
		name     string
		got, max int
	}{
		{"number of layers", c.Layers, maxLayers}, {"hidden size", c.Hidden, maxWidth}, {"number of attention heads", c.Heads, maxWidth},
		{"number of key/value heads", c.KVHeads, maxWidth}, {"head_dim", c.HeadDim, maxWidth}, {"MLP width", c.MLP, maxWidth},
		{"vocab_size", c.Vocab, maxVocab}, {"number of positions", c.Positions, maxLength},
	} {
		if x.got < 1 || x.got > x.max {
			return fmt.Errorf("%s is %d, want 1 to %d", x.name, x.got, x.max)
		}
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("%d attention heads are not divisible by %d key/value heads", c.Heads, c.KVHeads)
	}
	if !(c.Eps > 0 && c.Eps < 1) {
		return fmt.Errorf("norm epsilon is %g, want it between 0 and 1", c.Eps)
	}
	if !(c.InitStd >= 0 && c.InitStd < 10) {
		return fmt.Errorf("initializer_range is %g, want 0 to 10", c.InitStd)
	}
	if err := c.checkRope(); err != nil {
		return err
	}
	if c.Layers*c.Experts.Count > maxExperts {
		return fmt.Errorf("%d layers of %d experts, at most %d are allowed in all", c.Layers, c.Experts.Count, maxExperts)
	}
	return c.Experts.check()
}

func (c Config) checkRope() error {
	if c.LearnedPositions {
		return nil
	}
	if c.HeadDim%2 != 0 {
		return fmt.Errorf("head_dim %d is odd, RoPE rotates pairs", c.HeadDim)
	}
	if !(c.Rope.Theta >= 1) {
		return fmt.Errorf("rope_theta is %g, want at least 1", c.Rope.Theta)
	}
	if l := c.Rope.Llama3; l != nil && !(l.Factor >= 1 && l.Low > 0 && l.High > l.Low && l.OriginalPositions > 0) {
		return fmt.Errorf("llama3 RoPE: factor %g, low_freq_factor %g, high_freq_factor %g, original_max_position_embeddings %d; want factor >= 1, 0 < low < high, a positive length",
			l.Factor, l.Low, l.High, l.OriginalPositions)
	}
	return nil
}

func (e Experts) check() error {
	if e == (Experts{}) {
		return nil
	}
	if e.Count < 1 || e.Count > maxWidth || e.MLP < 1 || e.MLP > maxWidth || e.PerToken < 1 || e.PerToken > e.Count {
		return fmt.Errorf("%d experts of width %d, %d a token; want positive sizes and no more a token than there are", e.Count, e.MLP, e.PerToken)
	}
	if !(e.AuxCoef >= 0 && e.AuxCoef < 1e6) {
		return fmt.Errorf("router_aux_loss_coef is %g, want 0 or more", e.AuxCoef)
	}
	return nil
}
