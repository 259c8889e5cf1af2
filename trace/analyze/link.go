package analyze

import (
	"cmp"
	"slices"
)

// host is what the threads of a timeline did, in an order that can be searched.
type host struct {
	t       *Timeline
	calls   [][]int32 // by thread: calls by start
	ranges  [][]int32 // by thread: ranges by start, longer first
	parents []int32   // of a range: the innermost one that began before it and was still open, or -1
	steps   []int32   // ranges that are steps, by start
	links   []link    // calls by what they may have launched
	busiest []uint32  // threads by number of calls
	first   int64     // first and last event of the host
	last    int64
}

// launchKey is a correlation id, which counts within a process.
type launchKey struct {
	process uint32
	corr    int64
}

type link struct {
	launchKey
	call int32
}

func newHost(t *Timeline) *host {
	h := &host{t: t, calls: make([][]int32, len(t.Threads)), ranges: make([][]int32, len(t.Threads)), parents: make([]int32, len(t.Ranges)), links: make([]link, 0, len(t.Calls))}
	h.first, h.last = 1<<63-1, -1<<63
	for i, c := range t.Calls {
		h.calls[c.Thread] = append(h.calls[c.Thread], int32(i))
		if c.Corr != noCorr {
			h.links = append(h.links, link{launchKey{t.Threads[c.Thread].Process, c.Corr}, int32(i)})
		}
		h.first, h.last = min(h.first, c.Start), max(h.last, c.End)
	}
	for i, r := range t.Ranges {
		h.ranges[r.Thread] = append(h.ranges[r.Thread], int32(i))
		if r.Kind == Step {
			h.steps = append(h.steps, int32(i))
		}
		h.first, h.last = min(h.first, r.Start), max(h.last, r.End)
	}
	if !slices.IsSortedFunc(h.links, h.byLink) {
		slices.SortFunc(h.links, h.byLink)
	}
	for th := range t.Threads {
		byStart := func(a, b int32) int { return cmp.Compare(t.Calls[a].Start, t.Calls[b].Start) }
		if !slices.IsSortedFunc(h.calls[th], byStart) {
			slices.SortStableFunc(h.calls[th], byStart)
		}
		h.nest(h.ranges[th])
		h.busiest = append(h.busiest, uint32(th))
	}
	slices.SortStableFunc(h.steps, h.byStart)
	slices.SortStableFunc(h.busiest, func(a, b uint32) int { return cmp.Compare(len(h.calls[b]), len(h.calls[a])) })
	return h
}

// byLink sorts calls by correlation id. One id may sit on two calls (the runtime's and the driver's below it) or be
// none of a launch: a launch goes before another call, the outer before the inner.
func (h *host) byLink(a, b link) int {
	if a.launchKey != b.launchKey {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.corr, b.corr))
	}
	x, y := h.t.Calls[a.call], h.t.Calls[b.call]
	if starts(x.Kind) != starts(y.Kind) {
		if starts(x.Kind) {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(a.call, b.call))
}

// starts tells whether a call of that kind puts work into a stream.
func starts(k CallKind) bool { return k == LaunchCall || k == CopyCall }

// launcher is the call that launched w, nil if it was not recorded.
func (h *host) launcher(w Work) *Call {
	if w.Corr == noCorr {
		return nil
	}
	key := launchKey{w.Process, w.Corr}
	i, ok := slices.BinarySearchFunc(h.links, key, func(l link, k launchKey) int {
		return cmp.Or(cmp.Compare(l.process, k.process), cmp.Compare(l.corr, k.corr))
	})
	if !ok {
		return nil
	}
	return &h.t.Calls[h.links[i].call]
}

func (h *host) byStart(a, b int32) int {
	x, y := h.t.Ranges[a], h.t.Ranges[b]
	return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End))
}

// nest sorts the ranges of a thread and finds their parents.
func (h *host) nest(ranges []int32) {
	if !slices.IsSortedFunc(ranges, h.byStart) {
		slices.SortStableFunc(ranges, h.byStart)
	}
	var open []int32
	for _, r := range ranges {
		for len(open) > 0 && h.t.Ranges[open[len(open)-1]].End <= h.t.Ranges[r].Start {
			open = open[:len(open)-1]
		}
		h.parents[r] = -1
		if len(open) > 0 {
			h.parents[r] = open[len(open)-1]
		}
		open = append(open, r)
	}
}

// callsIn are the calls of a thread that overlap [start, end], found by their start: one call at a time per thread.
func (h *host) callsIn(thread uint32, start, end int64) []int32 {
	all := h.calls[thread]
	i, _ := slices.BinarySearchFunc(all, start, func(c int32, t int64) int { return cmp.Compare(h.t.Calls[c].Start, t) })
	// The runtime's call may hold driver's calls, so what began before may be a few places back.
	from := i
	for k := i - 1; k >= 0 && k >= i-8; k-- {
		if h.t.Calls[all[k]].End > start {
			from = k
		}
	}
	to := i
	for to < len(all) && h.t.Calls[all[to]].Start <= end {
		to++
	}
	return all[from:to]
}

// rangeOver is the innermost range of a thread that covers most of [start, end], nil if none does.
func (h *host) rangeOver(thread uint32, start, end int64) *Range {
	all := h.ranges[thread]
	middle := start + (end-start)/2
	i, _ := slices.BinarySearchFunc(all, middle, func(r int32, t int64) int {
		if h.t.Ranges[r].Start <= t {
			return -1
		}
		return 1
	})
	if i == 0 {
		return nil
	}
	for r := all[i-1]; r >= 0; r = h.parents[r] {
		x := &h.t.Ranges[r]
		if overlap := min(x.End, end) - max(x.Start, start); overlap*5 >= (end-start)*4 && overlap > 0 {
			return x
		}
	}
	return nil
}

// stepAt is the step that holds a time, empty if none does.
func (h *host) stepAt(time int64) string {
	i, _ := slices.BinarySearchFunc(h.steps, time, func(r int32, t int64) int {
		if h.t.Ranges[r].Start <= t {
			return -1
		}
		return 1
	})
	for k := i - 1; k >= 0 && k >= i-4; k-- {
		if r := h.t.Ranges[h.steps[k]]; r.End > time {
			return h.t.Names[r.Name]
		}
	}
	return ""
}
