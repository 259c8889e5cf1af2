package parity

import (
	"errors"
	"sync"

	"heddle/model"
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
	Steps    bool          `json:"steps"`        // the folder has gradients and three steps, not logits and loss alone
	Tensors  []TensorError `json:"tensors"`
}

// The rule: an error of a tensor is max|a−b| ÷ max|b|. transformers computes norms, RoPE tables and softmaxes in float32, which
// is what the float64 limits leave room for.
const (
	limitF64, limitAfterF64 = 2e-6, 5e-6
	limitF32, limitAfterF32 = 1e-5, 2e-5
	limitRest               = 1e-3

	// bf16 has 8 bits: one rounding of an activation is 2⁻⁹ of it, and the worst element of a gradient has gone through tens of them, most of a size with the
	// tensor's largest. An element whose gradient is noise is off by up to the
	// length of three steps of Adam, 3e-3 at lr 1e-3 each way, which is 6e-2 of a tensor whose largest weight is 0.1.
	limitBF16, limitAfterBF16 = 8e-2, 6e-2
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
// weights of three AdamW steps with the folder's expected.safetensors; logits and loss alone where it has no more.
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
	v := &Verification{Dir: dir, Layout: l.Name(), DType: on.Type.String(), Steps: g.steps}
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
	if !p.steps {
		if loss := r.Dev.Read(m.Total(m.Loss(b)), 0) / r.Dev.Read(m.Count(b), 1); r.Index == 0 {
			a.losses[0] = loss
		}
		return nil
	}
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
