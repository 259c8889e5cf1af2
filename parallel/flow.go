package parallel

import (
	"fmt"

	"heddle/comm"
	"heddle/compute"
	"heddle/mesh"
	"heddle/param"
	"heddle/tensor"
)

// flow is what of a rank's units is on its way: weights that are whole or being gathered, gradients being scattered.
type flow struct {
	ahead    map[int]*comm.Handle // gathers started by Fetch, by unit
	whole    int                  // units that are whole or on their way
	scatters []scatter
}

// scatter is a reduction of a unit's gradients on its way.
type scatter struct {
	unit int
	flat tensor.Tensor // [x], freed when it is there
	part *comm.Handle  // [x/fsdp]
}

// mostWhole is how many units may be whole, or on their way, beside the slices: the one that is used and the next.
const mostWhole = 2

// mostScatters is how many reductions may be on their way when the next is started.
const mostScatters = 1

// Gathered are the parameters of a unit while they are whole.
type Gathered struct {
	Rows  []tensor.Tensor
	unit  int
	flat  tensor.Tensor
	owned bool
}

// Fetch starts to gather a unit that a later Gather returns. The memory is taken now, from the current scope.
func (s *Shards) Fetch(unit int) {
	if s.n > 1 && s.Ahead && s.flow.ahead[unit] == nil {
		s.fetch(unit)
	}
}

func (s *Shards) fetch(unit int) {
	if s.flow.whole++; s.flow.whole > mostWhole {
		s.dev.Fail("weights", fmt.Errorf("weights: with unit %d there would be %d whole units at once, want %d at most", unit, s.flow.whole, mostWhole))
	}
	if s.flow.ahead == nil {
		s.flow.ahead = map[int]*comm.Handle{}
	}
	s.flow.ahead[unit] = s.grp.StartAllGather("weights", s.weights[unit], s.fsdp, 'x', compute.Weights)
}

// Gather returns a unit's parameters, in the order of its rows. Release or Hold them before the next Gather of the unit.
func (s *Shards) Gather(unit int) Gathered {
	g := Gathered{unit: unit, flat: s.weights[unit]}
	if s.n > 1 {
		if s.flow.ahead[unit] == nil {
			s.fetch(unit)
		}
		g.flat, g.owned = s.flow.ahead[unit].Wait(), true
		delete(s.flow.ahead, unit)
	}
	g.Rows = s.views(unit, g.flat, func(r *param.Row) (mesh.Places, bool) { return r.Use, true })
	return g
}

// Release frees what Gather gathered.
func (s *Shards) Release(g Gathered) {
	if g.owned {
		s.dev.Free(g.flat)
		s.flow.whole--
	}
}

// Hold keeps what Gather gathered for the next Gather of the unit.
func (s *Shards) Hold(g Gathered) {
	if g.owned {
		s.flow.ahead[g.unit] = comm.Done(g.flat)
	}
}

// OpenGrads returns where a unit's gradients accumulate, in the order of its rows; a frozen row has the zero Tensor. Reduce
// must follow.
func (s *Shards) OpenGrads(unit int) Gathered {
	if s.settled {
		s.dev.Fail("gradients", fmt.Errorf("gradients: settled before the last micro-batch"))
	}
	g := Gathered{flat: s.grads[unit]}
	if s.n > 1 {
		g.flat = s.dev.NewIn(compute.Gradients, s.dev.Type.Wide(), "x", []int{s.Units[unit].Size}, s.flat(mesh.P))
		g.owned = true
		s.dev.Zero(g.flat)
	}
	g.Rows = s.views(unit, g.flat, func(r *param.Row) (mesh.Places, bool) { return r.Use.Dual(), r.Train })
	return g
}

// Reduce adds a unit's gradients to this rank's slice: over fsdp they are scattered, over all other axes reduced by Settle. The
// scatter is only started, and the one before it awaited; Drain awaits the last.
func (s *Shards) Reduce(unit int, g Gathered) {
	if !g.owned {
		return
	}
	s.flow.scatters = append(s.flow.scatters, scatter{unit, g.flat, s.grp.StartReduceScatter("gradients", g.flat, s.fsdp, 'x')})
	for len(s.flow.scatters) > mostScatters || len(s.flow.scatters) > 0 && !s.Ahead {
		s.land()
	}
}

// Drain awaits the reductions that are on their way.
func (s *Shards) Drain() {
	for len(s.flow.scatters) > 0 {
		s.land()
	}
}

// land awaits the first reduction and adds it to its slice.
func (s *Shards) land() {
	x := s.flow.scatters[0]
	s.flow.scatters = s.flow.scatters[1:]
	part := x.part.Wait()
	if part.At != s.grads[x.unit].At {
		s.dev.Fail("gradients", fmt.Errorf("gradients: unit %d is %s after the reduce-scatter", x.unit, s.dev.Describe(part)))
	}
	s.dev.AddInto(s.grads[x.unit], part)
	s.dev.Free(part, x.flat)
}
