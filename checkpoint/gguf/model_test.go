package gguf

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heddle/model/hf"
)

// tiny is a model file of one layer in the making: metadata pairs and tensors by name, all F32.
type tiny struct {
	pairs   map[string][]byte
	tensors map[string][]uint64 // dims as in the file
	values  map[string][]float32
}

func textPair(key, v string) []byte {
	return append(le.AppendUint32(text(key), uint32(kindString)), text(v)...)
}

func floatPair(key string, v float32) []byte {
	return le.AppendUint32(le.AppendUint32(text(key), uint32(kindFloat32)), math.Float32bits(v))
}

// newTiny: H 8, A 2, G 1, D 4, F 6, V 5.
func newTiny(arch string) tiny {
	t := tiny{map[string][]byte{"general.architecture": textPair("general.architecture", arch)}, map[string][]uint64{}, map[string][]float32{}}
	for key, v := range map[string]uint32{"block_count": 1, "embedding_length": 8, "feed_forward_length": 6, "attention.head_count": 2, "attention.head_count_kv": 1,
		"attention.key_length": 4, "context_length": 16} {
		t.pairs[key] = number(arch+"."+key, v)
	}
	t.pairs["eps"] = floatPair(arch+".attention.layer_norm_rms_epsilon", 1e-6)
	t.tensors = map[string][]uint64{"token_embd.weight": {8, 5}, "output_norm.weight": {8}, "blk.0.attn_norm.weight": {8}, "blk.0.attn_q.weight": {8, 8}, "blk.0.attn_k.weight": {8, 4},
		"blk.0.attn_v.weight": {8, 4}, "blk.0.attn_output.weight": {8, 8}, "blk.0.ffn_norm.weight": {8}, "blk.0.ffn_gate.weight": {8, 6}, "blk.0.ffn_up.weight": {8, 6},
		"blk.0.ffn_down.weight": {6, 8}}
	switch arch {
	case "qwen3":
		t.tensors["blk.0.attn_q_norm.weight"], t.tensors["blk.0.attn_k_norm.weight"] = []uint64{4}, []uint64{4}
	case "qwen2":
		t.tensors["blk.0.attn_q.bias"], t.tensors["blk.0.attn_k.bias"], t.tensors["blk.0.attn_v.bias"] = []uint64{8}, []uint64{4}, []uint64{4}
	}
	return t
}

// open writes the file and opens it as a model; element i of tensor n is 1000·n + i, n in order of names.
func (x tiny) open(t *testing.T) (*Model, error) {
	t.Helper()
	b := builder{magic: magic, version: 3, tensors: uint64(len(x.tensors)), pairs: uint64(len(x.pairs))}
	for _, p := range x.pairs {
		b.body = append(b.body, p...)
	}
	var names []string
	for n := range x.tensors {
		names = append(names, n)
	}
	slices.Sort(names)
	for k, n := range names {
		b.body = append(b.body, entry(n, F32, uint64(len(b.data)), x.tensors[n]...)...)
		size := uint64(1)
		for _, d := range x.tensors[n] {
			size *= d
		}
		for i := range size {
			v := float32(1000*k) + float32(i)
			if x.values[n] != nil {
				v = x.values[n][i]
			}
			b.data = le.AppendUint32(b.data, math.Float32bits(v))
		}
		for len(b.data)%32 != 0 {
			b.data = append(b.data, 0)
		}
	}
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, b.bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(path)
	if err == nil {
		t.Cleanup(func() { m.Close() })
	}
	return m, err
}

func TestFamiliesAreRecognised(t *testing.T) {
	base := hf.Config{Layers: 1, Hidden: 8, Heads: 2, KVHeads: 1, HeadDim: 4, MLP: 6, Vocab: 5, Positions: 16, Eps: 1e-6, Activation: hf.SiLU, Rope: hf.Rope{Theta: 10000},
		Tied: true, InitStd: 0.02, DType: "float32", BOS: -1}
	for _, arch := range []string{"llama", "qwen2", "qwen3"} {
		m, err := newTiny(arch).open(t)
		if err != nil {
			t.Error(err)
			continue
		}
		want := base
		want.Family, want.QKVBias, want.QKNorm = hf.Family(arch), arch == "qwen2", arch == "qwen3"
		if !reflect.DeepEqual(m.Config, want) {
			t.Errorf("%s: got  %+v\nwant %+v", arch, m.Config, want)
		}
		for _, p := range m.Config.Params() {
			v, err := m.Float32s(p)
			if err != nil || len(v) == 0 {
				t.Errorf("%s %s: %d values, %v", arch, p.Ours(), len(v), err)
			}
			if p.Role == hf.Q || p.Role == hf.K { // row 1 of the first head of 4: as it is, or in llama the file's row 2
				row := (v[8] - v[0]) / 8
				if want := map[bool]float32{true: 2, false: 1}[arch == "llama"]; row != want {
					t.Errorf("%s: row 1 of %s is row %g of the file, want %g", arch, p.Role, row, want)
				}
			}
		}
	}
	x := newTiny("qwen3")
	x.tensors["output.weight"] = []uint64{8, 5}
	if m, err := x.open(t); err != nil || m.Config.Tied {
		t.Errorf("with a head of its own: %v", err)
	}
}

func TestModelsThatAreSomethingElseAreRefused(t *testing.T) {
	cases := []struct {
		name   string
		change func(x tiny)
		says   string
	}{
		{"architecture", func(x tiny) { x.pairs["general.architecture"] = textPair("general.architecture", "mamba") }, `"mamba" is not supported`},
		{"no architecture", func(x tiny) { delete(x.pairs, "general.architecture") }, "general.architecture"},
		{"no layer count", func(x tiny) { delete(x.pairs, "block_count") }, "block_count"},
		{"no epsilon", func(x tiny) { delete(x.pairs, "eps") }, "layer_norm_rms_epsilon"},
		{"too many layers", func(x tiny) { x.pairs["block_count"] = number("qwen3.block_count", 1<<31) }, "block_count"},
		{"two layers claimed", func(x tiny) { x.pairs["block_count"] = number("qwen3.block_count", 2) }, `no tensor "blk.1.attn_norm.weight"`},
		{"experts", func(x tiny) { x.pairs["e"] = number("qwen3.expert_count", 8) }, "expert_count"},
		{"sliding window", func(x tiny) { x.pairs["e"] = number("qwen3.attention.sliding_window", 8) }, "sliding_window"},
		{"partial rotation", func(x tiny) { x.pairs["e"] = number("qwen3.rope.dimension_count", 2) }, "dimension_count"},
		{"value heads", func(x tiny) { x.pairs["e"] = number("qwen3.attention.value_length", 8) }, "value_length"},
		{"yarn", func(x tiny) { x.pairs["e"] = textPair("qwen3.rope.scaling.type", "yarn") }, `"yarn" is not supported`},
		{"another number of heads", func(x tiny) { x.pairs["attention.head_count"] = number("qwen3.attention.head_count", 3) }, "attn_q.weight"},
		{"extra tensor", func(x tiny) { x.tensors["v.patch.weight"] = []uint64{8} }, "belongs to no parameter"},
		{"missing tensor", func(x tiny) { delete(x.tensors, "blk.0.ffn_up.weight") }, "ffn_up"},
		{"missing norm", func(x tiny) { delete(x.tensors, "blk.0.attn_k_norm.weight") }, "attn_k_norm"},
		{"no embedding", func(x tiny) { delete(x.tensors, "token_embd.weight") }, "vocab_size"},
		{"wrong shape", func(x tiny) { x.tensors["blk.0.ffn_up.weight"] = []uint64{6, 8} }, "ffn_up.weight\" is [8 6], the metadata makes it [6 8]"},
		{"odd divisors", func(x tiny) {
			x.tensors["rope_freqs.weight"] = []uint64{2}
			x.values["rope_freqs.weight"] = []float32{1, 3.5}
		}, "Llama 3's rule"},
		{"wrong number of divisors", func(x tiny) { x.tensors["rope_freqs.weight"] = []uint64{3} }, "3 elements, want 2"},
	}
	for _, c := range cases {
		x := newTiny("qwen3")
		c.change(x)
		if _, err := x.open(t); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
	}
}

// llama3Divisors is the rule as transformers computes it, by wave length (modeling_rope_utils, Llama 3.1), in float32 as converters do.
func llama3Divisors(theta float64, d int, factor, low, high, original float64) (out []float32) {
	for i := range d / 2 {
		freq := math.Pow(theta, -2*float64(i)/float64(d))
		wave := 2 * math.Pi / freq
		switch {
		case wave < original/high:
			out = append(out, 1)
		case wave > original/low:
			out = append(out, float32(factor))
		default:
			smooth := (original/wave - low) / (high - low)
			out = append(out, float32(1/((1-smooth)/factor+smooth)))
		}
	}
	return out
}

func TestLlama3ScalingIsRecovered(t *testing.T) {
	const d = 64 // a head of 64 has frequencies in all three ranges
	for _, factor := range []float64{8, 32} {
		x := newTiny("llama")
		x.pairs["theta"] = floatPair("llama.rope.freq_base", 500000)
		x.pairs["attention.key_length"] = number("llama.attention.key_length", d)
		x.tensors["blk.0.attn_q.weight"], x.tensors["blk.0.attn_k.weight"], x.tensors["blk.0.attn_v.weight"] = []uint64{8, 2 * d}, []uint64{8, d}, []uint64{8, d}
		x.tensors["blk.0.attn_output.weight"] = []uint64{2 * d, 8}
		x.tensors["rope_freqs.weight"] = []uint64{d / 2}
		x.values["rope_freqs.weight"] = llama3Divisors(500000, d, factor, 1, 4, 8192)
		m, err := x.open(t)
		if err != nil {
			t.Fatal(err)
		}
		if want := (hf.Llama3{Factor: factor, Low: 1, High: 4, OriginalPositions: 8192}); m.Config.Rope.Llama3 == nil || *m.Config.Rope.Llama3 != want {
			t.Errorf("got %+v, want %+v", m.Config.Rope.Llama3, want)
		}
		x.values["rope_freqs.weight"] = llama3Divisors(500000, d, factor, 1, 4, 4096)
		if _, err := x.open(t); err == nil {
			t.Error("another original length was accepted")
		}
	}
}

func TestInconsistentTokenizersAreRefused(t *testing.T) {
	strs := func(key string, v ...string) []byte {
		out := le.AppendUint64(le.AppendUint32(le.AppendUint32(text(key), uint32(kindArray)), uint32(kindString)), uint64(len(v)))
		for _, s := range v {
			out = append(out, text(s)...)
		}
		return out
	}
	types := func(v ...uint32) []byte {
		out := le.AppendUint64(le.AppendUint32(le.AppendUint32(text("tokenizer.ggml.token_type"), uint32(kindArray)), uint32(kindInt32)), uint64(len(v)))
		for _, x := range v {
			out = le.AppendUint32(out, x)
		}
		return out
	}
	sound := map[string][]byte{"model": textPair("tokenizer.ggml.model", "gpt2"), "tokens": strs("tokenizer.ggml.tokens", "a", "b", "ab"), "types": types(1, 1, 3),
		"merges": strs("tokenizer.ggml.merges", "a b"), "eos": number("tokenizer.ggml.eos_token_id", 2)}
	for _, c := range []struct {
		key  string
		with []byte
		says string
	}{
		{"", nil, ""}, {"model", nil, "tokenizer.ggml.model"}, {"tokens", nil, "tokenizer.ggml.tokens"}, {"tokens", number("tokenizer.ggml.tokens", 1), "not an array of strings"},
		{"types", types(1, 1), "3 tokens, 2 token types"}, {"types", types(1, 1, 7), "token type 7"}, {"types", types(1, 1, math.MaxUint32), "token type -1"},
		{"eos", number("tokenizer.ggml.eos_token_id", 3), "eos token 3"}, {"eos", textPair("tokenizer.ggml.eos_token_id", "2"), "not an integer"},
	} {
		b := builder{magic: magic, version: 3}
		for key, pair := range sound {
			if key == c.key {
				pair = c.with
			}
			if pair != nil {
				b.pairs++
				b.body = append(b.body, pair...)
			}
		}
		f, err := openBytes(b.bytes())
		if err != nil {
			t.Fatal(err)
		}
		tok, err := f.Tokenizer()
		if c.says == "" {
			if err != nil || fmt.Sprint(tok.Tokens, tok.Types, tok.Merges, tok.EOS, tok.BOS) != "[a b ab] [1 1 3] [a b] 2 -1" {
				t.Errorf("sound tokenizer: %+v, %v", tok, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.key, err, c.says)
		}
	}
}
