package train

import (
	"fmt"
	"strconv"

	"heddle/compute"
	"heddle/trace"
)

// Ranges are named ranges of the calling thread that a profiler shows. Package cuda/nvtx has them.
type Ranges interface {
	Push(name string)
	Pop()
}

// Timeline records what a device does, which goes on after the host has asked for it. Package cuda/timeline has one. The lead rank starts and stops it.
type Timeline interface {
	Start() error
	Stop() ([]trace.Event, error)
	// Row is where the calls of the calling thread stand in it.
	Row() trace.Track
}

// spans hands what a rank does to a recorder, and steps, phases and layers to a profiler as they begin.
type spans struct {
	into   *trace.Recorder // nil: this step is not recorded
	ranges Ranges          // nil: no profiler
	phase  string          // open with the profiler
	open   int             // ranges that are: step, phase, layer
	thread trace.Track     // of the rank beside a Timeline: there operations are what the host asks for, and kernels the Timeline's; else ""
}

// recorder is what the device reports to; nil where nobody listens.
func (s *spans) recorder() compute.Recorder {
	if s.into == nil && s.ranges == nil {
		return nil
	}
	return s
}

// step begins a step.
func (s *spans) step(n int) { s.push("step " + strconv.Itoa(n)) }

func (s *spans) stepEnd() {
	s.close(0)
	s.phase = ""
}

func (s *spans) push(name string) {
	if s.ranges != nil {
		s.ranges.Push(name)
		s.open++
	}
}

// close ends ranges until only so many are open.
func (s *spans) close(keep int) {
	for ; s.open > keep; s.open-- {
		s.ranges.Pop()
	}
}

// Enter is a change of phase or layer.
func (s *spans) Enter(phase string, layer int) {
	if phase == s.phase {
		s.close(2) // step and phase stay
	} else if s.close(1); phase != "" {
		s.push(phase)
	}
	s.phase = phase
	if layer >= 0 {
		s.push(fmt.Sprintf("%s layer %d", phase, layer))
	}
}

// Span is something that has ended.
func (s *spans) Span(x compute.Span) {
	track, cat, args := trace.Track(x.Track), trace.Kernel, []trace.Arg(nil)
	switch {
	case track != trace.Collectives && s.thread != "":
		track, cat = s.thread, trace.Phase
	case track == trace.Collectives:
		cat, args = trace.Collective, []trace.Arg{trace.Int("bytes", x.Bytes), trace.Text("group", x.Group)}
	case track == trace.Host:
		cat = trace.Phase
	}
	s.into.Span(track, x.Name, cat, x.Start.UnixNano(), x.Dur.Nanoseconds(), args...)
}

// row is where steps stand.
func (s *spans) row() trace.Track {
	if s.thread != "" {
		return s.thread
	}
	return trace.Host
}
