package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Options of Bubbles. The zero value reports every gap.
type Options struct {
	MinGap  int64 // ns; shorter gaps count in the totals but are not listed
	MaxGaps int   // how many to list a device, the longest; 0 for all
}

// Bubbles finds the gaps of every device of the timelines, their causes, and what follows.
func Bubbles(timelines []*Timeline, opt Options) *Report {
	r := &Report{Devices: []Device{}, Causes: []Total{}, Advice: []Advice{}, Warnings: []string{}}
	for _, t := range timelines {
		r.Files = append(r.Files, fileOf(t))
		for _, w := range t.Warnings {
			r.Warnings = append(r.Warnings, t.Source+": "+w)
		}
		if len(t.Dropped) > 0 {
			r.Warnings = append(r.Warnings, t.Source+": "+oddities(t))
		}
		h := newHost(t)
		ids, all := byDevice(t)
		kernels := 0
		for _, id := range ids {
			kernels += len(all[id].kernels)
			if len(all[id].kernels) > 0 {
				if n := all[id].processes; n > 1 {
					r.Warnings = append(r.Warnings, fmt.Sprintf("%s: device %d has kernels of %d processes, which may be as many devices under one number", t.Source, id, n))
				}
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

// oddities counts the events that made no sense, by reason.
func oddities(t *Timeline) string {
	total := int64(0)
	var parts []string
	for reason, n := range t.Dropped {
		total += n
		parts = append(parts, fmt.Sprintf("%s: %d", reason, n))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%s made no sense (%s)", plural(total, "event"), strings.Join(parts, ", "))
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
		CommUS: micros(comm), OverlapUS: micros(comm - total(exposed)), Gaps: []Gap{}, Exposed: []Gap{}, Steps: []Total{}, spans: *s, timeline: t}
	if rank := t.rankOf(id); rank >= 0 {
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
	gaps, alone := s.gaps(), j.bareComm(exposed)
	d.GapCount = len(gaps)
	d.sum(j, gaps, alone)
	d.Gaps, d.Exposed = []Gap{}, []Gap{}
	for _, g := range longest(gaps, func(g gap) span { return g.span }, opt) {
		d.Gaps = append(d.Gaps, j.gap(g, first))
	}
	for _, e := range longest(alone, func(e bare) span { return e.span }, opt) {
		d.Exposed = append(d.Exposed, j.exposed(e, first))
	}
	return d
}

// gap judges a gap.
func (j *judge) gap(g gap, first int64) Gap {
	before, after := &j.d.work[g.before], &j.d.work[g.after]
	out := Gap{StartUS: micros(g.start - first), DurUS: micros(g.end - g.start), start: g.start, end: g.end,
		Before: j.t.Names[before.Name], After: j.t.Names[after.Name], Stream: j.t.Streams[after.Stream].Name}
	j.explain(g, &out)
	return out
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

// bare is a time in which only communication ran. The rest indexes work, -1 for none.
type bare struct {
	span
	before, running, after int // before and after communicate not, running does
}

func (j *judge) bareComm(exposed []span) []bare {
	out := make([]bare, 0, len(exposed))
	at, before, running := 0, -1, -1
	for _, s := range exposed {
		for ; at < len(j.d.kernels) && j.d.work[j.d.kernels[at]].Start < s.end; at++ {
			if k := j.d.kernels[at]; j.d.work[k].Kind == Comm {
				running = k
			} else {
				before = k
			}
		}
		b := bare{s, before, running, -1}
		for k := at; k < len(j.d.kernels); k++ {
			if j.d.work[j.d.kernels[k]].Kind != Comm {
				b.after = j.d.kernels[k]
				break
			}
		}
		out = append(out, b)
	}
	return out
}

// exposed describes such a time.
func (j *judge) exposed(b bare, first int64) Gap {
	g := Gap{StartUS: micros(b.start - first), DurUS: micros(b.end - b.start), Cause: CauseComm, start: b.start, end: b.end}
	if b.before >= 0 {
		g.Before = j.t.Names[j.d.work[b.before].Name]
	}
	if b.after >= 0 {
		g.After = j.t.Names[j.d.work[b.after].Name]
	}
	w := j.d.work[b.running]
	g.Stream = j.t.Streams[w.Stream].Name
	g.Evidence = "only " + Short(j.t.Names[w.Name]) + " ran"
	g.Step = j.h.stepAt(b.start)
	if call := j.h.launcher(w); call != nil {
		corr := w.Corr
		g.Corr, g.Step = &corr, j.h.stepAt(call.Start)
	}
	return g
}

// longest are the gaps to list, by length, those of one length by time.
func longest[G any](gaps []G, of func(G) span, opt Options) []G {
	order := make([]int, 0, len(gaps))
	length := func(i int) int64 { s := of(gaps[i]); return s.end - s.start }
	for i := range gaps {
		if length(i) >= opt.MinGap {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(length(b), length(a)), cmp.Compare(a, b)) })
	if opt.MaxGaps > 0 && len(order) > opt.MaxGaps {
		order = order[:opt.MaxGaps]
	}
	out := make([]G, len(order))
	for i, k := range order {
		out[i] = gaps[k]
	}
	return out
}
