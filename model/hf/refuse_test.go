package hf

import (
	"strings"
	"testing"

	"heddle/internal/mangle"
)

// Each change to a sound configuration must be refused with an error that names the field.
func TestUnsupportedConfigurationsAreRefused(t *testing.T) {
	cases := []struct{ base, old, new, says string }{
		{qwen3, `"model_type": "qwen3"`, `"model_type": "qwen4"`, "model_type"},
		{qwen3, `"model_type": "qwen3",`, ``, "model_type is missing"},
		{qwen3, `"use_sliding_window": false`, `"use_sliding_window": true`, "use_sliding_window"},
		{qwen3, `"use_cache": true`, `"layer_types": ["full_attention"]`, "1 entries for 28 layers"},
		{qwen3, `"use_cache": true`, `"layer_types": [` + strings.Repeat(`"full_attention",`, 27) + `"sliding_attention"]`, "layer 27"},
		{qwen3, `"hidden_act": "silu"`, `"hidden_act": "gelu"`, "hidden_act"},
		{qwen3, `"rope_scaling": null`, `"rope_scaling": {"type": "yarn", "factor": 4.0}`, "rope"},
		{qwen3, `"rope_scaling": null`, `"rope_scaling": {"rope_type": "linear", "factor": 4.0}`, "RoPE types"},
		{qwen3, `"rope_scaling": null`, `"rope_scaling": {"rope_type": "default", "mrope_section": [1]}`, "mrope_section"},
		{qwen3, `"rope_scaling": null`, `"rope_scaling": [1]`, "want an object"},
		{qwen3, `"rope_theta": 1000000`, `"rope_theta": 1000000, "rope_parameters": {"rope_theta": 1}`, "also a field outside"},
		{qwen3, `"rope_theta": 1000000`, `"rope_theta": 0`, "rope_theta"},
		{qwen3, `"rope_theta": 1000000`, `"rope_theta": "1e6"`, "want a number"},
		{qwen3, `"use_cache": true`, `"partial_rotary_factor": 0.5`, "partial_rotary_factor"},
		{qwen3, `"use_cache": true`, `"quantization_config": {"bits": 4}`, "quantization_config"},
		{qwen3, `"use_cache": true`, `"final_logit_softcapping": 30.0`, "final_logit_softcapping"},
		{qwen3, `"use_cache": true`, `"mlp_bias": true`, "mlp_bias"},
		{qwen3, `"hidden_size": 1024,`, ``, "hidden_size is missing"},
		{qwen3, `"hidden_size": 1024`, `"hidden_size": null`, "hidden_size is missing"},
		{qwen3, `"hidden_size": 1024`, `"hidden_size": 1024.0`, "hidden_size"},
		{qwen3, `"hidden_size": 1024`, `"hidden_size": "1024"`, "hidden_size"},
		{qwen3, `"hidden_size": 1024`, `"hidden_size": 1024, "hidden_size": 2048`, "occurs twice"},
		{qwen3, `"hidden_size": 1024`, `"hidden_size": -1024`, "hidden size is -1024"},
		{qwen3, `"hidden_size": 1024`, `"hidden_size": 9007199254740993`, "hidden size is 9007199254740993"},
		{qwen3, `"hidden_size"`, `"Hidden_Size"`, "hidden_size is missing"},
		{qwen3, `"num_hidden_layers": 28`, `"num_hidden_layers": 1000000000`, "number of layers"},
		{qwen3, `"num_hidden_layers": 28`, `"num_hidden_layers": 0`, "number of layers"},
		{qwen3, `"num_key_value_heads": 8`, `"num_key_value_heads": 7`, "not divisible by 7"},
		{qwen3, `"num_key_value_heads": 8`, `"num_key_value_heads": 0`, "key/value heads is 0"},
		{qwen3, `"head_dim": 128`, `"head_dim": 127`, "odd"},
		{qwen3, `"vocab_size": 151936`, `"vocab_size": 0`, "vocab_size"},
		{qwen3, `"rms_norm_eps": 1e-06`, `"rms_norm_eps": 0`, "epsilon"},
		{qwen3, `"rms_norm_eps": 1e-06`, `"rms_norm_eps": 1e-06, "rms_norm_eps": 1`, "occurs twice"},
		{qwen3, `"tie_word_embeddings": true`, `"tie_word_embeddings": 1`, "tie_word_embeddings"},
		{qwen3, `"initializer_range": 0.02`, `"initializer_range": NaN`, "want a value"},
		{llama32, `"factor": 32.0`, `"factor": 0.5`, "llama3 RoPE"},
		{llama32, `"factor": 32.0,`, ``, "llama3 RoPE"},
		{llama32, `"low_freq_factor": 1.0`, `"low_freq_factor": 4.0`, "llama3 RoPE"},
		{llama32, `"head_dim": 64,`, `"sliding_window": 4096,`, "sliding_window"},
		{llama32, `"use_cache": true`, `"rope_interleaved": true`, "rope_interleaved"},
		{llama32, `"head_dim": 64, "hidden_act": "silu", "hidden_size": 2048`, `"hidden_act": "silu", "hidden_size": 2049`, "hidden_size 2049 is not divisible"},
		{qwen25, `"use_sliding_window": false`, `"use_sliding_window": true`, "use_sliding_window"},
		{gpt2, `"activation_function": "gelu_new"`, `"activation_function": "relu"`, "activation_function"},
		{gpt2, `"n_head": 12`, `"n_head": 11`, "not divisible by n_head 11"},
		{gpt2, `"n_head": 12`, `"n_head": 0`, "n_head 0"},
		{gpt2, `"n_ctx": 1024`, `"scale_attn_by_inverse_layer_idx": true`, "scale_attn_by_inverse_layer_idx"},
		{gpt2, `"n_ctx": 1024`, `"scale_attn_weights": false`, "scale_attn_weights"},
		{gpt2, `"n_ctx": 1024`, `"add_cross_attention": true`, "add_cross_attention"},
	}
	for _, c := range cases {
		text := strings.Replace(c.base, c.old, c.new, 1)
		if text == c.base {
			t.Errorf("%q is not in the configuration", c.old)
		}
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.new, err, c.says)
		}
	}
	for _, text := range []string{"", "null", "[]", "{}", `{"model_type": "qwen3"}`, qwen3 + "{}", qwen3[:len(qwen3)-1], "\ufeff" + qwen3} {
		if c, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.40q: got %+v", text, c)
		}
	}
}

const moe = `{"model_type": "qwen3_moe", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48,
	"max_position_embeddings": 64, "vocab_size": 97, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": true}`

func TestUnsupportedMixturesAreRefused(t *testing.T) {
	c, err := Parse([]byte(moe))
	if err != nil || c.Experts != (Experts{8, 2, 24, true, 0.001}) {
		t.Fatalf("got %+v, %v", c.Experts, err)
	}
	for _, x := range []struct{ old, new, says string }{
		{`"num_experts": 8`, `"num_experts": 0`, "0 experts"},
		{`"num_experts": 8`, `"num_experts": 1000000`, "at most 131072"},
		{`"num_experts": 8,`, ``, "num_experts is missing"},
		{`"num_experts_per_tok": 2`, `"num_experts_per_tok": 9`, "9 a token"},
		{`"head_dim": 8`, `"head_dim": 8, "decoder_sparse_step": 2`, "decoder_sparse_step"},
		{`"head_dim": 8`, `"head_dim": 8, "mlp_only_layers": [0]`, "mlp_only_layers"},
		{`"head_dim": 8`, `"head_dim": 8, "shared_expert_intermediate_size": 24`, "shared_expert"},
		{`"head_dim": 8`, `"head_dim": 8, "router_aux_loss_coef": -1`, "router_aux_loss_coef"},
	} {
		if _, err := Parse([]byte(strings.Replace(moe, x.old, x.new, 1))); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: got %v, want %q", x.new, err, x.says)
		}
	}
}

// FuzzParse: nothing panics; what is accepted can be listed, and written back if it is written at all, without change.
func FuzzParse(f *testing.F) {
	for _, s := range []string{qwen3, llama32, qwen25, gpt2, moe} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		if c.Layers <= 64 && c.Experts.Count <= 64 {
			seen := map[string]bool{}
			for _, p := range c.Params() {
				if seen[p.Ours()] {
					t.Fatalf("two parameters are called %s", p.Ours())
				}
				seen[p.Ours()] = true
			}
		}
		if _, err := c.Encode(); err != nil {
			t.Fatal(err)
		}
	})
}

// Broken copies of published configurations: an error or a configuration with parameters, never a panic.
func TestMangledConfigurationsDoNotPanic(t *testing.T) {
	mangle.Run(t, [][]byte{[]byte(qwen3), []byte(llama32), []byte(qwen25), []byte(gpt2), []byte(moe)}, func(in []byte) {
		if c, err := Parse(in); err == nil && c.Layers < 20 && c.Experts.Count < 20 && len(c.Params()) == 0 {
			panic("no parameters")
		}
	})
}
