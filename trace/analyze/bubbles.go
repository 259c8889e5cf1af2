package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Options of Bubbles. The zero value reports every gap.
type Options struct {
	MinGap int64 // ns; shorter gaps count in the totals but are not listed
}

// Bubbles finds the gaps of every device of the timelines, their causes, and what follows.
func Bubbles(timelines []*Timeline, opt Options) *Report {
	r := &Report{Devices: []Device{}, Causes: []Total{}, Advice: []Advice{}, Warnings: []string{}}
	for _, t := range timelines {
		r.Files = append(r.Files, fileOf(t))
		for _, w := range t.Warnings {
			r.Warnings = append(r.Warnings, t.Source+": "+w)
		}
		h := newHost(t)
		ids, all := byDevice(t)
		kernels := 0
		for _, id := range ids {
			kernels += len(all[id].kernels)
			if len(all[id].kernels) > 0 {
				r.Devices = append(r.Devices, deviceOf(t, h, id, all[id], opt))
			}
		}
		if kernels == 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: no kernels in %s: nothing is known of the device", t.Source, plural(t.Read, "event")))
		}
	}
	for _, d := range r.Devices {
		for _, c := range d.Causes {
			r.Causes = addTotal(r.Causes, c)
		}
	}
	sortTotals(r.Causes)
	r.Ranks = acrossRanks(r.Devices, timelines)
	r.Advice = advise(r)
	return r
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		what = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func fileOf(t *Timeline) File {
	f := File{File: t.Source, Format: t.Format, Events: t.Read, Kept: int64(len(t.Work) + len(t.Calls) + len(t.Ranges) + len(t.Waits)), Dropped: t.Dropped}
	if t.Rank >= 0 {
		rank := t.Rank
		f.Rank = &rank
	}
	return f
}

func deviceOf(t *Timeline, h *host, id int, s *deviceSpans, opt Options) Device {
	first, last := s.busy[0].start, s.busy[len(s.busy)-1].end
	busy := total(s.busy)
	exposed := subtract(s.comm, s.compute)
	comm := total(s.comm)
	d := Device{Device: id, Name: t.Devices[id], File: t.Source, Kernels: len(s.kernels), Streams: s.streams, FirstNS: first,
		BusyUS: micros(busy), SpanUS: micros(last - first), IdleUS: micros(last - first - busy), CopyUS: micros(total(s.copies)),
		CommUS: micros(comm), OverlapUS: micros(comm - total(exposed)), Gaps: []Gap{}, Exposed: []Gap{}, Steps: []Total{}, spans: *s}
	if t.Rank >= 0 {
		rank := t.Rank
		d.Rank = &rank
	}
	if h.first < h.last {
		d.StartupUS, d.TailUS = micros(max(0, first-h.first)), micros(max(0, h.last-last))
	}
	j := &judge{t: t, h: h, d: s, waits: map[uint32][]Wait{}}
	for _, w := range t.Waits {
		j.waits[w.Stream] = append(j.waits[w.Stream], w)
	}
	for _, w := range j.waits {
		slices.SortStableFunc(w, func(a, b Wait) int { return cmp.Compare(a.Start, b.Start) })
	}
	d.count(j)
	all := make([]Gap, 0, len(s.kernels))
	for _, g := range s.gaps() {
		before, after := s.work[g.before], s.work[g.after]
		out := Gap{StartUS: micros(g.start - first), DurUS: micros(g.end - g.start), start: g.start, end: g.end,
			Before: t.Names[before.Name], After: t.Names[after.Name], Stream: t.Streams[after.Stream].Name}
		j.explain(g, &out)
		all = append(all, out)
	}
	bare := bareComm(j, exposed, first)
	d.GapCount = len(all)
	d.sum(all, bare)
	d.Gaps, d.Exposed = longest(all, opt.MinGap), longest(bare, opt.MinGap)
	return d
}

// count counts copies, communication, and how kernels were launched.
func (d *Device) count(j *judge) {
	var delays []int64
	for _, w := range j.d.work {
		switch w.Kind {
		case Copy, Fill:
			d.Copies++
			continue
		case Graph:
			continue
		case Comm:
			d.Comm++
		}
		if call := j.h.launcher(w); call != nil {
			d.Linked++
			delays = append(delays, w.Start-call.Start)
		} else {
			d.Unlinked++
		}
	}
	j.linked = d.Linked > 0
	if n := len(delays); n > 0 {
		slices.Sort(delays)
		d.DelayUS = micros(delays[n/2]+delays[(n-1)/2]) / 2
	}
}

// bareComm are the times in which only communication ran.
func bareComm(j *judge, exposed []span, first int64) []Gap {
	out := make([]Gap, 0, len(exposed))
	at := 0 // the kernel that began last before the end of the time
	running := -1
	before := ""
	for _, s := range exposed {
		for ; at < len(j.d.kernels) && j.d.work[j.d.kernels[at]].Start < s.end; at++ {
			w := j.d.work[j.d.kernels[at]]
			if w.Kind == Comm {
				running = j.d.kernels[at]
			} else {
				before = j.t.Names[w.Name]
			}
		}
		g := Gap{StartUS: micros(s.start - first), DurUS: micros(s.end - s.start), Cause: CauseComm, Before: before, start: s.start, end: s.end}
		for k := at; k < len(j.d.kernels); k++ {
			if w := j.d.work[j.d.kernels[k]]; w.Kind != Comm {
				g.After = j.t.Names[w.Name]
				break
			}
		}
		if running >= 0 {
			w := j.d.work[running]
			g.Stream = j.t.Streams[w.Stream].Name
			g.Evidence = "only " + Short(j.t.Names[w.Name]) + " ran"
			if call := j.h.launcher(w); call != nil {
				corr := w.Corr
				g.Corr, g.Step = &corr, j.h.stepAt(call.Start)
			} else {
				g.Step = j.h.stepAt(s.start)
			}
		}
		out = append(out, g)
	}
	return out
}

// longest sorts gaps by length, those of one length by time, and leaves out the shorter ones.
func longest(gaps []Gap, least int64) []Gap {
	order := make([]int, 0, len(gaps))
	for i, g := range gaps {
		if g.end-g.start >= least {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(gaps[b].end-gaps[b].start, gaps[a].end-gaps[a].start), cmp.Compare(a, b))
	})
	out := make([]Gap, len(order))
	for i, k := range order {
		out[i] = gaps[k]
	}
	return out
}
