package analyze

// advise says one thing about each cause, with the time at stake: all of it, which no remedy brings back in full.
func advise(r *Report) []Advice {
	out := []Advice{}
	for _, t := range r.Causes {
		if text := remedy(Cause(t.Cause), t.Busy); text != "" && t.US > 0 {
			out = append(out, Advice{Cause: Cause(t.Cause), US: t.US, Text: text})
		}
	}
	return out
}

func remedy(c Cause, busy bool) string {
	switch c {
	case CauseLaunch:
		return "launches come too slowly: capture the step in a CUDA graph, or fuse small kernels"
	case CauseHost:
		return "the host computes between launches: prefetch, move it to another thread, or launch ahead"
	case CauseSync:
		return "the host waits for the device: drop .item(), .cpu() and synchronize, or read results a step later"
	case CauseCopy:
		return "copies run alone: pin host memory, copy in a stream of its own, prefetch the next batch"
	case CauseDependency:
		return "streams wait for each other: put dependent kernels in one stream, or start the other earlier"
	case CauseComm:
		if busy {
			return "communication runs alone: start it earlier, in buckets, beside the backward pass"
		}
		return "kernels wait for communication: start it earlier, or compute what does not need it first"
	case CauseLaunchGap:
		return "back to back, yet not overlapped: programmatic dependent launch or a graph halves such gaps"
	case CauseGraph:
		return "record with --cuda-graph-trace=node to see into the graphs"
	case CauseUnknown:
		return "the launches of these kernels were not recorded: start recording earlier, with runtime calls"
	}
	return ""
}
