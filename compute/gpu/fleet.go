package gpu

import (
	"fmt"

	"heddle/ptx"
)

// Fleet is the ranks of a run on one machine. First each rank plans on the leaf that Plan gives; then Start lays the ranks' parts out one behind the other, and
// Seat gives each its leaf.
type Fleet struct {
	card    *Card                              // nil: emulated
	emulate func(bytes int) (*Emulated, error) // of the arena's size
	machine *Emulated
	sms     int
	kernels *Kernels
	plans   []*Leaf
	starts  []int
}

// OnCard makes a fleet of ranks on a card.
func OnCard(c *Card, ranks int) *Fleet {
	return &Fleet{card: c, sms: c.Device.SMs, kernels: c.kernels, plans: make([]*Leaf, ranks)}
}

// OnRunner makes a fleet of ranks on a Runner that works on host memory: the emulator of a device of so many SMs.
func OnRunner(run ptx.Runner, sms, ranks int) *Fleet {
	return &Fleet{emulate: func(bytes int) (*Emulated, error) { return NewEmulated(run, bytes, sms), nil }, sms: sms, kernels: NewKernels(), plans: make([]*Leaf, ranks)}
}

// Plan is the leaf on which a rank finds out what it needs.
func (f *Fleet) Plan(rank int) *Leaf {
	f.plans[rank] = NewPlan(f.sms, f.kernels)
	return f.plans[rank]
}

// Need is the bytes of each rank, once all have planned.
func (f *Fleet) Need() []int {
	all := make([]int, len(f.plans))
	for r, p := range f.plans {
		if p != nil {
			all[r] = p.Need()
		}
	}
	return all
}

// Start takes the arena.
func (f *Fleet) Start() error {
	f.starts = []int{0}
	for r, n := range f.Need() {
		if n == 0 {
			return fmt.Errorf("gpu: rank %d has not planned", r)
		}
		f.starts = append(f.starts, f.starts[r]+round(n))
	}
	all := f.starts[len(f.plans)]
	if f.card != nil {
		return f.card.Reserve(all, len(f.plans))
	}
	var err error
	f.machine, err = f.emulate(all)
	return err
}

// Seat is a rank's leaf, and what ends it. The calling goroutine is the rank's from now on.
func (f *Fleet) Seat(rank int) (l *Leaf, end func() error, err error) {
	space := NewSpace(f.starts[rank], f.starts[rank+1]-f.starts[rank])
	if f.card == nil {
		return NewLeaf(f.machine, space, f.kernels), func() error { return nil }, nil
	}
	q, err := f.card.Queue(rank)
	if err != nil {
		return nil, nil, err
	}
	return NewLeaf(q, space, f.kernels), q.Close, nil
}

// End gives the arena back. The fleet can plan and start again.
func (f *Fleet) End() error {
	if f.card != nil && f.starts != nil {
		f.starts = nil
		return f.card.Release()
	}
	f.starts, f.machine = nil, nil
	return nil
}
