package hf

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/strictjson"
)

// Parse reads the text of a config.json of transformers 4 or 5.
func Parse(text []byte) (Config, error) {
	f := object(text, 0)
	c := Config{Family: Family(f.text("model_type", ""))}
	if f.err != nil {
		return Config{}, f.err
	}
	switch c.Family {
	case GPT2:
		parseGPT2(f, &c)
	case Llama, Qwen2, Qwen3, Qwen3MoE:
		parseLlama(f, &c)
	case "":
		return Config{}, fmt.Errorf("field model_type is missing")
	default:
		return Config{}, fmt.Errorf("model_type %.40q is not supported; hint: heddle reads %s, %s, %s, %s and %s", c.Family, Qwen3, Qwen3MoE, Qwen2, Llama, GPT2)
	}
	parseCommon(f, &c)
	refuseOthers(f)
	if f.err == nil {
		f.err = c.check()
	}
	if f.err != nil {
		return Config{}, f.err
	}
	c.Ignored = f.unread()
	c.dropStrayTokens()
	return c, nil
}

func parseCommon(f *fields, c *Config) {
	c.Vocab = f.need("vocab_size")
	c.InitStd = f.number("initializer_range", 0.02)
	c.DType = f.text(f.first("dtype", "torch_dtype"), "")
	c.BOS = f.integer("bos_token_id", -1)
	c.EOS = f.integers("eos_token_id")
	for _, k := range []string{ // say nothing about the mathematics
		"architectures", "transformers_version", "use_cache", "pad_token_id", "_name_or_path", "_commit_hash", "return_dict", "output_attentions", "output_hidden_states",
		"attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop", "hidden_dropout",
		"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params",
		"pretraining_tp", "output_router_logits", "max_window_layers", "reorder_and_upcast_attn", "chunk_size_feed_forward", "is_decoder",
	} {
		f.read[k] = true
	}
}

// dropStrayTokens forgets ids outside the vocabulary: small models keep the defaults of their class, such as gpt2's 50256.
func (c *Config) dropStrayTokens() {
	stray := func(t int) bool {
		if t >= 0 && t < c.Vocab {
			return false
		}
		c.Ignored = append(c.Ignored, fmt.Sprintf("token id %d", t))
		return true
	}
	if c.BOS != -1 && stray(c.BOS) {
		c.BOS = -1
	}
	if c.EOS = slices.DeleteFunc(c.EOS, stray); len(c.EOS) == 0 {
		c.EOS = nil
	}
}

// parseGPT2 reads gpt2: LayerNorm, learned positions, biases everywhere, no gate.
func parseGPT2(f *fields, c *Config) {
	c.Layers, c.Hidden, c.Heads = f.need("n_layer"), f.need("n_embd"), f.need("n_head")
	c.KVHeads = c.Heads
	if c.Heads > 0 && c.Hidden%c.Heads == 0 {
		c.HeadDim = c.Hidden / c.Heads
	} else if f.err == nil {
		f.err = fmt.Errorf("n_embd %d is not divisible by n_head %d", c.Hidden, c.Heads)
	}
	c.MLP = f.integer("n_inner", 4*min(c.Hidden, maxWidth))
	c.Positions = f.integer(f.first("n_positions", "n_ctx"), 1024)
	c.LayerNorm, c.LearnedPositions, c.QKVBias, c.OBias, c.MLPBias = true, true, true, true, true
	c.Eps = f.number("layer_norm_epsilon", 1e-5)
	c.Tied = f.boolean("tie_word_embeddings", true)
	switch act := f.text("activation_function", "gelu_new"); act {
	case "gelu_new", "gelu_pytorch_tanh": // two names of one formula
		c.Activation = GELUTanh
	default:
		f.refuse("activation_function", "gpt2 takes gelu_new")
	}
}

// parseLlama reads llama and what descends from it. The defaults are those of transformers' classes.
func parseLlama(f *fields, c *Config) {
	c.Layers, c.Hidden, c.Heads = f.need("num_hidden_layers"), f.need("hidden_size"), f.need("num_attention_heads")
	c.MLP = f.need("intermediate_size")
	c.KVHeads = f.integer("num_key_value_heads", c.Heads)
	c.Positions = f.need("max_position_embeddings")
	c.Eps = f.number("rms_norm_eps", 1e-6)
	c.Tied = f.boolean("tie_word_embeddings", false)
	c.MLPBias = f.boolean("mlp_bias", false)
	bias := f.boolean("attention_bias", false)
	c.QKVBias, c.OBias = bias, bias
	if c.Family == Qwen2 { // its biases are not optional
		c.QKVBias, c.OBias = true, false
	}
	c.QKNorm = c.Family == Qwen3 || c.Family == Qwen3MoE
	parseHeadDim(f, c)
	parseRope(f, c)
	parseWindow(f, c)
	if c.Family == Qwen3MoE {
		parseExperts(f, c)
	}
	switch act := f.text("hidden_act", "silu"); act {
	case "silu", "swish":
		c.Activation = SiLU
	default:
		f.refuse("hidden_act", "these families take silu")
	}
	if c.MLPBias && c.Family != Llama {
		f.refuse("mlp_bias", "only llama has MLP biases")
	}
}

func parseHeadDim(f *fields, c *Config) {
	switch {
	case f.has("head_dim"):
		c.HeadDim = f.integer("head_dim", 0)
	case c.QKNorm: // Qwen3Config's default does not depend on the width
		c.HeadDim = 128
	case c.Heads > 0 && c.Hidden%c.Heads == 0:
		c.HeadDim = c.Hidden / c.Heads
	case f.err == nil:
		f.err = fmt.Errorf("hidden_size %d is not divisible by num_attention_heads %d, and there is no head_dim", c.Hidden, c.Heads)
	}
	f.read["head_dim"] = true
}

// parseRope reads rope_parameters (transformers 5) or rope_theta and rope_scaling (4).
func parseRope(f *fields, c *Config) {
	c.Rope.Theta = f.number("rope_theta", 10000)
	key := f.first("rope_parameters", "rope_scaling")
	if f.has("rope_parameters") && f.has("rope_scaling") && f.err == nil {
		f.err = fmt.Errorf("fields rope_parameters and rope_scaling are both there; hint: remove one")
	}
	r := f.object(key)
	if r == nil || f.err != nil {
		return
	}
	if r.has("rope_theta") && f.has("rope_theta") {
		r.err = fmt.Errorf("rope_theta is also a field outside; hint: remove one")
	}
	c.Rope.Theta = r.number("rope_theta", c.Rope.Theta)
	switch kind := r.text(r.first("rope_type", "type"), "default"); kind {
	case "default":
	case "llama3":
		c.Rope.Llama3 = &Llama3{r.number("factor", 0), r.number("low_freq_factor", 0), r.number("high_freq_factor", 0), r.integer("original_max_position_embeddings", 0)}
	default:
		r.refuse(r.first("rope_type", "type"), "RoPE types are default and llama3")
	}
	if left := r.unread(); r.err == nil && len(left) > 0 { // nothing here is without effect
		r.err = fmt.Errorf("unknown fields %s", strings.Join(left, ", "))
	}
	if r.err != nil {
		f.err = fmt.Errorf("field %s: %w", key, r.err)
	}
}

// parseWindow refuses attention that does not see the whole past.
func parseWindow(f *fields, c *Config) {
	f.read["sliding_window"] = true
	use := f.boolean("use_sliding_window", false)
	if use {
		f.refuse("use_sliding_window", "heddle has full attention only")
	}
	if c.Family == Llama && f.has("sliding_window") {
		f.refuse("sliding_window", "heddle has full attention only")
	}
	var types []string
	f.value("layer_types", func(r *strictjson.Reader) error {
		return r.Array(func(int) error {
			s, err := r.String()
			types = append(types, s)
			return err
		})
	})
	if types == nil || f.err != nil {
		return
	}
	if len(types) != c.Layers {
		f.err = fmt.Errorf("field layer_types has %d entries for %d layers", len(types), c.Layers)
	} else if i := slices.IndexFunc(types, func(s string) bool { return s != "full_attention" }); i >= 0 {
		f.err = fmt.Errorf("field layer_types: layer %d is %.40q, which is not supported; hint: heddle has full attention only", i, types[i])
	}
}

func parseExperts(f *fields, c *Config) {
	c.Experts = Experts{
		Count: f.need(f.first("num_experts", "num_local_experts")), PerToken: f.need("num_experts_per_tok"), MLP: f.need("moe_intermediate_size"),
		NormTopK: f.boolean("norm_topk_prob", false), AuxCoef: f.number("router_aux_loss_coef", 0.001),
	}
	if f.integer("decoder_sparse_step", 1) != 1 {
		f.refuse("decoder_sparse_step", "every layer must be a mixture")
	}
	if len(f.integers("mlp_only_layers")) != 0 {
		f.refuse("mlp_only_layers", "every layer must be a mixture")
	}
}

// refuseOthers looks at fields of other models and variants that would change the result, and lets only their neutral value pass.
func refuseOthers(f *fields) {
	neutral := func(key string, values ...string) {
		f.read[key] = true
		if f.has(key) && !slices.Contains(values, string(f.raw[key])) {
			f.refuse(key, "the model needs something heddle does not compute")
		}
	}
	for _, key := range []string{
		"quantization_config", "attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar", "clip_qkv", "no_rope_layers", "compression_config",
	} {
		neutral(key)
	}
	for _, key := range []string{"rope_interleaved", "add_cross_attention", "scale_attn_by_inverse_layer_idx", "is_encoder_decoder", "use_qk_norm", "parallel_residual"} {
		neutral(key, "false")
	}
	neutral("scale_attn_weights", "true")
	for _, key := range []string{"partial_rotary_factor", "rope_ratio", "logit_scale", "embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"} {
		neutral(key, "1", "1.0")
	}
	for _, key := range []string{"n_shared_experts", "num_nextn_predict_layers", "shared_expert_intermediate_size"} {
		neutral(key, "0")
	}
}
