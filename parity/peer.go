package parity

import (
	"fmt"
	"path/filepath"

	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/model"
	"heddle/model/hf"
)

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
	steps  bool // there are gradients and three steps, not logits and loss alone
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
	for _, t := range p.file.Tensors() {
		p.steps = p.steps || t.Name == "grad_norm" || t.Name == "adamw_losses"
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
	if len(t.Shape) != 2 || len(labels) != len(ids) || len(ids) == 0 {
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
