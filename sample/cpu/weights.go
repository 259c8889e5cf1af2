package cpu

import (
	"fmt"
	"slices"

	"heddle/compute/cpu/blas"
	"heddle/model/hf"
)

// Read gives a parameter's values, row-major in p.Shape. The result is not kept.
type Read func(p hf.Param) ([]float32, error)

// linear is y = x·Wᵀ of one or several matrices side by side.
type linear struct {
	w   blas.PackedB[float32] // [in, out]
	out int
}

// layer is the weights of one layer. Letters as in package model.
type layer struct {
	norm1, norm2 []float32 // [H]
	qNorm, kNorm []float32 // [D]; nil: none
	qkv          linear    // H → A·D + 2·G·D
	o            linear    // A·D → H
	gateUp       linear    // H → 2·F
	down         linear    // F → H
}

// weights is the whole model.
type weights struct {
	layers []layer
	norm   []float32 // [H]
	embed  *blas.PackedB[float32]
	head   linear // H → V; its matrix is the embedding's where they are tied
}

// loader reads parameters by role; the first error stays.
type loader struct {
	pool   *blas.Pool
	read   Read
	params map[string]hf.Param
	err    error
}

// check refuses what the decoder does not compute.
func check(c hf.Config) error {
	switch {
	case c.Experts.Count > 0:
		return fmt.Errorf("sample: mixtures of experts are not built yet")
	case c.LayerNorm || c.Activation != hf.SiLU || c.LearnedPositions:
		return fmt.Errorf("sample: family %s is not built yet, want %s", c.Family, hf.Qwen3)
	case c.QKVBias || c.OBias || c.MLPBias:
		return fmt.Errorf("sample: projections with biases are not built yet")
	case c.Rope.Llama3 != nil:
		return fmt.Errorf("sample: llama3 RoPE is not built yet")
	}
	return nil
}

// Load puts the weights of a model in place of those before and stamps what follows with version. Sequences keep the keys and
// values that the old weights computed. After an error the decoder is of no use.
func (d *Decoder) Load(read Read, version uint64) error {
	l := &loader{pool: d.pool, read: read, params: map[string]hf.Param{}}
	for _, p := range d.cfg.Params() {
		l.params[p.Ours()] = p
	}
	w := &d.w
	if w.layers == nil {
		w.layers = make([]layer, d.cfg.Layers)
		w.embed = &blas.PackedB[float32]{}
	}
	for i := range w.layers {
		l.layer(d, &w.layers[i], i)
	}
	l.vector(&w.norm, -1, hf.FinalNorm)
	if d.cfg.Tied {
		l.linear(&w.head, -1, hf.Embed)
		w.embed = &w.head.w
	} else {
		l.linear(&w.head, -1, hf.Head)
		embed := linear{w: *w.embed}
		l.linear(&embed, -1, hf.Embed)
		*w.embed = embed.w
	}
	d.version = version
	return l.err
}

func (l *loader) layer(d *Decoder, y *layer, i int) {
	l.vector(&y.norm1, i, hf.AttnNorm)
	l.vector(&y.norm2, i, hf.MLPNorm)
	if d.cfg.QKNorm {
		l.vector(&y.qNorm, i, hf.QNorm)
		l.vector(&y.kNorm, i, hf.KNorm)
	}
	l.linear(&y.qkv, i, hf.Q, hf.K, hf.V)
	l.linear(&y.o, i, hf.O)
	l.linear(&y.gateUp, i, hf.Gate, hf.Up)
	l.linear(&y.down, i, hf.Down)
}

// values reads one parameter.
func (l *loader) values(layer int, role hf.Role) (v []float32, shape []int) {
	if l.err != nil {
		return nil, nil
	}
	name := hf.Param{Role: role, Layer: layer, Expert: -1}.Ours()
	p, ok := l.params[name]
	if !ok {
		l.err = fmt.Errorf("sample: the configuration has no parameter %s", name)
		return nil, nil
	}
	if v, l.err = l.read(p); l.err != nil {
		return nil, nil
	}
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	if len(v) != n {
		l.err = fmt.Errorf("sample: %s has %d elements, want %v", name, len(v), p.Shape)
	}
	return v, p.Shape
}

func (l *loader) vector(to *[]float32, layer int, role hf.Role) {
	v, _ := l.values(layer, role)
	*to = append((*to)[:0], v...)
}

// linear packs the matrices [out, in] of some roles side by side. Each column of a product has the bits that the matrix alone
// would give it.
func (l *loader) linear(to *linear, layer int, roles ...hf.Role) {
	var all []float32
	in, out := 0, 0
	for _, r := range roles {
		v, shape := l.values(layer, r)
		if l.err != nil {
			return
		}
		if out += shape[0]; len(roles) == 1 {
			all = v
		} else {
			all = append(slices.Grow(all, len(v)*len(roles)), v...)
		}
		in = shape[1]
	}
	to.w.K, to.w.N, to.out = in, out, out
	blas.PackB(l.pool, &to.w, all, in, true)
}
