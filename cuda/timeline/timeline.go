// Package timeline records what a program does with a device, as events of package trace: kernels, copies, driver calls, and the program's own ranges.
//
// With libcupti it records everything that reaches the driver, from whichever library. Without, it brackets the launches that the program hands it with events: kernels and their calls
// are there, with the same correlation, but bracketing costs some 4 µs a kernel on the device and ends the overlap of PDL.
//
// Start with Open, then Recorder.Start, Launch and Range, Stop.
package timeline

import (
	"fmt"
	"time"

	"heddle/cuda"
	"heddle/cuda/cupti"
	"heddle/internal/dl"
	"heddle/trace"
)

// Recorder records one rank's use of one device. It is not safe for concurrent use.
type Recorder struct {
	How    string // "CUPTI 130001", or why it is events
	dev    *cuda.Device
	rank   int
	lib    *cupti.Library // nil: events
	run    *cupti.Recording
	host   *trace.Recorder
	base   *cuda.Event // events: a point on the device …
	baseAt int64       // … and when it was, on the host's clock
	marks  []mark
	calls  int64
}

// mark is a bracketed launch.
type mark struct {
	name        string
	stream      uintptr
	before, end *cuda.Event
	correlation int64
}

// Open makes a recorder. candidates are places of libcupti, from cupti.Find; none, or none that opens, leaves events.
func Open(dev *cuda.Device, rank int, candidates []string) *Recorder {
	r := &Recorder{dev: dev, rank: rank}
	lib, err := cupti.Open(candidates)
	if err != nil {
		r.How = fmt.Sprintf("events: %v", err)
		return r
	}
	r.lib, r.How = lib, fmt.Sprintf("CUPTI %d", lib.Version)
	return r
}

// Whole tells whether everything that reaches the driver is recorded, by CUPTI, and not only what the program hands over.
func (r *Recorder) Whole() bool { return r.lib != nil }

// Start begins to record. The device must be idle, or what runs is recorded in part.
func (r *Recorder) Start() error {
	r.host = trace.NewRecorder(r.rank)
	r.marks, r.calls = nil, 0
	if r.lib != nil {
		var err error
		r.run, err = r.lib.Start()
		return err
	}
	return nil
}

// anchor ties the device's clock to the host's: the event has passed some µs before Synchronize comes back, half of the round trip is taken off.
func (r *Recorder) anchor(s *cuda.Stream) error {
	var err error
	if r.base, err = r.dev.NewEvent(); err != nil {
		return err
	}
	begin := time.Now()
	if err := r.base.Record(s); err != nil {
		return err
	}
	if err := r.base.Synchronize(); err != nil {
		return err
	}
	r.baseAt = begin.UnixNano() + int64(time.Since(begin))/2
	return nil
}

// Launch queues a kernel by calling launch, under a name for where only events record. A nil Recorder records nothing.
func (r *Recorder) Launch(s *cuda.Stream, name string, launch func() error) error {
	if r == nil || r.lib != nil || r.host == nil {
		return launch()
	}
	if r.base == nil {
		if err := r.anchor(s); err != nil {
			return err
		}
	}
	m := mark{name: name, stream: s.Handle()}
	var err error
	if m.before, err = s.NewEvent(); err != nil {
		return err
	}
	if m.end, err = s.NewEvent(); err != nil {
		return err
	}
	r.calls++
	m.correlation = r.calls
	begin := r.host.Now() // an idle device passes the event before the launch
	if err := m.before.Record(s); err != nil {
		return err
	}
	if err := launch(); err != nil {
		return err
	}
	r.host.Since(thread(), "cuLaunchKernelEx", trace.Launch, begin, trace.Int("correlation", m.correlation))
	r.marks = append(r.marks, m)
	return m.end.Record(s)
}

// Call makes a call of the driver that the host may spend its time in, under its name for where only events record.
func (r *Recorder) Call(name string, call func() error) error {
	if r.lib != nil || r.host == nil {
		return call()
	}
	r.calls++
	begin := r.host.Now()
	err := call()
	r.host.Since(thread(), name, trace.Launch, begin, trace.Int("correlation", r.calls))
	return err
}

// Range runs body as a named range of the host.
func (r *Recorder) Range(name string, body func() error) error {
	begin := r.host.Now()
	err := body()
	r.host.Since(thread(), name, trace.Phase, begin)
	return err
}

// Row is the row of the calling thread, under the name that CUPTI's records of it have. The goroutine must be locked to it.
func (r *Recorder) Row() trace.Track { return thread() }

func thread() trace.Track { return trace.Track(fmt.Sprintf("thread %d", dl.Thread())) }

// Stop waits for the device, ends the recording and gives its events.
func (r *Recorder) Stop() ([]trace.Event, error) {
	if err := r.dev.Synchronize(); err != nil {
		return nil, err
	}
	all := r.host.Events()
	r.host = nil
	if r.lib != nil {
		f, err := r.run.Stop(r.rank)
		return append(all, f.Events...), err
	}
	for _, m := range r.marks {
		e := trace.Event{Name: m.name, Cat: trace.Kernel, Rank: r.rank, Track: trace.Track(fmt.Sprintf("stream %#x", m.stream)), Args: []trace.Arg{trace.Int("correlation", m.correlation)}}
		start, err := m.before.Since(r.base)
		if err != nil {
			return nil, err
		}
		dur, err := m.end.Since(m.before)
		if err != nil {
			return nil, err
		}
		e.Start, e.Dur = r.baseAt+int64(start), int64(dur)
		all = append(all, e)
		for _, x := range []*cuda.Event{m.before, m.end} {
			if err := x.Close(); err != nil {
				return nil, err
			}
		}
	}
	r.marks = nil
	return all, nil
}
