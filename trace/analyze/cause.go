package analyze

import "fmt"

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
	quiet  bool              // only causes are wanted, no evidence
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
	lead := j.say("%s (correlation %d) began %s after the last kernel ended", name, call.Corr, j.length(call.Start-g.start))
	window := span{g.start, call.Start}
	copied := j.copied(g)
	sync, previous := j.syncs(call, window)
	if sync != nil && !most(copied, g.span) {
		waited := min(sync.End, window.end) - max(sync.Start, window.start)
		covers := sync.Start <= g.start && sync.End >= g.start
		if most(waited, window) || covers && call.Start-sync.End <= dispatch {
			out.Cause, out.Call = CauseSync, j.t.Names[sync.Name]
			out.Evidence = j.say("%s; %s returned %s before it", lead, out.Call, j.length(call.Start-sync.End))
			j.inRange(call.Thread, window, out)
			return
		}
	}
	if moved := j.copyCall(call, window); most(copied, g.span) || moved != nil {
		out.Cause = CauseCopy
		out.Evidence = j.say("%s; copies took %s of the gap", lead, j.length(copied))
		if moved != nil {
			out.Call = j.t.Names[moved.Name]
			out.Evidence += j.say("; the host was in %s (correlation %d)", out.Call, moved.Corr)
		}
		return
	}
	if !most(window.end-window.start, g.span) {
		j.launching(g, call, lead, out)
		return
	}
	if previous != nil && call.Start-previous.End <= dispatch {
		out.Cause, out.Call = CauseLaunch, name
		out.Evidence = j.say("%s, %s after the previous launch call", lead, j.length(call.Start-previous.End))
		j.inRange(call.Thread, span{previous.End, call.Start}, out)
		return
	}
	out.Cause, out.Evidence = CauseHost, lead
	j.hostWas(call, window, out)
}

// launching: the launch itself took most of the gap.
func (j *judge) launching(g gap, call *Call, lead string, out *Gap) {
	out.Cause, out.Call = CauseLaunch, j.t.Names[call.Name]
	out.Evidence = j.say("%s and took %s; the kernel began %s after it began", lead, j.length(call.End-call.Start), j.length(g.end-call.Start))
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

// syncs finds the last call that waited for the device in a window before call, and the launch before call: on its
// thread, or, if that one made no call about then, on the others of its process. Go's goroutines change threads, and
// PyTorch launches the backward pass from another thread than the forward pass.
func (j *judge) syncs(call *Call, window span) (sync, previous *Call) {
	calls := 0
	look := func(thread uint32) {
		all := j.h.callsIn(thread, window.start-dispatch, window.end)
		for i := len(all) - 1; i >= 0; i-- {
			c := &j.t.Calls[all[i]]
			if c.Start >= call.Start {
				continue
			}
			calls++
			if c.Kind == SyncCall && c.End >= window.start && (sync == nil || c.End > sync.End) {
				sync = c
			}
			if c.Kind == LaunchCall && (previous == nil || c.End > previous.End) {
				previous = c
			}
		}
	}
	look(call.Thread)
	if calls == 0 {
		for _, th := range j.siblings(call.Thread) {
			look(th)
		}
	}
	return sync, previous
}

// siblings are the other threads of a thread's process, those with the most calls first, and no more than four.
func (j *judge) siblings(thread uint32) (threads []uint32) {
	for _, th := range j.h.busiest {
		if th != thread && j.t.Threads[th].Process == j.t.Threads[thread].Process && len(threads) < 4 {
			threads = append(threads, th)
		}
	}
	return threads
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
	threads := append([]uint32{call.Thread}, j.siblings(call.Thread)...)
	for _, th := range threads {
		name, took := j.callsMost(th, call, window)
		j.inRange(th, window, out)
		if most(took, window) {
			out.Call = j.t.Names[name]
		}
		if isLoading(out.Call) {
			out.Cause = CauseStartup
		}
		if out.Call != "" || out.Range != "" {
			if !j.quiet {
				out.Evidence += "; " + j.t.Threads[th].Name + " was in " + joined(out.Call, out.Range)
			}
			return
		}
	}
	if name, took := j.callsMost(call.Thread, call, window); took*10 >= window.end-window.start {
		out.Call = j.t.Names[name]
		out.Evidence += j.say("; %s of it in %s, most of the rest in nothing that was recorded", j.length(took), out.Call)
	}
}

// callsMost is the name whose calls, but for the one given, take most of a window on a thread, and how much that is.
func (j *judge) callsMost(thread uint32, but *Call, window span) (name uint32, took int64) {
	sums := map[uint32]int64{}
	for _, i := range j.h.callsIn(thread, window.start, window.end) {
		c := &j.t.Calls[i]
		if n := min(c.End, window.end) - max(c.Start, window.start); c != but && n > 0 {
			if sums[c.Name] += n; sums[c.Name] > took {
				name, took = c.Name, sums[c.Name]
			}
		}
	}
	return name, took
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
	lead := j.say("%s (correlation %d) was under way for %s when the last kernel ended", j.t.Names[call.Name], call.Corr, j.length(g.start-call.Start))
	j.launching(g, call, lead, out)
	if copied := j.copied(g); most(copied, g.span) {
		out.Cause = CauseCopy
		out.Evidence += j.say("; copies took %s of the gap", j.length(copied))
	}
	j.inRange(call.Thread, g.span, out)
}

// say is fmt.Sprintf, unless nobody will read it.
func (j *judge) say(format string, args ...any) string {
	if j.quiet {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func (j *judge) length(ns int64) string {
	if j.quiet {
		return ""
	}
	return length(ns)
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
