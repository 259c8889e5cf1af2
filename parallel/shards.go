package parallel

import (
	"errors"
	"runtime"
	"slices"
	"sync"

	"heddle/comm"
	"heddle/compute"
	"heddle/mesh"
	"heddle/param"
	"heddle/tensor"
)

// Shards keeps parameters, gradients and optimiser state of one rank. The parameters of a unit (a layer; all that is outside
// the layers) lie one after the other in a flat buffer, padded to a multiple of the fsdp ranks; each rank rests an equal slice
// of it, and the whole buffer exists only between Gather and Release. Without fsdp the slice is the buffer.
//
// Only collectives, pointwise updates and norms touch flat buffers; the model sees views of single parameters at the places
// their rows give.
type Shards struct {
	Table param.Table
	Units []Unit
	Ahead bool // Fetch and Reduce start what Gather and Drain wait for; else they wait themselves

	dev  *compute.Device
	grp  *comm.Group
	fsdp mesh.Set
	n    int // ranks of fsdp
	me   int

	weights []tensor.Tensor // a unit's slice [x], as the model computes with it
	masters []tensor.Tensor // the same in float32 where the model computes in less; else the weights themselves
	all     tensor.Tensor   // gradients of every unit's slice [x], one buffer so that one reduction serves all
	grads   []tensor.Tensor // views of all
	settled bool            // gradients are whole, not partial
	flow    flow
}

// Unit is the flat layout of one unit: its rows' elements start at Offset; padding follows the last.
type Unit struct {
	Rows   []int // indices into the table
	Offset []int
	Local  []tensor.Tensor // a row's handle without data: local sizes and places
	Size   int             // padded
	Slice  int             // Size over the fsdp ranks
}

// NewShards lays the table out and allocates slices of weights and gradients. Nothing has a value yet: Load.
func NewShards(dev *compute.Device, grp *comm.Group, s *Scheme, table param.Table) (*Shards, error) {
	sh := &Shards{Table: table, dev: dev, grp: grp, fsdp: s.FSDP, n: s.Mesh.Count(s.FSDP), me: s.Mesh.Index(dev.Rank, s.FSDP), Ahead: true}
	for i := range table {
		r := &table[i]
		if err := r.Check(s.Mesh); err != nil {
			return nil, err
		}
		for len(sh.Units) <= r.Unit {
			sh.Units = append(sh.Units, Unit{})
		}
		u := &sh.Units[r.Unit]
		local := r.Describe(s.Mesh, dev.Rank, dev.Type)
		u.Rows, u.Offset, u.Local = append(u.Rows, i), append(u.Offset, u.Size), append(u.Local, local)
		u.Size += local.Elems()
	}
	total := 0
	for i := range sh.Units {
		u := &sh.Units[i]
		u.Slice = (u.Size + sh.n - 1) / sh.n
		u.Size = u.Slice * sh.n
		flat := func(t tensor.DType) tensor.Tensor {
			return dev.NewIn(compute.Weights, t, "x", []int{u.Slice}, sh.flat(mesh.S('x')))
		}
		sh.masters = append(sh.masters, flat(dev.Type.Wide()))
		if sh.weights = append(sh.weights, sh.masters[i]); sh.low() {
			sh.weights[i] = flat(dev.Type)
		}
		total += u.Slice
	}
	sh.all = dev.NewIn(compute.Gradients, dev.Type.Wide(), "x", []int{total}, sh.flat(mesh.S('x')))
	at := 0
	for _, u := range sh.Units {
		sh.grads = append(sh.grads, sh.all.As("x", []int{u.Slice}, at))
		at += u.Slice
	}
	return sh, nil
}

// flat is the places of a flat buffer: p on fsdp, and nothing claimed on the other axes.
func (s *Shards) flat(p mesh.Place) mesh.Places {
	return s.dev.Mesh.Uniform(mesh.R).With(s.fsdp, p)
}

// views cuts a unit's flat buffer into its rows' tensors; a row that place refuses gives the zero Tensor.
func (s *Shards) views(unit int, flat tensor.Tensor, place func(*param.Row) (mesh.Places, bool)) []tensor.Tensor {
	u := &s.Units[unit]
	out := make([]tensor.Tensor, len(u.Rows))
	for i, local := range u.Local {
		if at, ok := place(&s.Table[u.Rows[i]]); ok {
			out[i] = as(flat.As(local.Letters, local.Dims, u.Offset[i]), at)
		}
	}
	return out
}

// ZeroGrads starts a step.
func (s *Shards) ZeroGrads() {
	s.settled = false
	s.dev.Zero(s.all)
}

// Piece is the part of one parameter that rests on this rank.
type Piece struct {
	Row          *param.Row
	Lo, Hi       int // of the row's local elements
	Weight, Grad tensor.Tensor
	Low          tensor.Tensor // the weight as the model computes with it, where that is another type
	Offset       int           // in the unit's slice
	Unit         int
}

// Pieces lists what rests on this rank, in table order; padding is in none.
func (s *Shards) Pieces() (out []Piece) {
	for ui := range s.Units {
		u := &s.Units[ui]
		lo, hi := s.me*u.Slice, (s.me+1)*u.Slice
		for i, local := range u.Local {
			a, b := max(lo, u.Offset[i]), min(hi, u.Offset[i]+local.Elems())
			if a >= b {
				continue
			}
			n := []int{b - a}
			p := Piece{Row: &s.Table[u.Rows[i]], Lo: a - u.Offset[i], Hi: b - u.Offset[i], Unit: ui, Offset: a - lo,
				Weight: s.masters[ui].As("x", n, a-lo), Grad: s.grads[ui].As("x", n, a-lo)}
			if s.low() {
				p.Low = s.weights[ui].As("x", n, a-lo)
			}
			out = append(out, p)
		}
	}
	return out
}

// Global calls f with each element's index in the piece and in the global tensor, in order.
func (s *Shards) Global(p Piece, f func(piece, global int)) {
	i := 0
	param.Each(p.Row.Dims, p.Row.Box(s.dev.Mesh, s.dev.Rank), func(global int) {
		if i >= p.Lo && i < p.Hi {
			f(i-p.Lo, global)
		}
		i++
	})
}

// ZeroWeights clears the weights; padding stays zero for ever.
func (s *Shards) ZeroWeights() {
	for ui := range s.Units {
		s.dev.Zero(s.masters[ui])
	}
}

// Load fills the weights from a source.
func (s *Shards) Load(src param.Source) error {
	s.ZeroWeights()
	var buf []float64 // of the largest piece so far
	for _, p := range s.Pieces() {
		if p.Weight.Mem.Ptr == nil { // a dry machine has no values
			continue
		}
		box := p.Row.Box(s.dev.Mesh, s.dev.Rank)
		if n := box.Elems(); len(buf) < n {
			buf = make([]float64, n)
		}
		all := buf[:box.Elems()]
		if err := fill(src, p.Row, box, all); err != nil {
			return err
		}
		s.dev.Upload(p.Weight, all[p.Lo:p.Hi])
	}
	s.Refresh()
	return nil
}

// fill asks the source for a box, row-major in all, large ones in parts side by side.
func fill(src param.Source, r *param.Row, box param.Box, all []float64) error {
	rows := box.Hi[0] - box.Lo[0]
	parts := min(rows, runtime.GOMAXPROCS(0), 1+len(all)>>16)
	if parts <= 1 {
		return param.Fill(src, r, box, all)
	}
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for i := range parts {
		part := param.Box{Lo: slices.Clone(box.Lo), Hi: slices.Clone(box.Hi)}
		lo, hi := rows*i/parts, rows*(i+1)/parts
		part.Lo[0], part.Hi[0] = box.Lo[0]+lo, box.Lo[0]+hi
		each := len(all) / rows
		wg.Go(func() { errs[i] = param.Fill(src, r, part, all[lo*each:hi*each]) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// low tells whether the model computes in less than float32.
func (s *Shards) low() bool { return s.dev.Type != s.dev.Type.Wide() }

// Refresh makes what the model computes with from weights that were uploaded.
func (s *Shards) Refresh() {
	for ui := range s.Units {
		if s.low() {
			s.dev.Cast(s.weights[ui], s.masters[ui])
		}
	}
}
