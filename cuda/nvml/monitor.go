package nvml

import (
	"sync"
	"time"
)

// Monitor samples a GPU in the background. Mean power is energy between the first and the last step of the counter, over the time between them: a window that begins and ends on a step has no
// quantisation error, and 1 s gives ±0.3 % on an H200.
type Monitor struct {
	stop chan struct{}
	done sync.WaitGroup
	r    Reading
}

// Reading is what a Monitor saw.
type Reading struct {
	Watts    float64       `json:"watts"` // 0 where the counter stepped less than twice
	Window   time.Duration `json:"window_ns"`
	Steps    int           `json:"energy_steps"`
	SMClocks []uint32      `json:"sm_clock_mhz"` // one every sample
	Reasons  uint64        `json:"clock_reasons"`
	Celsius  uint32        `json:"celsius"`
}

// Watch starts sampling.
func (g *GPU) Watch() *Monitor {
	m := &Monitor{stop: make(chan struct{})}
	m.done.Go(func() { m.run(g) })
	return m
}

// Stop ends sampling and returns what was seen.
func (m *Monitor) Stop() Reading {
	close(m.stop)
	m.done.Wait()
	return m.r
}

func (m *Monitor) run(g *GPU) {
	const pause = 2 * time.Millisecond // a read of the counter takes about as long
	const clockEvery = 50 * time.Millisecond
	var first, last uint64 // the counter at its first and last step
	var begin, end, clock time.Time
	before, err := g.EnergyMillijoule()
	for {
		select {
		case <-m.stop:
			if d := end.Sub(begin); err == nil && d > 0 {
				m.r.Watts, m.r.Window = float64(last-first)/1e3/d.Seconds(), d
			}
			return
		case <-time.After(pause):
		}
		now, e := g.EnergyMillijoule()
		at := time.Now()
		if err = e; err == nil && now != before {
			if m.r.Steps++; m.r.Steps == 1 {
				first, begin = now, at
			}
			before, last, end = now, now, at
		}
		if at.Sub(clock) >= clockEvery {
			s := g.State()
			clock, m.r.SMClocks, m.r.Celsius = at, append(m.r.SMClocks, s.SMClockMHz), s.Celsius
			m.r.Reasons |= s.Reasons
		}
	}
}
