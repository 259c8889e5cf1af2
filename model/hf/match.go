package hf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Gather takes the parameter out of its stored tensor, row-major both.
func Gather[T float32 | float64](p Param, stored []T) []T {
	out := make([]T, p.size())
	p.each(func(ours, at int) { out[ours] = stored[at] })
	return out
}

// Scatter puts the parameter where it belongs in its stored tensor.
func Scatter[T float32 | float64](p Param, stored, ours []T) {
	p.each(func(i, at int) { stored[at] = ours[i] })
}

func (p Param) size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// each calls f with the index of every element in ours and in the stored tensor.
func (p Param) each(f func(ours, at int)) {
	switch {
	case p.Transposed: // [out, in] from [in, width]
		for o := range p.Shape[0] {
			for i := range p.Shape[1] {
				f(o*p.Shape[1]+i, i*p.Stored[1]+p.From+o)
			}
		}
	default:
		for i := range p.size() {
			f(i, p.From+i)
		}
	}
}

// Match finds the stored tensors of a model among those of a folder, given by name and shape, and returns the list of parameters with Name as in the folder.
// It is strict both ways: a tensor that is missing, has another shape, or that nothing asks for is an error. Three things pass, because published files
// hold them: gpt2 without the prefix "transformer.", mask and frequency buffers, and a copy of a tied head (the caller must compare it: tied reports its name).
func (c Config) Match(shapes map[string][]int) (params []Param, tied string, err error) {
	params = c.Params()
	want := make(map[string]bool, len(params))
	bare := c.Family == GPT2 && shapes["wte.weight"] != nil
	var missing []string
	for i := range params {
		p := &params[i]
		if bare {
			p.Name = strings.TrimPrefix(p.Name, "transformer.")
		}
		want[p.Name] = true
		got, ok := shapes[p.Name]
		if !ok {
			missing = append(missing, p.Name)
		} else if !slices.Equal(got, p.Stored) {
			return nil, "", fmt.Errorf("hf: tensor %s is %v, config.json makes it %v; hint: %s", p.Name, got, p.Stored, p.fields())
		}
	}
	var extra []string
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		switch {
		case want[name] || buffer(name):
		case name == "lm_head.weight" && c.Tied && slices.Equal(shapes[name], []int{c.Vocab, c.Hidden}):
			tied = name
		default:
			extra = append(extra, name)
		}
	}
	if len(missing) > 0 || len(extra) > 0 {
		return nil, "", fmt.Errorf("hf: tensors and config.json disagree: missing %s; not asked for %s%s", some(slices.Compact(missing)), some(extra), c.hint(missing))
	}
	return params, tied, nil
}

// buffer tells whether a tensor is a constant that old versions saved beside the weights.
func buffer(name string) bool {
	return strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias") || strings.HasSuffix(name, ".rotary_emb.inv_freq")
}

func some(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > 4:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), n-4)
	}
	return strings.Join(names, ", ")
}

func (c Config) hint(missing []string) string {
	if slices.Contains(missing, "lm_head.weight") {
		return "; hint: tie_word_embeddings may have to be true"
	}
	return ""
}

// fields names the fields of config.json that decide the parameter's shape.
func (p Param) fields() string {
	switch strings.TrimSuffix(string(p.Role), "_bias") {
	case string(Embed), string(Head):
		return "compare vocab_size and hidden_size"
	case string(Position):
		return "compare n_positions and n_embd"
	case string(Q), string(O):
		return "compare num_attention_heads, head_dim and hidden_size"
	case string(K), string(V):
		return "compare num_key_value_heads, head_dim and hidden_size"
	case string(QNorm), string(KNorm):
		return "compare head_dim"
	case string(Gate), string(Up), string(Down):
		return "compare intermediate_size (of an expert: moe_intermediate_size) and hidden_size"
	case string(Router):
		return "compare num_experts and hidden_size"
	}
	return "compare hidden_size"
}
