// Package train runs a model: the ranks, one step, the loop around it, evaluation, and the folder a run leaves behind.
//
// Read Ranks (ranks.go) for how ranks start and end, step.go for one step, run.go for the whole.
package train

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"heddle/comm"
	commdry "heddle/comm/dry"
	"heddle/comm/local"
	"heddle/compute"
	"heddle/compute/cpu"
	"heddle/compute/cpu/blas"
	"heddle/compute/dry"
	"heddle/mesh"
	"heddle/tensor"
)

// Machine is what the ranks of a run compute on.
type Machine struct {
	Type     tensor.DType                   // of weights and activations: F32 or F64; BF16 on GPUs
	Dry      bool                           // count, do not compute
	Threads  int                            // of one rank; 0: cores ÷ ranks, at least 1
	Deadline time.Duration                  // of a collective; 0: 30 s
	Fleet    func(ranks int) (Fleet, error) // what the ranks compute on; nil: the CPU
	seat     func(rank int) (Seat, error)   // of a fleet that has started
	Wrap     func(comm.Leaf) comm.Leaf      // tests: between group and leaf
	Poison   bool                           // tests: memory is NaN until it is written and once it is freed
	Sim      *local.Sim                     // tests: ranks take turns, as a seed says; nil: they run as they like
}

// Fleet is a machine that lays memory out before it computes: body runs once on every rank's Plan, and then on its Seat.
type Fleet interface {
	Plan(rank int) compute.Leaf
	Start() error // once all ranks have planned
	Seat(rank int) (Seat, error)
	End() error
}

// Planned runs body on a machine that only counts, then on the one that on is, whose memory is what was counted. Without a fleet it is one run. What body does
// beside computing it must do where its machine is not dry.
func (on Machine) Planned(ranks int, body func(Machine) error) (err error) {
	if on.Fleet == nil || on.Dry {
		return body(on)
	}
	f, err := on.Fleet(ranks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.End()) }()
	plan := Machine{Type: on.Type, Dry: true, seat: func(rank int) (Seat, error) { return Seat{Leaf: f.Plan(rank)}, nil }}
	if err := body(plan); err != nil {
		return err
	}
	if err := f.Start(); err != nil {
		return err
	}
	on.Fleet, on.seat = nil, f.Seat
	return body(on)
}

// Seat is what one rank computes on. It is made, used and closed by the rank's own goroutine.
type Seat struct {
	Leaf  compute.Leaf
	Mover local.Mover
	Close func() error
}

// seat is the rank's machine.
func (on Machine) take(rank, threads int) (Seat, error) {
	switch {
	case on.seat != nil:
		return on.seat(rank)
	case on.Dry:
		return Seat{Leaf: dry.Leaf{}}, nil
	case on.Fleet != nil:
		return Seat{}, errors.New("train: a fleet that has not planned; hint: Machine.Planned")
	}
	pool := blas.NewPool(threads)
	return Seat{Leaf: on.cpu(pool), Close: func() error { pool.Close(); return nil }}, nil
}

// Rank is one rank's machine and group.
type Rank struct {
	Index int
	Dev   *compute.Device
	Grp   *comm.Group
}

// Ranks runs body once a rank of the mesh and returns the first cause of failure. Ranks are goroutines; on a dry machine they
// run one after the other. A fault or error on one rank ends the others.
func Ranks(m *mesh.Mesh, on Machine, body func(*Rank) error) error {
	if on.Dry {
		for r := range m.Size() {
			seat, err := on.take(r, 0)
			if err != nil {
				return err
			}
			dev := compute.New(m, r, on.Type, seat.Leaf)
			if err := guard(r, func() error { return body(&Rank{r, dev, comm.New(dev, on.leaf(commdry.Leaf{}))}) }); err != nil {
				return err
			}
		}
		return nil
	}
	if on.Deadline == 0 {
		on.Deadline = 30 * time.Second
	}
	world := local.NewWorld(m.Size(), on.Deadline)
	if on.Sim != nil {
		world = local.NewSeeded(m.Size(), on.Deadline, on.Sim)
	}
	threads := on.Threads
	if threads == 0 {
		threads = max(1, runtime.GOMAXPROCS(0)/m.Size())
	}
	var wg sync.WaitGroup
	for r := range m.Size() {
		wg.Go(func() {
			world.Enter(r)
			defer world.Exit(r)
			err := guard(r, func() error { return on.run(m, r, threads, world, body) })
			if err != nil {
				world.Abort(err)
			}
		})
	}
	wg.Wait()
	return world.Cause()
}

// run is one rank's life.
func (on Machine) run(m *mesh.Mesh, r, threads int, world *local.World, body func(*Rank) error) (err error) {
	seat, err := on.take(r, threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seat.Close()) }()
	end := world.Leaf(r)
	if seat.Mover != nil {
		end = world.LeafOn(r, seat.Mover)
	}
	dev := compute.New(m, r, on.Type, seat.Leaf)
	return body(&Rank{r, dev, comm.New(dev, on.leaf(end))})
}

func (on Machine) leaf(l comm.Leaf) comm.Leaf {
	if on.Wrap != nil {
		return on.Wrap(l)
	}
	return l
}

func (on Machine) cpu(pool *blas.Pool) compute.Leaf {
	if on.Type == tensor.F64 {
		l := cpu.New[float64](pool)
		l.Poison = on.Poison
		return l
	}
	l := cpu.New[float32](pool)
	l.Poison = on.Poison
	return l
}

// guard turns a panic of the engine into an error: a fault in shapes or places, an aborted collective, or a bug with its
// stack. It is the one place that recovers.
func guard(rank int, f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *compute.Fault:
			err = fmt.Errorf("rank %d: %w", rank, p)
		case *comm.Aborted:
			err = p
		default:
			err = fmt.Errorf("rank %d: panic: %v\n%s", rank, p, debug.Stack())
		}
	}()
	if err = f(); err != nil {
		if _, ok := errors.AsType[*comm.Aborted](err); !ok {
			err = fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return err
}
