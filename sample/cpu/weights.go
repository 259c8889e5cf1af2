package cpu

import (
	"fmt"
	"slices"

	"heddle/compute/cpu/blas"
	"heddle/model/hf"
)

// Read gives a parameter's values, row-major in p.Shape. The result is not kept.
type Read func(p hf.Param) ([]float32, error)

// linear is y = x·Wᵀ + bias of one or several matrices side by side.
type linear struct {
	w    blas.PackedB[float32] // [in, out]
	bias []float32             // [out]; empty: none
}

// norm is RMSNorm, or with a bias LayerNorm.
type norm struct{ w, bias []float32 }

// layer is the weights of one layer. Letters as in package model.
type layer struct {
	norm1, norm2 norm      // [H]
	qNorm, kNorm []float32 // [D]; empty: none
	qkv          linear    // H → A·D + 2·G·D
	o            linear    // A·D → H
	gate         linear    // H → F; empty: GELU, nothing gates
	up           linear    // H → F
	down         linear    // F → H
}

// weights is the whole model.
type weights struct {
	layers   []layer
	norm     norm                   // [H]
	embed    *blas.PackedB[float32] // [H, V]
	position []float32              // [Positions, H]; empty: RoPE
	head     linear                 // H → V; its matrix is the embedding's where they are tied
}

// loader reads parameters by role; the first error stays.
type loader struct {
	pool   *blas.Pool
	read   Read
	half   bool
	params map[string]hf.Param
	err    error
}

// Load puts the weights of a model in place of those before and stamps what follows with version. Sequences keep the keys and
// values that the old weights computed. After an error the decoder is of no use.
func (d *Decoder) Load(read Read, version uint64) error {
	l := &loader{pool: d.pool, half: d.BF16, read: read, params: map[string]hf.Param{}}
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
	l.norm(&w.norm, -1, hf.FinalNorm)
	l.vector(&w.position, -1, hf.Position)
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
	l.norm(&y.norm1, i, hf.AttnNorm)
	l.norm(&y.norm2, i, hf.MLPNorm)
	l.vector(&y.qNorm, i, hf.QNorm)
	l.vector(&y.kNorm, i, hf.KNorm)
	l.linear(&y.qkv, i, hf.Q, hf.K, hf.V)
	l.linear(&y.o, i, hf.O)
	if d.cfg.Activation == hf.SiLU {
		l.linear(&y.gate, i, hf.Gate)
	}
	l.linear(&y.up, i, hf.Up)
	l.linear(&y.down, i, hf.Down)
}

// has tells whether the family has a parameter.
func (l *loader) has(layer int, role hf.Role) bool {
	_, ok := l.params[hf.Param{Role: role, Layer: layer, Expert: -1}.Ours()]
	return ok
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

// vector reads what a family may have or not.
func (l *loader) vector(to *[]float32, layer int, role hf.Role) {
	if *to = (*to)[:0]; l.has(layer, role) {
		v, _ := l.values(layer, role)
		*to = append(*to, v...)
	}
}

func (l *loader) norm(to *norm, layer int, role hf.Role) {
	l.vector(&to.w, layer, role)
	l.vector(&to.bias, layer, role+"_bias")
}

// linear packs the matrices [out, in] of some roles side by side. Each column of a product has the bits that the matrix alone
// would give it.
func (l *loader) linear(to *linear, layer int, roles ...hf.Role) {
	var all []float32
	in, out := 0, 0
	to.bias = to.bias[:0]
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
		if l.has(layer, r+"_bias") {
			b, _ := l.values(layer, r+"_bias")
			to.bias = append(to.bias, b...)
		}
	}
	if n := len(to.bias); n != 0 && n != out && l.err == nil {
		l.err = fmt.Errorf("sample: layer %d: %d biases for %d outputs", layer, n, out)
	}
	to.w.K, to.w.N = in, out
	if blas.PackB(l.pool, &to.w, all, in, true); l.half {
		to.w.Halve()
	}
}

// WeightBytes is the memory of the weights that a token of a batch of one reads.
func (d *Decoder) WeightBytes() int {
	n := 4 * len(d.w.norm.w)
	matrix := func(l *linear) { n += 4*(len(l.w.Data)+len(l.bias)) + 2*len(l.w.Half) }
	matrix(&d.w.head)
	for i := range d.w.layers {
		w := &d.w.layers[i]
		n += 4 * (len(w.norm1.w) + len(w.norm2.w) + len(w.qNorm) + len(w.kNorm))
		for _, l := range []*linear{&w.qkv, &w.o, &w.gate, &w.up, &w.down} {
			matrix(l)
		}
	}
	return n
}
