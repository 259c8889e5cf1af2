package emulate

import (
	"encoding/json"
	"fmt"
	"io"
)

// Timeline is the order of events of a launch under a simple latency model, in clocks. It shows who waits for whom; it does not predict speed.
//
// The model: a warp issues one instruction a clock and is stopped only by waits. A wait ends when what it waits for has happened in the model's time. The tensor
// cores of an SM do one product after the other, 2,048 multiply-adds a clock. A TMA load takes 600 clocks and then the SM's port, 36 bytes a clock, a store the
// port alone. Barriers cost 20 clocks. (Latencies of an H100 as microbenchmarks publish them, rounded; a port's rate as bench/results has it.)
type Timeline struct {
	Slices []Slice
	names  map[[2]int]string
}

// Slice is one stretch of a track.
type Slice struct {
	Name  string
	CTA   int
	Track int     // a warp's index, or TensorTrack, PortTrack
	Start float64 // clocks
	End   float64
}

// Tracks that are no warps.
const (
	TensorTrack = 1000
	PortTrack   = 1001
)

const (
	macsPerClock = 2048.0
	loadLatency  = 600.0
	portBytes    = 36.0
	barrierCost  = 20.0
)

func (t *Timeline) add(name string, cta, track int, start, end float64) {
	if t != nil && end > start {
		t.Slices = append(t.Slices, Slice{name, cta, track, start, end})
	}
}

func (t *Timeline) name(cta, track int, name string) {
	if t == nil {
		return
	}
	if t.names == nil {
		t.names = map[[2]int]string{}
	}
	t.names[[2]int{cta, track}] = name
}

// until makes a warp wait for a moment of the model's time.
func (w *warp) until(moment float64, what string) {
	if moment > w.time {
		w.m.opt.Timeline.add(what, w.t.index, w.id, w.time, moment)
		w.time = moment
	}
}

// product runs one wgmma on the SM's tensor cores and gives its end.
func (t *cta) product(n, k int, issued float64) float64 {
	start := max(issued, t.tensorFree)
	t.tensorFree = start + float64(64*n*k)/macsPerClock
	t.c.m.opt.Timeline.add(fmt.Sprintf("m64n%dk%d", n, k), t.index, TensorTrack, start, t.tensorFree)
	return t.tensorFree
}

// move takes bytes through the SM's port and gives the end.
func (t *cta) move(name string, bytes int, ready float64) float64 {
	start := max(ready, t.portFree)
	t.portFree = start + float64(bytes)/portBytes
	t.c.m.opt.Timeline.add(name, t.index, PortTrack, start, t.portFree)
	return t.portFree
}

// End is when the last slice ends, in clocks.
func (t *Timeline) End() float64 {
	end := 0.0
	for _, s := range t.Slices {
		end = max(end, s.End)
	}
	return end
}

// WritePerfetto writes the timeline as trace events that Perfetto and chrome://tracing open: a process a CTA, a track a warp; one microsecond shown is one clock.
func (t *Timeline) WritePerfetto(w io.Writer) error {
	type event struct {
		Name  string            `json:"name"`
		Phase string            `json:"ph"`
		PID   int               `json:"pid"`
		TID   int               `json:"tid"`
		Start float64           `json:"ts"`
		Dur   float64           `json:"dur,omitempty"`
		Args  map[string]string `json:"args,omitempty"`
	}
	events := []event{}
	for at, name := range t.names {
		kind := "thread_name"
		if at[1] < 0 {
			kind = "process_name"
		}
		events = append(events, event{Name: kind, Phase: "M", PID: at[0], TID: max(0, at[1]), Args: map[string]string{"name": name}})
	}
	for _, s := range t.Slices {
		events = append(events, event{Name: s.Name, Phase: "X", PID: s.CTA, TID: s.Track, Start: s.Start, Dur: s.End - s.Start})
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}
