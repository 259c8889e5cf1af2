package parity

import (
	"bytes"
	"fmt"
	"os"

	"heddle/checkpoint/pretrained"
	"heddle/checkpoint/safetensors"
	"heddle/train"
)

// Errors are a layout's worst errors by class, or a folder's over its layouts.
type Errors struct {
	Logits   float64 `json:"logits"`
	Loss     float64 `json:"loss"`
	GradNorm float64 `json:"grad_norm"`
	Losses   float64 `json:"adamw_losses"` // before each of three steps
	Grads    float64 `json:"grads"`
	Weights  float64 `json:"weights"`  // after three steps, over elements whose first gradient is at least 1e-5 of the model's largest
	Rest     float64 `json:"rest_abs"` // largest absolute difference of the other elements
}

// worst is the larger of each.
func (e Errors) worst(f Errors) Errors {
	return Errors{max(e.Logits, f.Logits), max(e.Loss, f.Loss), max(e.GradNorm, f.GradNorm), max(e.Losses, f.Losses), max(e.Grads, f.Grads),
		max(e.Weights, f.Weights), max(e.Rest, f.Rest)}
}

// FolderReport is a golden folder under several layouts.
type FolderReport struct {
	Dir       string          `json:"dir"`
	OK        bool            `json:"ok"`
	DType     string          `json:"dtype"`
	Worst     Errors          `json:"worst"`
	Share     float64         `json:"share"`      // of elements that Worst.Weights is over
	RoundTrip int             `json:"round_trip"` // tensors that our writer gives back byte for byte
	Layouts   []*Verification `json:"layouts"`
	Refused   []Refusal       `json:"refused,omitempty"`
}

// Refusal is a layout that the folder's shapes do not allow.
type Refusal struct {
	Layout string `json:"layout"`
	Why    string `json:"why"`
}

// Usual are the layouts that VerifyFolder tries where none is named: those that a folder's shapes do not allow are refused.
func Usual() []string {
	return []string{"single", "dp2", "fsdp2", "tp2", "megatron2", "ulysses2", "tp4", "megatron4", "ulysses4", "dp2-fsdp2", "fsdp2-tp2", "fsdp2-megatron2", "fsdp2-ulysses2",
		"ulysses2-megatron2"}
}

// VerifyFolder verifies a folder under layouts by name, or under the usual ones that it allows where there is no name. limit is
// the largest error of any class; 0 stands for the rule of this package.
func VerifyFolder(dir string, names []string, on train.Machine, limit float64) (*FolderReport, error) {
	f := &FolderReport{Dir: dir, OK: true, DType: on.Type.String()}
	var schemes []Scheme
	tries := names
	if len(names) == 0 {
		tries = Usual()
	}
	for _, name := range tries {
		s, err := PeerSchemes(dir, []string{name})
		if refused, ok := err.(*SchemeError); ok && len(names) == 0 {
			f.Refused = append(f.Refused, Refusal{name, refused.Err.Error()})
			continue
		}
		if err != nil {
			return nil, err
		}
		schemes = append(schemes, s...)
	}
	for _, s := range schemes {
		v, err := Verify(dir, s.Layout, on)
		if err != nil {
			return nil, fmt.Errorf("%s under %s: %w", dir, s.Name, err)
		}
		f.Layouts = append(f.Layouts, v)
		f.Worst, f.Share = f.Worst.worst(v.Errors()), v.Share
		f.OK = f.OK && v.Within(limit)
	}
	var err error
	f.RoundTrip, err = roundTrip(dir)
	return f, err
}

// roundTrip writes the folder's weights again and counts the tensors; one that comes back with other bytes is an error.
func roundTrip(dir string) (int, error) {
	m, err := pretrained.Open(dir)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	was, err := safetensors.OpenModel(dir)
	if err != nil {
		return 0, err
	}
	defer was.Close()
	tmp, err := os.MkdirTemp("", "heddle-verify-")
	if err != nil {
		return 0, fmt.Errorf("parity: %w", err)
	}
	defer os.RemoveAll(tmp)
	first, err := was.Tensor(m.Params[0].Name)
	if err != nil {
		return 0, err
	}
	if err := pretrained.Write(tmp, m.Config, first.DType, pretrained.MaxShard, m.Float32s); err != nil {
		return 0, fmt.Errorf("parity: writing %s again: %w", dir, err)
	}
	is, err := safetensors.OpenModel(tmp)
	if err != nil {
		return 0, err
	}
	defer is.Close()
	return sameTensors(was, is)
}

func sameTensors(was, is *safetensors.Model) (int, error) {
	for _, name := range is.Names() {
		a, err := was.Tensor(name)
		if err != nil {
			return 0, err
		}
		b, err := is.Tensor(name)
		if err != nil {
			return 0, err
		}
		x, err := a.Bytes()
		if err != nil {
			return 0, err
		}
		y, err := b.Bytes()
		if err != nil {
			return 0, err
		}
		if a.DType != b.DType || !bytes.Equal(x, y) {
			return 0, fmt.Errorf("parity: tensor %s comes back from the writer as %s with other bytes, was %s", name, b.DType, a.DType)
		}
	}
	return len(is.Names()), nil
}
