package parity

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/model"
	"heddle/model/hf"
	"heddle/optim"
	"heddle/parallel"
	"heddle/param"
	"heddle/tensor"
	"heddle/train"
)

// TensorError is how far one tensor is from the peer's: max|a−b| ÷ max|b|.
type TensorError struct {
	Name  string  `json:"name"`
	Error float64 `json:"error"`
}

// Verification is a layout's distance from a peer's answers.
type Verification struct {
	Dir      string        `json:"dir"`
	Layout   string        `json:"layout"`
	DType    string        `json:"dtype"`
	Logits   float64       `json:"logits"`
	Loss     float64       `json:"loss"`
	GradNorm float64       `json:"grad_norm"`
	Losses   float64       `json:"adamw_losses"` // worst of the three, before each step
	Grad     TensorError   `json:"worst_grad"`
	After    TensorError   `json:"worst_weight"` // over elements whose first gradient is at least 1e-5 of the model's largest
	Rest     float64       `json:"rest_abs"`     // largest absolute difference of the other elements after three steps
	Share    float64       `json:"share"`        // of elements that After is over
	Tensors  []TensorError `json:"tensors"`
}

// The rule: an error of a tensor is max|a−b| ÷ max|b|. transformers computes norms, RoPE tables and softmaxes in float32, which
// is what the float64 limits leave room for.
const (
	limitF64, limitAfterF64 = 2e-6, 5e-6
	limitF32, limitAfterF32 = 1e-5, 2e-5
	limitRest               = 1e-3

	// bf16 has 8 bits: one rounding of an activation is 2⁻⁹ of it, and the worst element of a gradient has gone through tens of them, most of a size with the
	// tensor's largest. After three steps of Adam an element whose gradient's sign is noise is off by as much as the steps are long, 3e-3 of lr 1e-3 each.
	limitBF16, limitAfterBF16 = 8e-2, 8e-3
)

// Errors are v's errors by class.
func (v *Verification) Errors() Errors {
	return Errors{v.Logits, v.Loss, v.GradNorm, v.Losses, v.Grad.Error, v.After.Error, v.Rest}
}

// Within tells whether v keeps the rule, or, where limit is not 0, whether no class is beyond it.
func (v *Verification) Within(limit float64) bool {
	after, rest := limit, limit
	switch {
	case limit != 0:
	case v.DType == "f32":
		limit, after, rest = limitF32, limitAfterF32, limitRest
	case v.DType == "bf16":
		limit, after, rest = limitBF16, limitAfterBF16, limitAfterBF16
	default:
		limit, after, rest = limitF64, limitAfterF64, limitRest
	}
	return max(v.Logits, v.Loss, v.GradNorm, v.Losses, v.Grad.Error) <= limit && v.After.Error <= after && v.Rest <= rest
}

// Verify runs the model of a golden folder under a layout and compares logits, loss, gradients, their norm, and losses and
// weights of three AdamW steps with the folder's expected.safetensors.
func Verify(dir string, l parallel.Layout, on train.Machine) (*Verification, error) {
	g, err := openPeer(dir)
	if err != nil {
		return nil, err
	}
	defer g.close()
	s, err := parallel.New(l, parallel.Heads{G: g.cfg.KV, R: g.cfg.Rep()})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Fits(g.b, g.s, g.cfg.MLP), g.cfg.Fits(g.s)); err != nil {
		return nil, err
	}
	got := &answers{grads: map[string][]float64{}, after: map[string][]float64{}, logits: make([]float64, g.b*g.s*g.cfg.Vocab)}
	err = on.Planned(s.Mesh.Size(), func(on train.Machine) error {
		return train.Ranks(s.Mesh, on, func(r *train.Rank) error { return got.rank(r, g, s) })
	})
	if err != nil {
		return nil, err
	}
	v := &Verification{Dir: dir, Layout: l.Name(), DType: on.Type.String()}
	return v, g.judge(v, got)
}

// PeerSchemes is Schemes for the model and batch of a golden folder.
func PeerSchemes(dir string, names []string) ([]Scheme, error) {
	g, err := openPeer(dir)
	if err != nil {
		return nil, err
	}
	defer g.close()
	return Schemes(names, g.cfg, g.b, g.s)
}

// peer is an open golden folder.
type peer struct {
	dir    string
	cfg    model.Config
	b, s   int
	ids    []int32
	labels []int32
	mask   []float32
	model  *pretrained.Model
	file   *safetensors.File
}

func openPeer(dir string) (p *peer, err error) {
	p = &peer{dir: dir}
	if p.model, err = pretrained.Open(dir); err != nil {
		return nil, err
	}
	if p.cfg, err = model.FromHF(p.model.Config); err != nil {
		p.model.Close()
		return nil, err
	}
	if p.file, err = safetensors.Open(filepath.Join(dir, "expected.safetensors")); err != nil {
		p.model.Close()
		return nil, err
	}
	if err := p.batch(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *peer) close() {
	p.model.Close()
	p.file.Close()
}

func (p *peer) batch() error {
	ids, err := p.ints("input_ids")
	if err != nil {
		return err
	}
	labels, err := p.ints("labels")
	if err != nil {
		return err
	}
	t, err := p.file.Tensor("input_ids")
	if err != nil {
		return err
	}
	if len(t.Shape) != 2 || len(labels) != len(ids) {
		return fmt.Errorf("parity: %s: input_ids is %v with %d labels, want [B, S] with as many labels", p.dir, t.Shape, len(labels))
	}
	p.b, p.s = t.Shape[0], t.Shape[1]
	for i, l := range labels {
		on := float32(1)
		if l < 0 {
			on = 0
		}
		if ids[i] < 0 || int(ids[i]) >= p.cfg.Vocab || int(l) >= p.cfg.Vocab {
			return fmt.Errorf("parity: %s: token %d or label %d is outside the vocabulary of %d", p.dir, ids[i], l, p.cfg.Vocab)
		}
		p.ids, p.labels, p.mask = append(p.ids, int32(ids[i])), append(p.labels, int32(l)), append(p.mask, on)
	}
	return nil
}

func (p *peer) ints(name string) ([]int64, error) {
	t, err := p.file.Tensor(name)
	if err != nil {
		return nil, err
	}
	return t.Int64s()
}

func (p *peer) floats(name string) ([]float64, error) {
	t, err := p.file.Tensor(name)
	if err != nil {
		return nil, err
	}
	return t.Float64s()
}

// answers are ours, whole.
type answers struct {
	mu           sync.Mutex
	logits       []float64
	losses       [3]float64
	norm         float64
	grads, after map[string][]float64 // by our names
}

// peerSteps are the numbers of the peers' three steps: weight decay on all parameters.
func peerSteps() optim.Config {
	return optim.Config{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, DecayAll: true, Clip: 1}
}

func (a *answers) rank(r *train.Rank, p *peer, s *parallel.Scheme) error {
	m, err := model.New(p.cfg, s, r.Dev, r.Grp)
	if err != nil {
		return err
	}
	if err := m.Shards.Load(p.model.Source()); err != nil {
		return err
	}
	b := m.NewBatch(p.b, p.s, p.ids, p.labels, p.mask)
	a.keepLogits(r, p, s, m.Logits(b))
	opt := optim.New(peerSteps(), r.Dev, m.Shards)
	for i := range a.losses {
		sc := r.Dev.Open()
		m.Shards.ZeroGrads()
		count := m.Count(b)
		sum := m.Total(m.Gradients(b, count))
		loss := r.Dev.Read(sum, 0) / r.Dev.Read(count, 1)
		norm := opt.Step(1e-3)
		if i == 0 {
			a.keep(a.grads, r, m, func(p parallel.Piece) tensor.Tensor { return p.Grad })
		}
		if r.Index == 0 {
			if a.losses[i] = loss; i == 0 {
				a.norm = norm
			}
		}
		r.Dev.Close(sc)
	}
	a.keep(a.after, r, m, func(p parallel.Piece) tensor.Tensor { return p.Weight })
	return nil
}

func (a *answers) keepLogits(r *train.Rank, p *peer, s *parallel.Scheme, logits tensor.Tensor) {
	host := r.Dev.Download(logits)
	dims := []int{p.b, p.s, s.VocabPad(p.cfg.Vocab)}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := 0
	param.Each(dims, param.Cut(s.Mesh, r.Index, "bsv", dims, logits.At), func(global int) {
		if v := global % dims[2]; v < p.cfg.Vocab {
			a.logits[global/dims[2]*p.cfg.Vocab+v] = host[i]
		}
		i++
	})
}

func (a *answers) keep(into map[string][]float64, r *train.Rank, m *model.Model, of func(parallel.Piece) tensor.Tensor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range m.Shards.Pieces() {
		if into[p.Row.Name] == nil {
			into[p.Row.Name] = make([]float64, p.Row.Elems())
		}
		whole, host := into[p.Row.Name], r.Dev.Download(of(p))
		m.Shards.Global(p, func(i, global int) {
			if global < len(whole) {
				whole[global] = host[i]
			}
		})
	}
}

// stored puts our parameters together as the peer's tensors: gpt2 keeps q, k and v in one.
func (p *peer) stored(ours map[string][]float64) (map[string][]float64, error) {
	out := map[string][]float64{}
	for _, x := range p.model.Params {
		if out[x.Name] == nil {
			n := 1
			for _, d := range x.Stored {
				n *= d
			}
			out[x.Name] = make([]float64, n)
		}
		if ours[x.Ours()] == nil {
			return nil, fmt.Errorf("parity: the model has no parameter %s (%s)", x.Ours(), x.Name)
		}
		hf.Scatter(x, out[x.Name], ours[x.Ours()])
	}
	return out, nil
}

func (p *peer) judge(v *Verification, got *answers) error {
	var err error
	if got.grads, err = p.stored(got.grads); err != nil {
		return err
	}
	if got.after, err = p.stored(got.after); err != nil {
		return err
	}
	logits, err := p.floats("logits")
	if err != nil {
		return err
	}
	loss, err := p.floats("loss")
	if err != nil {
		return err
	}
	losses, err := p.floats("adamw_losses")
	if err != nil {
		return err
	}
	norm, err := p.floats("grad_norm")
	if err != nil {
		return err
	}
	v.Logits, v.Loss, v.Losses, v.GradNorm = relative(got.logits, logits), relative(got.losses[:1], loss), relative(got.losses[:], losses), relative([]float64{got.norm}, norm)
	grads := map[string][]float64{}
	top := 0.0
	for name := range got.grads {
		if grads[name], err = p.floats("grad." + name); err != nil {
			return err
		}
		top = max(top, largest(grads[name]))
		e := TensorError{"grad." + name, relative(got.grads[name], grads[name])}
		v.Tensors = append(v.Tensors, e)
		if e.Error > v.Grad.Error {
			v.Grad = e
		}
	}
	if err := p.judgeWeights(v, got, grads, 1e-5*top); err != nil {
		return err
	}
	sort.Slice(v.Tensors, func(i, j int) bool { return strings.Compare(v.Tensors[i].Name, v.Tensors[j].Name) < 0 })
	return nil
}

// judgeWeights compares stepped weights where the first gradient is large enough for Adam not to amplify its noise.
func (p *peer) judgeWeights(v *Verification, got *answers, grads map[string][]float64, floor float64) error {
	clear, all := 0, 0
	for name, a := range got.after {
		b, err := p.floats("after3." + name)
		if err != nil {
			return err
		}
		diff, scale := 0.0, largest(b)
		for i, g := range grads[name] {
			d := math.Abs(a[i] - b[i])
			if all++; math.Abs(g) >= floor {
				clear++
				diff = max(diff, d)
			} else {
				v.Rest = max(v.Rest, d)
			}
		}
		e := TensorError{"after3." + name, diff / scale}
		v.Tensors = append(v.Tensors, e)
		if e.Error > v.After.Error {
			v.After = e
		}
	}
	v.Share = float64(clear) / float64(all)
	return nil
}

// relative is max|a−b| ÷ max|b|, infinite where sizes differ.
func relative(a, b []float64) float64 {
	if len(a) != len(b) || len(b) == 0 {
		return math.Inf(1)
	}
	d := 0.0
	for i := range a {
		if math.IsNaN(a[i]) {
			return math.Inf(1)
		}
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d / largest(b)
}

func largest(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}
