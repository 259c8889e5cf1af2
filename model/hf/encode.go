package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Encode makes the config.json of c, which transformers 4 and 5 read. It is an error when the family cannot say what c says.
func (c Config) Encode() ([]byte, error) {
	var b bytes.Buffer
	sep := "{\n"
	lines := c.lines()
	slices.SortFunc(lines, func(x, y line) int { return bytes.Compare([]byte(x.key), []byte(y.key)) })
	for _, l := range lines {
		v, err := json.Marshal(l.value)
		if err != nil {
			return nil, fmt.Errorf("hf: field %s: %w", l.key, err)
		}
		fmt.Fprintf(&b, "%s  %q: %s", sep, l.key, v)
		sep = ",\n"
	}
	b.WriteString("\n}\n")
	back, err := Parse(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("hf: this configuration cannot be written as %s: %w", c.Family, err)
	}
	want := c
	want.Ignored = nil
	if len(want.EOS) == 0 {
		want.EOS = nil
	}
	if !reflect.DeepEqual(back, want) {
		return nil, fmt.Errorf("hf: family %s cannot express this configuration: reading it back gives %+v, want %+v", c.Family, back, want)
	}
	return b.Bytes(), nil
}

// line is one field; value is a number, string, boolean, list or nil.
type line struct {
	key   string
	value any
}

// real is a float64 written as Python does: with a point or exponent, because transformers warns about an integer here.
type real float64

// MarshalJSON implements json.Marshaler.
func (r real) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(float64(r))
	if err == nil && !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return text, err
}

func (c Config) lines() []line {
	arch := map[Family]string{Qwen3: "Qwen3ForCausalLM", Qwen3MoE: "Qwen3MoeForCausalLM", Qwen2: "Qwen2ForCausalLM", Llama: "LlamaForCausalLM", GPT2: "GPT2LMHeadModel"}
	lines := []line{
		{"architectures", []string{arch[c.Family]}}, {"model_type", c.Family}, {"vocab_size", c.Vocab}, {"tie_word_embeddings", c.Tied},
		{"initializer_range", real(c.InitStd)}, {"use_cache", true}, {"bos_token_id", orNull(c.BOS)},
	}
	switch len(c.EOS) {
	case 0:
		lines = append(lines, line{"eos_token_id", nil})
	case 1:
		lines = append(lines, line{"eos_token_id", c.EOS[0]})
	default:
		lines = append(lines, line{"eos_token_id", c.EOS})
	}
	if c.DType != "" {
		lines = append(lines, line{"torch_dtype", c.DType})
	}
	if c.Family == GPT2 {
		return append(lines, line{"n_layer", c.Layers}, line{"n_embd", c.Hidden}, line{"n_head", c.Heads}, line{"n_inner", c.MLP}, line{"n_positions", c.Positions},
			line{"layer_norm_epsilon", real(c.Eps)}, line{"activation_function", c.Activation})
	}
	lines = append(lines, line{"num_hidden_layers", c.Layers}, line{"hidden_size", c.Hidden}, line{"num_attention_heads", c.Heads}, line{"num_key_value_heads", c.KVHeads},
		line{"head_dim", c.HeadDim}, line{"intermediate_size", c.MLP}, line{"max_position_embeddings", c.Positions}, line{"rms_norm_eps", real(c.Eps)},
		line{"hidden_act", c.Activation}, line{"rope_theta", real(c.Rope.Theta)}, line{"rope_scaling", nil})
	if l := c.Rope.Llama3; l != nil {
		lines[len(lines)-1].value = map[string]any{"rope_type": "llama3", "factor": real(l.Factor), "low_freq_factor": real(l.Low), "high_freq_factor": real(l.High),
			"original_max_position_embeddings": l.OriginalPositions}
	}
	switch c.Family {
	case Llama:
		lines = append(lines, line{"attention_bias", c.QKVBias}, line{"mlp_bias", c.MLPBias})
	case Qwen3:
		lines = append(lines, line{"attention_bias", c.QKVBias}, line{"use_sliding_window", false})
	case Qwen2:
		lines = append(lines, line{"use_sliding_window", false})
	case Qwen3MoE:
		e := c.Experts
		lines = append(lines, line{"attention_bias", c.QKVBias}, line{"use_sliding_window", false}, line{"num_experts", e.Count}, line{"num_experts_per_tok", e.PerToken},
			line{"moe_intermediate_size", e.MLP}, line{"norm_topk_prob", e.NormTopK}, line{"router_aux_loss_coef", real(e.AuxCoef)},
			line{"decoder_sparse_step", 1}, line{"mlp_only_layers", []int{}})
	}
	return lines
}

func orNull(token int) any {
	if token < 0 {
		return nil
	}
	return token
}
