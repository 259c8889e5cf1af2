package analyze

import (
	"fmt"
)

// What counts as how much. Each is a choice, so each has its reason.
const (
	// A device takes 0.1 to 3 µs from one kernel to the next that is queued behind it (CUPTI on an H200: 0.06 in a
	// graph, 1 µs in a stream, 4 µs with an event record between).
	launchGap = 3_000
	// What a host needs from one launch to the next when it does nothing but launch: 3 µs for the call, tens of µs
	// for a framework's dispatch above it.
	dispatch = 50_000
)

// judge decides the causes of one device's gaps.
type judge struct {
	t      *Timeline
	h      *host
	d      *deviceSpans
	linked bool              // some kernel's launch was recorded
	waits  map[uint32][]Wait // by stream, in order
	firsts map[uint32]int    // the first kernel of each name
}

// explain fills in the cause of a gap and the evidence for it. The order is fixed:
//
//	a graph ran that was recorded without its kernels    graph
//	the launch call began after the last kernel ended    sync, copy, start-up, launch, host
//	the launch call was under way                        copy, start-up, launch
//	queued in time, a copy ran in the same stream        copy
//	queued in time, another stream was waited for        communication, dependency
//	queued in time, short                                launch-gap
//
// A kernel launched before the recording began was queued in time.
func (j *judge) explain(g gap, out *Gap) {
	before, after := &j.d.work[g.before], &j.d.work[g.after]
	call := j.h.launcher(*after)
	if call != nil {
		corr := after.Corr
		out.Corr = &corr
		out.Step = j.h.stepAt(call.Start)
	} else {
		out.Step = j.h.stepAt(g.end)
	}
	switch {
	case most(within(j.d.graphs, g.start, g.end), g.span):
		out.Cause, out.Evidence = CauseGraph, "a graph ran meanwhile, recorded without its kernels"
	case call == nil && !j.linked:
		j.noLaunches(g, out)
	case call == nil:
		j.queued(g, before, after, nil, out)
	case call.Start > g.start:
		j.late(g, call, out)
	case call.End > g.start:
		j.underWay(g, call, out)
	default:
		j.queued(g, before, after, call, out)
	}
}

// most tells whether ns is at least half of s.
func most(ns int64, s span) bool { return ns > 0 && ns*2 >= s.end-s.start }

func (j *judge) copied(g gap) int64 { return within(j.d.copies, g.start, g.end) }

// late: when the last kernel had ended, the host had not yet begun to launch the next. What did its thread do?
func (j *judge) late(g gap, call *Call, out *Gap) {
	name := j.t.Names[call.Name]
	lead := fmt.Sprintf("%s (correlation %d) began %s after the last kernel ended", name, call.Corr, length(call.Start-g.start))
	window := span{g.start, call.Start}
	copied := j.copied(g)
	sync, previous := j.syncs(call, window)
	if sync != nil && !most(copied, g.span) {
		waited := min(sync.End, window.end) - max(sync.Start, window.start)
		covers := sync.Start <= g.start && sync.End >= g.start
		if most(waited, window) || covers && call.Start-sync.End <= dispatch {
			out.Cause, out.Call = CauseSync, j.t.Names[sync.Name]
			out.Evidence = fmt.Sprintf("%s; %s returned %s before it", lead, out.Call, length(call.Start-sync.End))
			j.inRange(call.Thread, window, out)
			return
		}
	}
	if moved := j.copyCall(call, window); most(copied, g.span) || moved != nil {
		out.Cause = CauseCopy
		out.Evidence = fmt.Sprintf("%s; copies took %s of the gap", lead, length(copied))
		if moved != nil {
			out.Call = j.t.Names[moved.Name]
			out.Evidence += fmt.Sprintf("; the host was in %s (correlation %d)", out.Call, moved.Corr)
		}
		return
	}
	if !most(window.end-window.start, g.span) {
		j.launching(g, call, lead, out)
		return
	}
	if previous != nil && call.Start-previous.End <= dispatch {
		out.Cause, out.Call = CauseLaunch, name
		out.Evidence = fmt.Sprintf("%s, %s after the previous launch call", lead, length(call.Start-previous.End))
		j.inRange(call.Thread, span{previous.End, call.Start}, out)
		return
	}
	out.Cause, out.Evidence = CauseHost, lead
	j.hostWas(call, window, out)
}

// launching: the launch itself took most of the gap.
func (j *judge) launching(g gap, call *Call, lead string, out *Gap) {
	out.Cause, out.Call = CauseLaunch, j.t.Names[call.Name]
	out.Evidence = fmt.Sprintf("%s and took %s; the kernel began %s after it began", lead, length(call.End-call.Start), length(g.end-call.Start))
	switch {
	case g.end-g.start > dispatch && call.End-call.Start > dispatch && j.isFirst(g.after):
		out.Cause = CauseStartup
		out.Evidence += ", the first of its name: its code was loaded"
	case g.end-call.End > dispatch && most(g.end-call.End, g.span):
		out.Cause = CauseUnknown
		out.Evidence += ", though the call had returned"
	}
}

// isFirst tells whether a kernel is the first of its name on the device.
func (j *judge) isFirst(k int) bool {
	if j.firsts == nil {
		j.firsts = map[uint32]int{}
		for _, i := range j.d.kernels {
			if _, ok := j.firsts[j.d.work[i].Name]; !ok {
				j.firsts[j.d.work[i].Name] = i
			}
		}
	}
	return j.firsts[j.d.work[k].Name] == k
}

// syncs finds the last call that waited for the device in a window before call, and the launch before call, both on
// its thread.
func (j *judge) syncs(call *Call, window span) (sync, previous *Call) {
	all := j.h.callsIn(call.Thread, window.start-dispatch, window.end)
	for i := len(all) - 1; i >= 0; i-- {
		c := &j.t.Calls[all[i]]
		switch {
		case c.Start >= call.Start:
		case c.Kind == SyncCall && sync == nil && c.End >= window.start:
			sync = c
		case c.Kind == LaunchCall && previous == nil:
			previous = c
		}
	}
	return sync, previous
}

// copyCall is a copying call that took most of the window: one that waits for its data.
func (j *judge) copyCall(call *Call, window span) *Call {
	for _, i := range j.h.callsIn(call.Thread, window.start, window.end) {
		if c := &j.t.Calls[i]; c.Kind == CopyCall && c != call && most(min(c.End, window.end)-max(c.Start, window.start), window) {
			return c
		}
	}
	return nil
}

// inRange names the range of a thread that covers a window.
func (j *judge) inRange(thread uint32, window span, out *Gap) {
	if r := j.h.rangeOver(thread, window.start, window.end); r != nil {
		out.Range = j.t.Names[r.Name]
	}
}

// hostWas says what the host did in a window: the longest call, the innermost range; of the launching thread, or, if
// that one has nothing to say, of another of its process.
func (j *judge) hostWas(call *Call, window span, out *Gap) {
	threads := []uint32{call.Thread}
	for _, th := range j.h.busiest {
		if th != call.Thread && j.t.Threads[th].Process == j.t.Threads[call.Thread].Process && len(threads) < 5 {
			threads = append(threads, th)
		}
	}
	for _, th := range threads {
		var longest *Call
		for _, i := range j.h.callsIn(th, window.start, window.end) {
			if c := &j.t.Calls[i]; c != call && (longest == nil || c.End-c.Start > longest.End-longest.Start) {
				longest = c
			}
		}
		j.inRange(th, window, out)
		if longest != nil && most(min(longest.End, window.end)-max(longest.Start, window.start), window) {
			out.Call = j.t.Names[longest.Name]
		}
		if isLoading(out.Call) {
			out.Cause = CauseStartup
		}
		if out.Call != "" || out.Range != "" {
			out.Evidence += "; " + j.t.Threads[th].Name + " was in " + joined(out.Call, out.Range)
			return
		}
	}
}

func joined(call, rng string) string {
	switch {
	case call == "":
		return Short(rng)
	case rng == "":
		return call
	}
	return call + " within " + Short(rng)
}

// underWay: the launch call had begun but not returned when the last kernel ended.
func (j *judge) underWay(g gap, call *Call, out *Gap) {
	lead := fmt.Sprintf("%s (correlation %d) was under way for %s when the last kernel ended", j.t.Names[call.Name], call.Corr, length(g.start-call.Start))
	j.launching(g, call, lead, out)
	if copied := j.copied(g); most(copied, g.span) {
		out.Cause = CauseCopy
		out.Evidence += fmt.Sprintf("; copies took %s of the gap", length(copied))
	}
	j.inRange(call.Thread, g.span, out)
}

// queued: the launch call had returned before the last kernel ended, or, if there is none, before the recording began.
func (j *judge) queued(g gap, before, after *Work, call *Call, out *Gap) {
	lead := "the launch was not recorded, so it came before the recording began"
	if call != nil {
		lead = fmt.Sprintf("queued %s before the last kernel ended (correlation %d)", length(g.start-call.End), call.Corr)
	}
	other := before.Stream != after.Stream
	wait := j.waitOf(after, call)
	copied := j.copied(g)
	own := j.copiedIn(g, after.Stream)
	switch {
	case own > 0 && (most(copied, g.span) || g.end-g.start-copied <= launchGap*int64(own+1)):
		out.Cause, out.Evidence = CauseCopy, fmt.Sprintf("%s; %s in its own stream took %s of the gap", lead, plural(int64(own), "copy"), length(copied))
	case most(copied, g.span):
		out.Cause, out.Evidence = CauseDependency, fmt.Sprintf("%s; copies in another stream took %s of the gap", lead, length(copied))
	case other && before.Kind == Comm && (wait || g.end-g.start > launchGap):
		out.Cause, out.Evidence = CauseComm, lead+"; waited for communication in "+j.streamName(before.Stream)
	case other && (wait || g.end-g.start > launchGap):
		out.Cause, out.Evidence = CauseDependency, lead+"; waited for "+j.streamName(before.Stream)
	case g.end-g.start <= launchGap:
		out.Cause, out.Evidence = CauseLaunchGap, lead
	default:
		j.queuedLong(before, call, lead, out)
	}
}

// queuedLong: in the same stream, queued, and yet not started.
func (j *judge) queuedLong(before *Work, call *Call, lead string, out *Gap) {
	first := j.h.launcher(*before)
	if first == nil || call == nil {
		out.Cause, out.Evidence = CauseUnknown, lead
		return
	}
	if first == call {
		out.Cause, out.Evidence = CauseDependency, lead+"; both are nodes of one graph launch"
		return
	}
	for _, i := range j.h.callsIn(call.Thread, first.End, call.Start) {
		if j.t.Calls[i].Kind == RecordEvent {
			out.Cause, out.Call = CauseLaunchGap, j.t.Names[j.t.Calls[i].Name]
			out.Evidence = lead + "; an event is recorded between the two kernels"
			return
		}
	}
	out.Cause, out.Evidence = CauseUnknown, lead
}

// waitOf tells whether the stream was told to wait for another between its previous kernel's launch and this one's.
func (j *judge) waitOf(after *Work, call *Call) bool {
	if call == nil {
		return false
	}
	waits := j.waits[after.Stream]
	for i := len(waits) - 1; i >= 0; i-- {
		if waits[i].Start <= call.Start {
			return call.Start-waits[i].Start < 1_000_000
		}
	}
	return false
}

// copiedIn counts the copies and fills in the gap that were in a stream.
func (j *judge) copiedIn(g gap, stream uint32) (n int) {
	for i := g.before; i < g.after; i++ { // copies that began before the last kernel were in another stream than it
		if w := j.d.work[i]; !w.Kind.IsKernel() && w.Stream == stream && w.End > g.start {
			n++
		}
	}
	return n
}

func (j *judge) streamName(s uint32) string { return "stream " + j.t.Streams[s].Name }

// noLaunches: no launch at all was recorded. On a CPU rank there are none: the thread that computes is the host.
func (j *judge) noLaunches(g gap, out *Gap) {
	if most(j.copied(g), g.span) {
		out.Cause, out.Evidence = CauseCopy, fmt.Sprintf("copies took %s of the gap", length(j.copied(g)))
		return
	}
	process := j.d.work[g.after].Process
	for _, th := range j.h.busiest {
		if j.t.Threads[th].Process != process {
			continue
		}
		if r := j.h.rangeOver(th, g.start, g.end); r != nil {
			out.Cause, out.Range = CauseHost, j.t.Names[r.Name]
			out.Evidence = j.t.Threads[th].Name + " was in " + Short(out.Range)
			return
		}
	}
	out.Cause, out.Evidence = CauseUnknown, "no launch and no range of the host was recorded"
}

// length prints a duration in µs or ms, to three digits.
func length(ns int64) string {
	switch {
	case ns < 0:
		return "-" + length(-ns)
	case ns < 100_000:
		return fmt.Sprintf("%.1f µs", float64(ns)/1e3)
	case ns < 10_000_000:
		return fmt.Sprintf("%.0f µs", float64(ns)/1e3)
	}
	return fmt.Sprintf("%.1f ms", float64(ns)/1e6)
}
