package gpu

import (
	"sort"
	"time"

	"heddle/cuda"
)

// Profile is how long the kernels of a stretch of work took, each with an event before and behind it: kernels do not overlap then, and each shows a few µs more
// than it takes in a chain.
type Profile struct{ marks []mark }

type mark struct {
	name       string
	start, end *cuda.Event
}

// KernelTime is one kernel's share.
type KernelTime struct {
	Name  string        `json:"name"`
	Calls int           `json:"calls"`
	Time  time.Duration `json:"ns"`
}

// span puts events around f, which queues one piece of work.
func (p *Profile) span(q *Queue, name string, f func() error) error {
	if p == nil {
		return q.card.Timeline.Launch(q.stream, name, f)
	}
	m := mark{name: name}
	for _, e := range []**cuda.Event{&m.start, &m.end} {
		var err error
		if *e, err = q.card.Device.NewEvent(); err != nil {
			return err
		}
	}
	if err := m.start.Record(q.stream); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	p.marks = append(p.marks, m)
	return m.end.Record(q.stream)
}

// Times sums up by name, longest first, and forgets. All work must be done.
func (p *Profile) Times() ([]KernelTime, error) {
	sum := map[string]*KernelTime{}
	for _, m := range p.marks {
		d, err := m.end.Since(m.start)
		if err != nil {
			return nil, err
		}
		k := sum[m.name]
		if k == nil {
			k = &KernelTime{Name: m.name}
			sum[m.name] = k
		}
		k.Calls, k.Time = k.Calls+1, k.Time+d
		for _, e := range []*cuda.Event{m.start, m.end} {
			if err := e.Close(); err != nil {
				return nil, err
			}
		}
	}
	p.marks = nil
	var all []KernelTime
	for _, k := range sum {
		all = append(all, *k)
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].Time > all[j].Time || all[i].Time == all[j].Time && all[i].Name < all[j].Name
	})
	return all, nil
}
