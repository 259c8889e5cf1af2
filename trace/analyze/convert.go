package analyze

import (
	"cmp"
	"io"
	"slices"

	"heddle/trace"
)

// WriteChrome writes timelines as heddle's own format, Chrome JSON, and tells how many events that are.
func WriteChrome(w io.Writer, timelines []*Timeline) (events int, err error) {
	all := Events(timelines)
	return len(all), trace.WriteEvents(w, all)
}

// Events turns timelines into events of one trace, sorted by start. Each device becomes a rank: the file's own
// number if it has one device, else the next that is free. A call goes to the rank whose device it launched on,
// other things of a thread to where most of its calls went.
func Events(timelines []*Timeline) (out []trace.Event) {
	taken := map[int]bool{}
	for _, t := range timelines {
		ids, _ := byDevice(t)
		ranks := map[int]int{}
		for _, id := range ids {
			rank := id
			if t.Rank >= 0 && len(ids) == 1 {
				rank = t.Rank
			}
			for taken[rank] {
				rank++
			}
			taken[rank] = true
			ranks[id] = rank
		}
		if len(ids) == 0 {
			rank := max(t.Rank, 0)
			for taken[rank] {
				rank++
			}
			taken[rank] = true
			ranks[-1] = rank
			ids = []int{-1}
		}
		out = append(out, eventsOf(t, ids[0], ranks)...)
	}
	slices.SortStableFunc(out, func(a, b trace.Event) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Dur, a.Dur))
	})
	return out
}

func eventsOf(t *Timeline, first int, ranks map[int]int) (out []trace.Event) {
	cats := [...]string{Kernel: trace.Kernel, Comm: trace.Collective, Copy: trace.Copy, Fill: trace.Fill, Graph: "graph"}
	devices := map[launchKey]int{}
	for _, w := range t.Work {
		s := t.Streams[w.Stream]
		e := trace.Event{Name: t.Names[w.Name], Cat: cats[w.Kind], Rank: ranks[s.Device], Track: streamTrack(s), Start: w.Start, Dur: w.End - w.Start}
		if w.Corr != noCorr {
			devices[launchKey{w.Process, w.Corr}] = s.Device
			e.Args = append(e.Args, trace.Int("correlation", w.Corr))
		}
		if w.Group != 0 {
			e.Args = append(e.Args, trace.Text("group", t.Groups[w.Group]))
		}
		if w.Bytes != 0 {
			e.Args = append(e.Args, trace.Int("bytes", w.Bytes))
		}
		out = append(out, e)
	}
	for _, w := range t.Waits {
		s := t.Streams[w.Stream]
		e := trace.Event{Name: "Stream Wait Event", Cat: trace.Wait, Rank: ranks[s.Device], Track: streamTrack(s), Start: w.Start}
		if w.Corr != noCorr {
			e.Args = []trace.Arg{trace.Int("correlation", w.Corr)}
		}
		out = append(out, e)
	}
	votes := make([]map[int]int, len(t.Threads))
	for _, c := range t.Calls {
		rank := ranks[first]
		if d, ok := devices[launchKey{t.Threads[c.Thread].Process, c.Corr}]; ok && c.Corr != noCorr {
			rank = ranks[d]
			if votes[c.Thread] == nil {
				votes[c.Thread] = map[int]int{}
			}
			votes[c.Thread][rank]++
		}
		e := trace.Event{Name: t.Names[c.Name], Cat: trace.Launch, Rank: rank, Track: trace.Track(t.Threads[c.Thread].Name), Start: c.Start, Dur: c.End - c.Start}
		if c.Corr != noCorr {
			e.Args = []trace.Arg{trace.Int("correlation", c.Corr)}
		}
		out = append(out, e)
	}
	kinds := [...]string{Op: "cpu_op", Python: "python_function", Named: trace.Phase, Step: trace.Step, System: "system"}
	for _, r := range t.Ranges {
		out = append(out, trace.Event{Name: t.Names[r.Name], Cat: kinds[r.Kind], Rank: winner(votes[r.Thread], ranks[first]), Track: trace.Track(t.Threads[r.Thread].Name), Start: r.Start, Dur: r.End - r.Start})
	}
	return out
}

func streamTrack(s Stream) trace.Track {
	if s.Name == string(trace.Compute) || s.Name == string(trace.Collectives) {
		return trace.Track(s.Name)
	}
	return trace.Track("stream " + bytesFree(s.Name))
}

func bytesFree(name string) string { return string(bytesAfter([]byte(name), "stream ")) }

// winner is the rank with the most votes, the lowest of them if several have.
func winner(votes map[int]int, otherwise int) int {
	best := -1
	for rank, n := range votes {
		if best < 0 || n > votes[best] || n == votes[best] && rank < best {
			best = rank
		}
	}
	if best < 0 {
		return otherwise
	}
	return best
}

// WritePerfetto writes timelines as Perfetto's protobuf, and tells how many events that are.
func WritePerfetto(w io.Writer, timelines []*Timeline) (events int, err error) {
	all := Events(timelines)
	return len(all), trace.WritePerfetto(w, all)
}
