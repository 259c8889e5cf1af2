package gguf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"heddle/model/hf"
)

// Model is a GGUF file read as one of the families that heddle computes.
type Model struct {
	File   *File
	Config hf.Config
}

// OpenModel opens a file and checks that its tensors are exactly those its metadata asks for.
func OpenModel(path string) (*Model, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	m := &Model{File: f}
	if m.Config, err = f.config(); err == nil {
		err = m.match()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// Close closes the file.
func (m *Model) Close() error { return m.File.Close() }

// config is the model's configuration; the names of the keys begin with the architecture.
func (f *File) config() (hf.Config, error) {
	arch, err := f.Text("general.architecture")
	if err != nil {
		return hf.Config{}, err
	}
	families := map[string]hf.Family{"llama": hf.Llama, "qwen2": hf.Qwen2, "qwen3": hf.Qwen3}
	family, ok := families[arch]
	if !ok {
		return hf.Config{}, fmt.Errorf("gguf: %s: architecture %.40q is not supported; hint: heddle reads llama, qwen2 and qwen3", f.path, arch)
	}
	c := hf.Config{Family: family, Activation: hf.SiLU, InitStd: 0.02, DType: "float32", BOS: -1, QKNorm: family == hf.Qwen3}
	r := &keys{f: f, arch: arch}
	c.Layers, c.Hidden, c.MLP = r.need("block_count"), r.need("embedding_length"), r.need("feed_forward_length")
	c.Heads, c.Positions = r.need("attention.head_count"), r.need("context_length")
	c.KVHeads = r.integer("attention.head_count_kv", c.Heads)
	c.HeadDim = r.integer("attention.key_length", c.Hidden/max(c.Heads, 1))
	c.Eps = r.float("attention.layer_norm_rms_epsilon", math.NaN())
	c.Rope.Theta = r.float("rope.freq_base", 10000)
	if r.err == nil && c.Eps != c.Eps {
		r.err = fmt.Errorf("gguf: %s: metadata %q is missing", f.path, arch+".attention.layer_norm_rms_epsilon")
	}
	r.must("attention.value_length", c.HeadDim)
	r.must("rope.dimension_count", c.HeadDim)
	r.must("expert_count", 0)
	r.must("attention.sliding_window", 0)
	if key := arch + ".rope.scaling.type"; r.err == nil && f.Has(key) {
		if kind, err := f.Text(key); err != nil || kind != "none" {
			r.err = fmt.Errorf("gguf: %s: RoPE scaling %q is not supported", f.path, kind)
		}
	}
	if r.err != nil {
		return hf.Config{}, r.err
	}
	if c.Rope.Llama3, err = f.llama3(c); err != nil {
		return hf.Config{}, err
	}
	_, untied := f.byName["output.weight"]
	_, biased := f.byName["blk.0.attn_q.bias"]
	_, biasedO := f.byName["blk.0.attn_output.bias"]
	c.Tied, c.QKVBias, c.OBias = !untied, biased, biasedO
	if i, ok := f.byName["token_embd.weight"]; ok && len(f.tensors[i].Shape) == 2 {
		c.Vocab = f.tensors[i].Shape[0]
	}
	if t, err := f.Tokenizer(); err == nil { // a file without one is still a model
		if c.BOS = t.BOS; t.EOS >= 0 {
			c.EOS = []int{t.EOS}
		}
	}
	text, err := c.Encode() // checks every size, and that the family can be what the tensors say
	if err == nil {
		c, err = hf.Parse(text)
	}
	if err != nil {
		return hf.Config{}, fmt.Errorf("gguf: %s: %w", f.path, err)
	}
	return c, nil
}

// keys reads metadata of one architecture; the first error stays.
type keys struct {
	f    *File
	arch string
	err  error
}

func (k *keys) integer(key string, missing int) int {
	key = k.arch + "." + key
	if k.err != nil || !k.f.Has(key) {
		return missing
	}
	n, err := k.f.Uint(key)
	if k.err = err; err == nil && n > math.MaxInt32 {
		k.err = fmt.Errorf("gguf: %s: metadata %q is %d", k.f.path, key, n)
	}
	return n
}

func (k *keys) need(key string) int {
	n := k.integer(key, -1)
	if k.err == nil && n < 1 {
		k.err = fmt.Errorf("gguf: %s: metadata %q is missing or 0", k.f.path, k.arch+"."+key)
	}
	return n
}

// must refuses a value other than the one that means nothing special.
func (k *keys) must(key string, want int) {
	if n := k.integer(key, want); k.err == nil && n != want {
		k.err = fmt.Errorf("gguf: %s: metadata %q is %d; heddle computes %d only", k.f.path, k.arch+"."+key, n, want)
	}
}

// float is a float32 of the file as the decimal its author wrote: 1e-05, not 9.999999747378752e-06.
func (k *keys) float(key string, missing float64) float64 {
	key = k.arch + "." + key
	if k.err != nil || !k.f.Has(key) {
		return missing
	}
	x, err := k.f.Float(key)
	k.err = err
	if d, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', -1, 32), 64); err == nil {
		x = d
	}
	return x
}

// match checks the tensors against the parameters, both ways.
func (m *Model) match() error {
	asked := map[string]bool{"rope_freqs.weight": true}
	for _, p := range m.Config.Params() {
		name := tensorName(p)
		asked[name] = true
		i, ok := m.File.byName[name]
		if !ok {
			return fmt.Errorf("gguf: %s has no tensor %q (%s)", m.File.path, name, p.Ours())
		}
		if got := m.File.tensors[i].Shape; !slices.Equal(got, p.Shape) {
			return fmt.Errorf("gguf: %s: tensor %q is %v, the metadata makes it %v", m.File.path, name, got, p.Shape)
		}
	}
	for _, t := range m.File.tensors {
		if !asked[t.Name] {
			return fmt.Errorf("gguf: %s: tensor %.100q belongs to no parameter of %s", m.File.path, t.Name, m.Config.Family)
		}
	}
	return nil
}

// tensorName is llama.cpp's name of a parameter.
func tensorName(p hf.Param) string {
	name := map[hf.Role]string{hf.Embed: "token_embd", hf.FinalNorm: "output_norm", hf.Head: "output", hf.AttnNorm: "attn_norm", hf.Q: "attn_q", hf.K: "attn_k", hf.V: "attn_v",
		hf.O: "attn_output", hf.QNorm: "attn_q_norm", hf.KNorm: "attn_k_norm", hf.MLPNorm: "ffn_norm", hf.Gate: "ffn_gate", hf.Up: "ffn_up", hf.Down: "ffn_down"}
	base, kind := string(p.Role), ".weight"
	if weight, ok := strings.CutSuffix(base, "_bias"); ok {
		base, kind = weight, ".bias"
	}
	if p.Layer >= 0 {
		return fmt.Sprintf("blk.%d.%s%s", p.Layer, name[hf.Role(base)], kind)
	}
	return name[hf.Role(base)] + kind
}

// Float32s reads a parameter of the model, dequantised, row-major in p.Shape, in the order of rows that transformers uses.
func (m *Model) Float32s(p hf.Param) ([]float32, error) {
	t, err := m.File.Tensor(tensorName(p))
	if err != nil {
		return nil, err
	}
	v, err := t.Float32s()
	if err != nil || m.Config.Family != hf.Llama {
		return v, err
	}
	switch p.Role {
	case hf.Q, hf.QBias, hf.K, hf.KBias:
		return halves(v, p.Shape[0], m.Config.HeadDim), nil
	}
	return v, nil
}

// halves undoes llama.cpp's order of the rows of a llama's q and k: it keeps the two rows of a rotated pair side by side (2i, 2i+1), transformers
// half a head apart (i, i + D/2).
func halves(v []float32, rows, headDim int) []float32 {
	width, half := len(v)/rows, headDim/2
	out := make([]float32, len(v))
	for r := range rows {
		head, side, i := r/headDim, r%headDim/half, r%half
		from := head*headDim + 2*i + side
		copy(out[r*width:(r+1)*width], v[from*width:(from+1)*width])
	}
	return out
}

// llama3 recovers Llama 3.1's RoPE scaling. A file keeps its result, a divisor a frequency; the rule's parameters are those of all published models
// but for the factor, which is the largest divisor. If the rule with these does not give the divisors, the file is refused.
func (f *File) llama3(c hf.Config) (*hf.Llama3, error) {
	if _, ok := f.byName["rope_freqs.weight"]; !ok {
		return nil, nil
	}
	t, _ := f.Tensor("rope_freqs.weight")
	if t.Len() != c.HeadDim/2 {
		return nil, fmt.Errorf("gguf: %s: rope_freqs.weight has %d elements, want %d", f.path, t.Len(), c.HeadDim/2)
	}
	divisors, err := t.Float32s()
	if err != nil {
		return nil, err
	}
	l := &hf.Llama3{Factor: float64(slices.Max(divisors)), Low: 1, High: 4, OriginalPositions: 8192}
	for i, got := range divisors {
		turns := float64(l.OriginalPositions) * math.Pow(c.Rope.Theta, -2*float64(i)/float64(c.HeadDim)) / (2 * math.Pi)
		keep := min(1, max(0, (turns-l.Low)/(l.High-l.Low))) // 1: the frequency stays
		want := 1 / ((1-keep)/l.Factor + keep)
		if !(math.Abs(float64(got)-want) <= 1e-4*want) { // the file holds float32 of float32 arithmetic
			return nil, fmt.Errorf("gguf: %s: rope_freqs.weight[%d] is %g, Llama 3's rule gives %g; hint: this RoPE scaling is not supported", f.path, i, got, want)
		}
	}
	return l, nil
}
