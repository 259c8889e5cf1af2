package hf

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/golden"
)

// Published configurations of transformers 4, as their authors wrote them (the fields that matter and some that do not).
const (
	qwen3 = `{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
		"head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 40960,
		"max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
		"rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
		"transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936}`
	llama32 = `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009],
		"head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 131072,
		"mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
		"rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
		"rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256}`
	qwen25 = `{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 896,
		"initializer_range": 0.02, "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 21, "model_type": "qwen2", "num_attention_heads": 14,
		"num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true,
		"torch_dtype": "bfloat16", "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936}`
	gpt2 = `{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
		"initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
		"resid_pdrop": 0.1, "summary_type": "cls_index", "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257}`
)

func TestPublishedConfigurationsAreUnderstood(t *testing.T) {
	cases := []struct {
		text   string
		want   Config
		params int // weights of the published model: from its card or its file
	}{
		{qwen3, Config{Family: Qwen3, Layers: 28, Hidden: 1024, Heads: 16, KVHeads: 8, HeadDim: 128, MLP: 3072, Vocab: 151936, Positions: 40960, Eps: 1e-6, Activation: SiLU,
			Rope: Rope{Theta: 1e6}, QKNorm: true, Tied: true, InitStd: 0.02, DType: "bfloat16", BOS: 151643, EOS: []int{151645}}, 596_049_920},
		{llama32, Config{Family: Llama, Layers: 16, Hidden: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, MLP: 8192, Vocab: 128256, Positions: 131072, Eps: 1e-5, Activation: SiLU,
			Rope: Rope{Theta: 5e5, Llama3: &Llama3{32, 1, 4, 8192}}, Tied: true, InitStd: 0.02, DType: "bfloat16", BOS: 128000, EOS: []int{128001, 128008, 128009}}, 1_235_814_400},
		{qwen25, Config{Family: Qwen2, Layers: 24, Hidden: 896, Heads: 14, KVHeads: 2, HeadDim: 64, MLP: 4864, Vocab: 151936, Positions: 32768, Eps: 1e-6, Activation: SiLU,
			Rope: Rope{Theta: 1e6}, QKVBias: true, Tied: true, InitStd: 0.02, DType: "bfloat16", BOS: 151643, EOS: []int{151645}, Ignored: []string{"use_mrope"}}, 494_032_768},
		{gpt2, Config{Family: GPT2, Layers: 12, Hidden: 768, Heads: 12, KVHeads: 12, HeadDim: 64, MLP: 3072, Vocab: 50257, Positions: 1024, LayerNorm: true, Eps: 1e-5,
			Activation: GELUTanh, LearnedPositions: true, QKVBias: true, OBias: true, MLPBias: true, Tied: true, InitStd: 0.02, BOS: 50256, EOS: []int{50256}}, 124_439_808},
	}
	for _, c := range cases {
		got, err := Parse([]byte(c.text))
		if err != nil {
			t.Error(err)
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("got  %+v\nwant %+v", got, c.want)
		}
		n := 0
		for _, p := range got.Params() {
			n += p.size()
		}
		if n != c.params {
			t.Errorf("%s: %d weights, want %d", got.Family, n, c.params)
		}
	}
}

func shapes(f *safetensors.File) map[string][]int {
	m := map[string][]int{}
	for _, i := range f.Tensors() {
		m[i.Name] = i.Shape
	}
	return m
}

// The parameters are exactly the tensors of the files transformers saved, and every element of a tensor belongs to exactly one parameter.
func TestParametersCoverTheFilesExactly(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			f := golden.Open(t, name)
			c, err := Read(f.Dir)
			if err != nil {
				t.Fatal(err)
			}
			params, tied, err := c.Match(shapes(f.Model))
			if err != nil || tied != "" {
				t.Fatal(err, tied)
			}
			rebuilt, hits := map[string][]float64{}, map[string][]float64{}
			ours := map[string]bool{}
			for _, p := range params {
				stored := golden.Float64s(t, f.Model, p.Name)
				if rebuilt[p.Name] == nil {
					rebuilt[p.Name], hits[p.Name] = make([]float64, len(stored)), make([]float64, len(stored))
				}
				v := Gather(p, stored)
				if p.Whole() && !slices.Equal(v, stored) {
					t.Errorf("%s: whole, but not the tensor as it is", p.Ours())
				}
				Scatter(p, rebuilt[p.Name], v)
				p.each(func(_, at int) { hits[p.Name][at]++ })
				if ours[p.Ours()] {
					t.Errorf("two parameters are called %s", p.Ours())
				}
				ours[p.Ours()] = true
			}
			for name, v := range rebuilt {
				if !slices.Equal(v, golden.Float64s(t, f.Model, name)) {
					t.Errorf("%s does not survive Gather and Scatter", name)
				}
				if slices.Min(hits[name]) != 1 || slices.Max(hits[name]) != 1 {
					t.Errorf("%s: elements are used %g to %g times", name, slices.Min(hits[name]), slices.Max(hits[name]))
				}
			}
		})
	}
}

// gpt2 computes x·W + b with W [in, 3H]: q is the first H columns, k the next, v the last. Checked by hand on a 2 × 6 matrix.
func TestFusedProjectionIsCutAndTransposed(t *testing.T) {
	c := Config{Family: GPT2, Layers: 1, Hidden: 2, Heads: 1, KVHeads: 1, HeadDim: 2, MLP: 8, Vocab: 3, Positions: 4, Tied: true}
	w := []float64{11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 25, 26} // element ij is 10·i + j
	b := []float64{1, 2, 3, 4, 5, 6}
	want := map[Role][]float64{Q: {11, 21, 12, 22}, K: {13, 23, 14, 24}, V: {15, 25, 16, 26}, QBias: {1, 2}, KBias: {3, 4}, VBias: {5, 6}}
	for _, p := range c.Params() {
		if v, ok := want[p.Role]; ok {
			stored := w
			if len(p.Stored) == 1 {
				stored = b
			}
			if got := Gather(p, stored); !slices.Equal(got, v) {
				t.Errorf("%s: got %v, want %v", p.Role, got, v)
			}
		}
	}
}

func TestWeightsThatDoNotFitAreNamed(t *testing.T) {
	f := golden.Open(t, "qwen3-gqa")
	c, err := Read(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	gpt := Config{Family: GPT2, Layers: 1, Hidden: 2, Heads: 1, KVHeads: 1, HeadDim: 2, MLP: 8, Vocab: 3, Positions: 4, Tied: true}
	bare := map[string][]int{"h.0.attn.bias": {1, 1, 4, 4}}
	for _, p := range gpt.Params() {
		bare[strings.TrimPrefix(p.Name, "transformer.")] = p.Stored
	}
	if params, _, err := gpt.Match(bare); err != nil || params[0].Name != "wte.weight" {
		t.Errorf("gpt2 without prefix, with mask buffers: %v", err)
	}
	copied := shapes(f.Model)
	copied["lm_head.weight"] = []int{c.Vocab, c.Hidden}
	if _, tied, err := c.Match(copied); err != nil || tied != "lm_head.weight" {
		t.Errorf("copy of a tied head: got %q, %v", tied, err)
	}
	cases := []struct {
		name   string
		change func(c *Config, s map[string][]int)
		says   []string
	}{
		{"untied without a head", func(c *Config, s map[string][]int) { c.Tied = false }, []string{"missing lm_head.weight", "tie_word_embeddings"}},
		{"another head size", func(c *Config, s map[string][]int) { c.HeadDim = 16 }, []string{"q_proj.weight is [64 48], config.json makes it [128 48]", "head_dim"}},
		{"another vocabulary", func(c *Config, s map[string][]int) { c.Vocab = 132 }, []string{"[131 48]", "[132 48]", "vocab_size"}},
		{"a layer more", func(c *Config, s map[string][]int) { c.Layers++ }, []string{"missing model.layers.3", "and 7 more"}},
		{"a layer less", func(c *Config, s map[string][]int) { c.Layers-- }, []string{"not asked for model.layers.2", "and 7 more"}},
		{"a head of another shape", func(c *Config, s map[string][]int) { s["lm_head.weight"] = []int{1, 48} }, []string{"not asked for lm_head.weight"}},
		{"a stranger", func(c *Config, s map[string][]int) { s["vision.weight"] = []int{1} }, []string{"not asked for vision.weight"}},
	}
	for _, x := range cases {
		c, s := c, shapes(f.Model)
		x.change(&c, s)
		_, _, err := c.Match(s)
		for _, says := range x.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %v, want %q", x.name, err, says)
			}
		}
	}
}

// What Encode writes reads back the same; what a family cannot say is refused.
func TestEncodedConfigurationReadsBack(t *testing.T) {
	var all []Config
	for _, text := range []string{qwen3, llama32, qwen25, gpt2} {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			c, err := Read(golden.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		})
	}
	for _, c := range all {
		text, err := c.Encode()
		if err != nil {
			t.Error(err)
			continue
		}
		back, err := Parse(text)
		c.Ignored = nil
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: got %+v, %v", text, back, err)
		}
	}
	for name, change := range map[string]func(*Config){
		"qwen3 without q/k-norm": func(c *Config) { c.QKNorm = false }, "qwen3 with one bias": func(c *Config) { c.OBias = true },
		"qwen3 with LayerNorm": func(c *Config) { c.LayerNorm = true }, "qwen3 with GELU": func(c *Config) { c.Activation = GELUTanh },
		"no layers": func(c *Config) { c.Layers = 0 }, "unknown family": func(c *Config) { c.Family = "mamba" },
	} {
		c := all[0]
		change(&c)
		if text, err := c.Encode(); err == nil {
			t.Errorf("%s: written as %s", name, text)
		}
	}
}

func TestMissingFolderIsAnError(t *testing.T) {
	if _, err := Read(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
