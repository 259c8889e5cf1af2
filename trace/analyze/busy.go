package analyze

import (
	"cmp"
	"slices"
)

// span is a stretch of time, ns.
type span struct{ start, end int64 }

// union merges spans that come sorted by start; adjoining ones become one. The result is disjoint and sorted.
func union(sorted []span) []span {
	var out []span
	for _, s := range sorted {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func total(spans []span) (ns int64) {
	for _, s := range spans {
		ns += s.end - s.start
	}
	return ns
}

// within is the length of the part of disjoint, sorted spans that lies in [start, end).
func within(spans []span, start, end int64) (ns int64) {
	i, _ := slices.BinarySearchFunc(spans, start, func(s span, t int64) int { return cmp.Compare(s.end, t) })
	for ; i < len(spans) && spans[i].start < end; i++ {
		ns += max(0, min(spans[i].end, end)-max(spans[i].start, start))
	}
	return ns
}

// subtract is what of a is not in b; both disjoint and sorted, as is the result.
func subtract(a, b []span) (out []span) {
	j := 0
	for _, s := range a {
		for j < len(b) && b[j].end <= s.start {
			j++
		}
		for k := j; k < len(b) && b[k].start < s.end; k++ {
			if b[k].start > s.start {
				out = append(out, span{s.start, b[k].start})
			}
			s.start = max(s.start, b[k].end)
		}
		if s.start < s.end {
			out = append(out, s)
		}
	}
	return out
}

// deviceSpans is the work of one device, by kind.
type deviceSpans struct {
	work      []Work // sorted by start
	kernels   []int  // in work
	streams   int
	processes int
	busy      []span // of kernels
	comm      []span
	compute   []span // of kernels that do not communicate
	copies    []span // and fills
	graphs    []span
}

// byDevice sorts the work of a timeline by device and start. Devices come by number.
func byDevice(t *Timeline) (ids []int, all map[int]*deviceSpans) {
	all = map[int]*deviceSpans{}
	sizes := map[int]int{}
	for _, w := range t.Work {
		sizes[t.Streams[w.Stream].Device]++
	}
	for id, n := range sizes {
		ids = append(ids, id)
		all[id] = &deviceSpans{}
		if len(sizes) == 1 {
			all[id].work = t.Work // sorted in place
		} else {
			all[id].work = make([]Work, 0, n)
		}
	}
	for _, w := range t.Work {
		if len(sizes) > 1 {
			d := all[t.Streams[w.Stream].Device]
			d.work = append(d.work, w)
		}
	}
	slices.Sort(ids)
	for _, d := range all {
		d.sort()
	}
	return ids, all
}

func (d *deviceSpans) sort() {
	byStart := func(a, b Work) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) }
	if !slices.IsSortedFunc(d.work, byStart) { // most files are sorted, and stable sorting is slow
		slices.SortStableFunc(d.work, byStart)
	}
	var busy, comm, compute, copies, graphs []span
	streams, processes := map[uint32]bool{}, map[uint32]bool{}
	for i, w := range d.work {
		s := span{w.Start, w.End}
		switch w.Kind {
		case Copy, Fill:
			copies = append(copies, s)
			continue
		case Graph:
			graphs = append(graphs, s)
			continue
		case Comm:
			comm = append(comm, s)
		default:
			compute = append(compute, s)
		}
		d.kernels = append(d.kernels, i)
		busy = append(busy, s)
		streams[w.Stream], processes[w.Process] = true, true
	}
	d.streams, d.processes = len(streams), len(processes)
	d.busy, d.comm, d.compute, d.copies, d.graphs = union(busy), union(comm), union(compute), union(copies), union(graphs)
}

// gap is a time between kernels: before ended last, after began first. Both index work.
type gap struct {
	span
	before, after int
}

// gaps are the times in which no kernel of the device ran, in order.
func (d *deviceSpans) gaps() (out []gap) {
	last := -1
	for _, k := range d.kernels {
		w := d.work[k]
		if last >= 0 && w.Start > d.work[last].End {
			out = append(out, gap{span{d.work[last].End, w.Start}, last, k})
		}
		if last < 0 || w.End >= d.work[last].End {
			last = k
		}
	}
	return out
}
