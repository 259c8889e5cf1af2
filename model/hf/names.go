package hf

import "fmt"

// Role is what a parameter does in the model, in our words.
type Role string

// The roles outside layers, then those inside. A role ending in _bias goes with the weight before it.
const (
	Embed         Role = "embed"     // [V, H]
	Position      Role = "position"  // [Positions, H], learned
	FinalNorm     Role = "norm"      // [H]
	FinalNormBias Role = "norm_bias" // [H]
	Head          Role = "head"      // [V, H]; absent when tied

	AttnNorm     Role = "attention.norm"      // [H]
	AttnNormBias Role = "attention.norm_bias" // [H]
	Q            Role = "attention.q"         // [A·D, H]
	QBias        Role = "attention.q_bias"    // [A·D]
	K            Role = "attention.k"         // [G·D, H]
	KBias        Role = "attention.k_bias"    // [G·D]
	V            Role = "attention.v"         // [G·D, H]
	VBias        Role = "attention.v_bias"    // [G·D]
	QNorm        Role = "attention.q_norm"    // [D]
	KNorm        Role = "attention.k_norm"    // [D]
	O            Role = "attention.o"         // [H, A·D]
	OBias        Role = "attention.o_bias"    // [H]
	MLPNorm      Role = "mlp.norm"            // [H]
	MLPNormBias  Role = "mlp.norm_bias"       // [H]
	Gate         Role = "mlp.gate"            // [F, H]
	GateBias     Role = "mlp.gate_bias"       // [F]
	Up           Role = "mlp.up"              // [F, H]
	UpBias       Role = "mlp.up_bias"         // [F]
	Down         Role = "mlp.down"            // [H, F]
	DownBias     Role = "mlp.down_bias"       // [H]
	Router       Role = "mlp.router"          // [E, H]
)

// Param is one parameter of a model: what it is to us, and where transformers keeps it.
type Param struct {
	Role   Role
	Layer  int   // -1: outside layers
	Expert int   // -1: not an expert's
	Shape  []int // ours; matrices are [out, in]

	Name       string // transformers' name
	Stored     []int  // shape of the tensor of that name
	Transposed bool   // the tensor is [in, out] (gpt2's Conv1D)
	From       int    // ours is From, From+1, … of the tensor's last dim (gpt2 keeps q, k, v side by side); 0 and as wide as the tensor otherwise
}

// Ours is the parameter's name in heddle: its role, after "layers.N." and before ".expert.N" where it has them.
func (p Param) Ours() string {
	s := string(p.Role)
	if p.Expert >= 0 {
		s = fmt.Sprintf("%s.expert.%d", s, p.Expert)
	}
	if p.Layer >= 0 {
		s = fmt.Sprintf("layers.%d.%s", p.Layer, s)
	}
	return s
}

// Whole tells whether the parameter is the stored tensor as it is.
func (p Param) Whole() bool {
	if p.Transposed || len(p.Shape) != len(p.Stored) {
		return false
	}
	for i := range p.Shape {
		if p.Shape[i] != p.Stored[i] {
			return false
		}
	}
	return true
}

// Params lists the parameters of a model in the order of its forward pass. The list is as long as the model says: L and E are bounded by Parse.
func (c Config) Params() []Param {
	if c.Family == GPT2 {
		return c.gpt2Params()
	}
	list := []Param{plain(Embed, -1, "model.embed_tokens.weight", c.Vocab, c.Hidden)}
	for l := range c.Layers {
		list = c.llamaLayer(list, l)
	}
	list = append(list, plain(FinalNorm, -1, "model.norm.weight", c.Hidden))
	if !c.Tied {
		list = append(list, plain(Head, -1, "lm_head.weight", c.Vocab, c.Hidden))
	}
	return list
}

func plain(role Role, layer int, name string, shape ...int) Param {
	return Param{Role: role, Layer: layer, Expert: -1, Shape: shape, Name: name, Stored: shape}
}

func (c Config) llamaLayer(list []Param, l int) []Param {
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	add := func(role Role, name string, shape ...int) {
		list = append(list, plain(role, l, fmt.Sprintf("model.layers.%d.%s", l, name), shape...))
	}
	linear := func(role Role, name string, bias bool, out, in int) {
		add(role, name+".weight", out, in)
		if bias {
			add(role+"_bias", name+".bias", out)
		}
	}
	add(AttnNorm, "input_layernorm.weight", h)
	linear(Q, "self_attn.q_proj", c.QKVBias, q, h)
	linear(K, "self_attn.k_proj", c.QKVBias, kv, h)
	linear(V, "self_attn.v_proj", c.QKVBias, kv, h)
	if c.QKNorm {
		add(QNorm, "self_attn.q_norm.weight", c.HeadDim)
		add(KNorm, "self_attn.k_norm.weight", c.HeadDim)
	}
	linear(O, "self_attn.o_proj", c.OBias, h, q)
	add(MLPNorm, "post_attention_layernorm.weight", h)
	if c.Experts.Count == 0 {
		linear(Gate, "mlp.gate_proj", c.MLPBias, c.MLP, h)
		linear(Up, "mlp.up_proj", c.MLPBias, c.MLP, h)
		linear(Down, "mlp.down_proj", c.MLPBias, h, c.MLP)
		return list
	}
	add(Router, "mlp.gate.weight", c.Experts.Count, h)
	for e := range c.Experts.Count {
		first := len(list)
		add(Gate, fmt.Sprintf("mlp.experts.%d.gate_proj.weight", e), c.Experts.MLP, h)
		add(Up, fmt.Sprintf("mlp.experts.%d.up_proj.weight", e), c.Experts.MLP, h)
		add(Down, fmt.Sprintf("mlp.experts.%d.down_proj.weight", e), h, c.Experts.MLP)
		for i := first; i < len(list); i++ {
			list[i].Expert = e
		}
	}
	return list
}

func (c Config) gpt2Params() []Param {
	h := c.Hidden
	list := []Param{plain(Embed, -1, "transformer.wte.weight", c.Vocab, h), plain(Position, -1, "transformer.wpe.weight", c.Positions, h)}
	for l := range c.Layers {
		at := fmt.Sprintf("transformer.h.%d.", l)
		linear := func(role Role, name string, out, in, from, width int) { // the tensor is [in, width]; ours are out columns of it
			list = append(list,
				Param{Role: role, Layer: l, Expert: -1, Shape: []int{out, in}, Name: at + name + ".weight", Stored: []int{in, width}, Transposed: true, From: from},
				Param{Role: role + "_bias", Layer: l, Expert: -1, Shape: []int{out}, Name: at + name + ".bias", Stored: []int{width}, From: from})
		}
		list = append(list, plain(AttnNorm, l, at+"ln_1.weight", h), plain(AttnNormBias, l, at+"ln_1.bias", h))
		linear(Q, "attn.c_attn", h, h, 0, 3*h)
		linear(K, "attn.c_attn", h, h, h, 3*h)
		linear(V, "attn.c_attn", h, h, 2*h, 3*h)
		linear(O, "attn.c_proj", h, h, 0, h)
		list = append(list, plain(MLPNorm, l, at+"ln_2.weight", h), plain(MLPNormBias, l, at+"ln_2.bias", h))
		linear(Up, "mlp.c_fc", c.MLP, h, 0, c.MLP)
		linear(Down, "mlp.c_proj", h, c.MLP, 0, h)
	}
	list = append(list, plain(FinalNorm, -1, "transformer.ln_f.weight", h), plain(FinalNormBias, -1, "transformer.ln_f.bias", h))
	if !c.Tied {
		list = append(list, plain(Head, -1, "lm_head.weight", c.Vocab, h))
	}
	return list
}
