package analyze

import "slices"

// advise says one thing about each cause, with the time at stake: all of it, which no remedy brings back in full.
func advise(r *Report) []Advice {
	out := []Advice{}
	for _, t := range r.Causes {
		text := remedy(Cause(t.Cause), t.Busy)
		if Cause(t.Cause) == CauseUnknown && onlyOurs(r) {
			text = "nothing: a rank's own Go code between operations"
		}
		if text != "" && t.US > 0 {
			out = append(out, Advice{Cause: Cause(t.Cause), US: t.US, Text: text})
		}
	}
	return out
}

// onlyOurs tells whether every file is a run of heddle on the CPU: its ranks record no calls of a host, because they are the host.
func onlyOurs(r *Report) bool {
	return len(r.Files) > 0 && !slices.ContainsFunc(r.Files, func(f File) bool { return f.Format != "heddle" })
}

// remedy is at most 53 letters, so that it fits a line of the table.
func remedy(c Cause, busy bool) string {
	switch c {
	case CauseLaunch:
		return "capture the step in a CUDA graph, or fuse kernels"
	case CauseHost:
		return "prefetch, use another thread, or launch ahead"
	case CauseSync:
		return "drop .item() and synchronize, or read a step later"
	case CauseCopy:
		return "pin memory, copy in an own stream, prefetch"
	case CauseDependency:
		return "use one stream, or start the other stream earlier"
	case CauseComm:
		if busy {
			return "start it earlier, in buckets, beside the backward"
		}
		return "start it earlier, or compute something else first"
	case CauseLaunchGap:
		return "PDL (dependent launch), a graph, or fewer kernels"
	case CauseGraph:
		return "record with --cuda-graph-trace=node to see inside"
	case CauseStartup:
		return "warm up first, or set CUDA_MODULE_LOADING=EAGER"
	case CauseUnknown:
		return "record from the start, with runtime calls and syncs"
	}
	return ""
}
