package analyze

// queued: the launch call had returned before the last kernel ended, or, if there is none, before the recording began.
func (j *judge) queued(g gap, before, after *Work, call *Call, out *Gap) {
	lead := "the launch was not recorded, so it came before the recording began"
	if call != nil {
		lead = j.say("queued %s before the last kernel ended (correlation %d)", j.length(g.start-call.End), call.Corr)
	}
	other := before.Stream != after.Stream
	wait := j.waitOf(after, call)
	copied := j.copied(g)
	own := j.copiedIn(g, after.Stream)
	switch {
	case own > 0 && (most(copied, g.span) || g.end-g.start-copied <= launchGap*int64(own+1)):
		out.Cause, out.Evidence = CauseCopy, j.say("%s; copies in its own stream (%d) took %s of the gap", lead, own, j.length(copied))
	case most(copied, g.span):
		out.Cause, out.Evidence = CauseDependency, j.say("%s; copies in another stream took %s of the gap", lead, j.length(copied))
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
		out.Cause, out.Evidence = CauseCopy, j.say("copies took %s of the gap", j.length(j.copied(g)))
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
