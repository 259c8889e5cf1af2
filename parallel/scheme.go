// Package parallel is how a model is spread over ranks: seams, where a sub-block meets the residual stream [B, S/P, H] and
// where attention meets its heads, each beside its gradient; and shards, how parameters rest between uses.
//
// A scheme is a pair of seams on two axes. Read seam.go, then the schemes, a file each: tp.go, megatron.go, ulysses.go; then
// shards.go and settle.go.
package parallel

import (
	"fmt"

	"heddle/comm"
	"heddle/mesh"
	"heddle/tensor"
)

// Layout is how many ranks each axis has, and the form of sequence parallelism. 0 counts as 1.
type Layout struct {
	DP   int    `yaml:"dp" json:"dp"`     // data parallel: replicas of everything
	FSDP int    `yaml:"fsdp" json:"fsdp"` // data parallel with sharded weights, gradients and moments
	PP   int    `yaml:"pp" json:"pp"`     // pipeline stages
	CP   int    `yaml:"cp" json:"cp"`     // context parallel: tokens cut, weights whole; attention by Ulysses' all-to-all
	TP   int    `yaml:"tp" json:"tp"`     // tensor parallel: heads, MLP width and vocabulary cut
	SP   string `yaml:"sp" json:"sp"`     // "megatron": the residual stream is cut over the tp ranks; "ulysses": over the cp ranks; "none"
}

func (l Layout) fill() Layout {
	for _, n := range []*int{&l.DP, &l.FSDP, &l.PP, &l.CP, &l.TP} {
		if *n == 0 {
			*n = 1
		}
	}
	if l.SP == "" {
		l.SP = "none"
	}
	return l
}

// World is the number of ranks.
func (l Layout) World() int {
	l = l.fill()
	return l.DP * l.FSDP * l.PP * l.CP * l.TP
}

// Scheme is a layout on a mesh for a model with G key/value heads and R query heads to each.
type Scheme struct {
	Layout   Layout
	Mesh     *mesh.Mesh
	Data     mesh.Set // axes that cut the batch: dp, fsdp
	FSDP     mesh.Set
	TP       comm.Heads // tp: key/value heads over KV; where they are fewer than ranks, query heads of one over Rep
	CP       comm.Heads
	Residual Residual
	Attend   Attend
}

// Heads are the sizes that a layout must divide.
type Heads struct{ G, R int }

// New checks the layout and makes its mesh. The nearest legal size stands in the error.
func New(l Layout, h Heads) (*Scheme, error) {
	l = l.fill()
	if err := l.check(); err != nil {
		return nil, err
	}
	tpKV, tpRep, err := factor("tp", l.TP, h)
	if err != nil {
		return nil, err
	}
	cpKV, cpRep, err := factor("cp", l.CP, Heads{h.G / tpKV, h.R / tpRep})
	if err != nil {
		return nil, err
	}
	m, err := mesh.New(mesh.Axis{Name: "dp", Size: l.DP}, mesh.Axis{Name: "fsdp", Size: l.FSDP},
		mesh.Axis{Name: "cp.kv", Size: cpKV}, mesh.Axis{Name: "cp.rep", Size: cpRep}, mesh.Axis{Name: "tp.kv", Size: tpKV}, mesh.Axis{Name: "tp.rep", Size: tpRep})
	if err != nil {
		return nil, err
	}
	s := &Scheme{Layout: l, Mesh: m, Data: m.Find("dp", "fsdp"), FSDP: m.Find("fsdp"),
		TP: comm.Heads{KV: m.Find("tp.kv"), Rep: m.Find("tp.rep")}, CP: comm.Heads{KV: m.Find("cp.kv"), Rep: m.Find("cp.rep")}}
	switch tp := s.TP.KV | s.TP.Rep; {
	case tp == 0:
		s.Residual = single{}
	case l.SP == "megatron":
		s.Residual = megatron{tp}
	default:
		s.Residual = tensorParallel{tp}
	}
	s.Attend = local{}
	if l.CP > 1 {
		s.Attend = ulysses{s.CP}
	}
	return s, nil
}

func (l Layout) check() error {
	for _, x := range []struct {
		name string
		n    int
	}{{"dp", l.DP}, {"fsdp", l.FSDP}, {"pp", l.PP}, {"cp", l.CP}, {"tp", l.TP}} {
		if x.n < 1 {
			return fmt.Errorf("parallel: %s is %d, want 1 or more", x.name, x.n)
		}
	}
	switch {
	case l.PP > 1:
		return fmt.Errorf("parallel: pp is %d: pipelines are not built yet; hint: use pp 1 and more fsdp or tp", l.PP)
	case l.SP != "none" && l.SP != "megatron" && l.SP != "ulysses":
		return fmt.Errorf("parallel: sp is %q, want none, megatron or ulysses", l.SP)
	case l.SP == "megatron" && l.TP == 1:
		return fmt.Errorf("parallel: sp megatron has no effect with tp 1; hint: set tp to 2 or more, or sp to none")
	case l.SP == "ulysses" && l.CP == 1:
		return fmt.Errorf("parallel: sp ulysses has no effect with cp 1; hint: set cp to 2 or more, or sp to none")
	}
	return nil
}

// factor splits n ranks over key/value heads first, then over the query heads of one.
func factor(axis string, n int, h Heads) (kv, rep int, err error) {
	if n <= h.G && h.G%n == 0 {
		return n, 1, nil
	}
	if n > h.G && n%h.G == 0 && h.R%(n/h.G) == 0 {
		return h.G, n / h.G, nil
	}
	var legal []int
	for k := 1; k <= h.G*h.R; k++ {
		if k <= h.G && h.G%k == 0 || k > h.G && k%h.G == 0 && h.R%(k/h.G) == 0 {
			legal = append(legal, k)
		}
	}
	return 0, 0, fmt.Errorf("parallel: %d attention heads over %d key/value heads are not divisible by %s %d; hint: %s may be %s", h.G*h.R, h.G, axis, n, axis, nearest(legal, n))
}

// nearest names the legal sizes just below and above n.
func nearest(legal []int, n int) string {
	lo, hi := 0, 0
	for _, k := range legal {
		if k < n {
			lo = k
		} else if hi == 0 {
			hi = k
		}
	}
	switch {
	case hi == 0:
		return fmt.Sprint(lo)
	case lo == 0:
		return fmt.Sprint(hi)
	}
	return fmt.Sprintf("%d or %d", lo, hi)
}

// Tokens are the places of ids, labels and masks [b,s]: the batch is cut over the data axes, the sequence over cp.
func (s *Scheme) Tokens() mesh.Places {
	return s.Mesh.Uniform(mesh.R).With(s.Data, mesh.S('b')).With(s.CP.KV|s.CP.Rep, mesh.S('s'))
}

// Positions are the places of the position vector [s]. It is whole on every rank, because attention, and with it RoPE, sees
// whole sequences: Ulysses turns heads after its all-to-all.
func (s *Scheme) Positions() mesh.Places { return s.Mesh.Uniform(mesh.R) }

// Sequences are the places of a constant [b,s] of whole sequences, each data rank's own.
func (s *Scheme) Sequences() mesh.Places { return s.Mesh.Uniform(mesh.R).With(s.Data, mesh.S('b')) }

// Stream are the places of a constant [b,s] that is added to the residual stream: tokens as there, cut over tp under Megatron.
func (s *Scheme) Stream() mesh.Places { return s.Tokens().With(s.TP.KV|s.TP.Rep, s.Residual.Stream()) }

// Role is what a parameter does, which decides its places.
type Role uint8

const (
	Vector   Role = iota // a norm over h
	HeadNorm             // a norm over d
	Query                // [g, r, d, h] and the output projection [h, g, r, d]
	KeyValue             // [g, d, h]
	MLP                  // [f, h], [h, f]
	Vocab                // [v, h]
)

// Use is where a parameter of a role is used.
func (s *Scheme) Use(r Role) mesh.Places {
	at := s.Mesh.Uniform(mesh.R)
	tp := s.TP.KV | s.TP.Rep
	switch r {
	case Vector:
		return at.With(tp, s.Residual.Weight())
	case Query:
		return at.With(s.TP.KV, mesh.S('g')).With(s.TP.Rep, mesh.S('r'))
	case KeyValue:
		return at.With(s.TP.KV, mesh.S('g'))
	case MLP:
		return at.With(tp, mesh.S('f'))
	case Vocab:
		return at.With(tp, mesh.S('v'))
	}
	return at
}

// VocabPad is the size that a vocabulary of v is padded to: a multiple of the tp ranks.
func (s *Scheme) VocabPad(v int) int {
	tp := s.Layout.TP
	return (v + tp - 1) / tp * tp
}

// as changes a tensor's places without moving data: the only unchecked cast. A test counts its uses.
func as(t tensor.Tensor, at mesh.Places) tensor.Tensor {
	t.At = at
	return t
}

// Fits refuses a global batch of b sequences of seq tokens, or an MLP width, that the layout cannot cut evenly.
func (s *Scheme) Fits(b, seq, mlp int) error {
	l := s.Layout
	if n := l.DP * l.FSDP; b%n != 0 {
		return fmt.Errorf("parallel: batch of %d sequences is not divisible by dp %d × fsdp %d; hint: use %s", b, l.DP, l.FSDP, around(b, n))
	}
	if seq%l.CP != 0 {
		return fmt.Errorf("parallel: sequence of %d tokens is not divisible by cp %d; hint: use %s", seq, l.CP, around(seq, l.CP))
	}
	if l.SP == "megatron" && seq/l.CP%l.TP != 0 {
		return fmt.Errorf("parallel: sequence of %d tokens is not divisible by tp %d under megatron; hint: use %s", seq, l.TP*l.CP, around(seq, l.TP*l.CP))
	}
	if mlp%l.TP != 0 {
		return fmt.Errorf("parallel: MLP width %d is not divisible by tp %d; hint: use %s", mlp, l.TP, around(mlp, l.TP))
	}
	return nil
}

// around names the multiples of n just below and above x.
func around(x, n int) string {
	if x < n {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d or %d", x/n*n, x/n*n+n)
}
