package bench

import (
	"fmt"
	"time"

	"heddle/cuda"
	"heddle/cuda/nvml"
)

// Side is one competitor: Launch queues one piece of work on the protocol's stream, on buffer set number set.
type Side struct {
	Name   string
	Own    bool // ours, not a peer's
	Launch func(set int) error
}

// Protocol measures sides against each other in one process on one stream.
type Protocol struct {
	Stream *cuda.Stream
	GPU    *nvml.GPU // nil: no clocks, no joules
	Sets   int       // buffer sets, used in turn
	Delay  func() error
	Done   func(side string, us float64) // called after every sustained block; may be nil
	Stop   func() bool                   // asked before every pair and round: true ends the measurement with what it has; may be nil
	start  *cuda.Event
	end    *cuda.Event
	next   int
}

// NewProtocol makes a protocol. delay queues a short wait on the stream, so that what follows is queued before it runs and the host's own time is not measured.
func NewProtocol(dev *cuda.Device, s *cuda.Stream, gpu *nvml.GPU, delay func() error) (*Protocol, error) {
	p := &Protocol{Stream: s, GPU: gpu, Sets: 1, Delay: delay}
	var err error
	if p.start, err = dev.NewEvent(); err != nil {
		return nil, err
	}
	p.end, err = dev.NewEvent()
	return p, err
}

// Samples are the raw measurements of one side.
type Samples struct {
	Side     string    `json:"side"`
	Own      bool      `json:"own,omitempty"`           // ours
	Micros   []float64 `json:"us"`                      // one launch, or the mean launch of a round
	Late     int       `json:"late,omitempty"`          // of these, how many hold host time: the device began before all was queued
	Joules   []float64 `json:"joules,omitempty"`        // one launch, by round
	Watts    []float64 `json:"watts,omitempty"`         // by round
	SMClocks []uint32  `json:"sm_clock_mhz,omitempty"`  // after each launch, or the median of a round
	Reasons  []uint64  `json:"clock_reasons,omitempty"` // NVML's bits, by round
}

func samples(sides []Side) []Samples {
	all := make([]Samples, len(sides))
	for i, s := range sides {
		all[i].Side, all[i].Own = s.Name, s.Own
	}
	return all
}

func (p *Protocol) stopped() bool { return p.Stop != nil && p.Stop() }

// set hands out buffer sets in turn.
func (p *Protocol) set() int {
	p.next++
	return p.next % p.Sets
}

// Single times pairs of single launches: each one after idle, all sides in every pair, their order rotating.
func (p *Protocol) Single(sides []Side, pairs int, idle time.Duration) ([]Samples, error) {
	all := samples(sides)
	for pair := range pairs {
		if p.stopped() {
			break
		}
		for k := range sides {
			i := (k + pair) % len(sides)
			time.Sleep(idle)
			if err := p.held(&all[i], func() error { return sides[i].Launch(p.set()) }); err != nil {
				return nil, fmt.Errorf("bench: %s: %w", sides[i].Name, err)
			}
			if p.GPU != nil {
				all[i].SMClocks = append(all[i].SMClocks, p.GPU.State().SMClockMHz)
			}
		}
	}
	return all, nil
}

// mostTries is how often a launch is timed anew where the host was not done queueing before the device began.
const mostTries = 20

// held adds the device time of what run queues, in µs, all of it queued while the device still waited: a host that wakes from sleep and calls a library for the first time in a while may need
// longer than the delay, and its time would count as the library's. Where it needs that long every time, the sample counts as late.
func (p *Protocol) held(to *Samples, run func() error) error {
	late := true
	var us float64
	for try := 0; late && try < mostTries; try++ {
		begun := time.Now()
		t, err := p.timed(func() error {
			err := run()
			late = time.Since(begun) > delayNanoseconds*9/10 // the end's event is queued in the last tenth
			return err
		})
		if err != nil {
			return err
		}
		us = t
	}
	if late {
		to.Late++
	}
	to.Micros = append(to.Micros, us)
	return nil
}

// timed is the device time of what run queues, in µs, with what the host takes beyond the delay.
func (p *Protocol) timed(run func() error) (float64, error) {
	if err := p.Delay(); err != nil {
		return 0, err
	}
	if err := p.start.Record(p.Stream); err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	if err := p.end.Record(p.Stream); err != nil {
		return 0, err
	}
	if err := p.end.Synchronize(); err != nil {
		return 0, err
	}
	d, err := p.end.Since(p.start)
	return d.Seconds() * 1e6, err
}

// Burst is the mean time of n launches back to back, in µs.
func (p *Protocol) Burst(s Side, n int) (float64, error) {
	us, err := p.timed(func() error {
		for range n {
			if err := s.Launch(p.set()); err != nil {
				return err
			}
		}
		return nil
	})
	return us / float64(n), err
}

// Sustained runs each side back to back for at least block, rounds times in turn, their order rotating. Joules a launch are mean power over the block, between steps of the energy counter,
// times the mean time of a launch. The first settle of each block counts for neither.
func (p *Protocol) Sustained(sides []Side, rounds int, block, settle time.Duration) ([]Samples, error) {
	all := samples(sides)
	for round := range rounds {
		if p.stopped() {
			break
		}
		for k := range sides {
			i := (k + round) % len(sides)
			us, r, err := p.block(sides[i], block, settle)
			if err != nil {
				return nil, fmt.Errorf("bench: %s: %w", sides[i].Name, err)
			}
			if p.Done != nil {
				p.Done(sides[i].Name, us)
			}
			s := &all[i]
			s.Micros = append(s.Micros, us)
			if p.GPU != nil {
				s.Joules = append(s.Joules, r.Watts*us/1e6)
				s.Watts = append(s.Watts, r.Watts)
				s.SMClocks = append(s.SMClocks, middle(r.SMClocks))
				s.Reasons = append(s.Reasons, r.Reasons)
			}
		}
	}
	return all, nil
}

func middle(clocks []uint32) uint32 {
	x := make([]float64, len(clocks))
	for i, c := range clocks {
		x[i] = float64(c)
	}
	if len(x) == 0 {
		return 0
	}
	return uint32(Median(x))
}

// block keeps the stream fed with at most two batches, so that it never runs dry and never runs long after the end.
func (p *Protocol) block(s Side, block, settle time.Duration) (us float64, r nvml.Reading, err error) {
	one, err := p.Burst(s, 2)
	if err != nil {
		return 0, r, err
	}
	batch := max(1, int(10e3/one)) // about 10 ms
	if _, err := p.feed(s, batch, settle); err != nil {
		return 0, r, err
	}
	var watch *nvml.Monitor
	if p.GPU != nil {
		watch = p.GPU.Watch()
	}
	if err = p.start.Record(p.Stream); err != nil {
		return 0, r, err
	}
	n, err := p.feed(s, batch, block)
	if err == nil {
		err = p.end.Record(p.Stream)
	}
	if watch != nil {
		r = watch.Stop()
	}
	if err == nil {
		err = p.end.Synchronize()
	}
	if err != nil {
		return 0, r, err
	}
	d, err := p.end.Since(p.start)
	return d.Seconds() * 1e6 / float64(n), r, err
}

// feed launches batches for at least span and returns how many launches it queued; at most two batches are still running then.
func (p *Protocol) feed(s Side, batch int, span time.Duration) (launches int, err error) {
	var marks [2]*cuda.Event
	for i := range marks {
		if marks[i], err = p.Stream.NewEvent(); err != nil {
			return 0, err
		}
		defer marks[i].Close()
	}
	begin := time.Now()
	for n := 0; time.Since(begin) < span; n++ {
		mark := marks[n%2]
		if n >= 2 {
			if err := mark.Synchronize(); err != nil {
				return launches, err
			}
		}
		for range batch {
			if err := s.Launch(p.set()); err != nil {
				return launches, err
			}
		}
		launches += batch
		if err := mark.Record(p.Stream); err != nil {
			return launches, err
		}
	}
	return launches, nil
}

// Graph times replays of one graph of launches launches a side, in turn, their order rotating; the samples are µs a launch.
func (p *Protocol) Graph(sides []Side, launches, pairs int, idle time.Duration) ([]Samples, error) {
	all, graphs := samples(sides), make([]*cuda.Graph, len(sides))
	for i, s := range sides {
		g, err := p.Stream.Capture(func() error {
			for n := range launches {
				if err := s.Launch(n % p.Sets); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("bench: graph of %s: %w", s.Name, err)
		}
		defer g.Close()
		graphs[i] = g
		for range 2 { // the first replay uploads it
			if err := g.Launch(p.Stream); err != nil {
				return nil, err
			}
		}
		if err := p.Stream.Synchronize(); err != nil {
			return nil, err
		}
	}
	for pair := range pairs {
		if p.stopped() {
			break
		}
		for k := range sides {
			i := (k + pair) % len(sides)
			time.Sleep(idle)
			if err := p.held(&all[i], func() error { return graphs[i].Launch(p.Stream) }); err != nil {
				return nil, fmt.Errorf("bench: graph of %s: %w", sides[i].Name, err)
			}
			all[i].Micros[len(all[i].Micros)-1] /= float64(launches)
			if p.GPU != nil {
				all[i].SMClocks = append(all[i].SMClocks, p.GPU.State().SMClockMHz)
			}
		}
	}
	return all, nil
}
