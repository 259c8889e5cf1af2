package analyze

import "strings"

// callKind classifies a call by its name, in CUDA's and HIP's spelling, with or without a version behind it.
func callKind(name string) CallKind {
	n := strings.ToLower(name)
	n = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(n, "cuda"), "cu"), "hip")
	switch {
	case strings.Contains(n, "launchhostfunc"):
		return OtherCall
	case strings.HasPrefix(n, "launch"), strings.HasPrefix(n, "graphlaunch"), strings.HasPrefix(n, "modulelaunch"), strings.HasPrefix(n, "extmodulelaunch"), strings.HasPrefix(n, "extlaunch"):
		return LaunchCall
	case strings.Contains(n, "synchronize"):
		return SyncCall
	case strings.HasPrefix(n, "memcpy"), strings.HasPrefix(n, "memset"), strings.HasPrefix(n, "memprefetch"):
		return CopyCall
	case strings.HasPrefix(n, "eventrecord"):
		return RecordEvent
	}
	return OtherCall
}

// isComm tells a kernel that communicates by its name.
func isComm(name string) bool {
	n := strings.ToLower(name)
	return strings.Contains(n, "nccl") || strings.Contains(n, "rccl") || strings.Contains(n, "nvshmem") || strings.Contains(n, "cross_device_reduce")
}

// isStep tells whether a range is a training step by its name: "ProfilerStep#5", "step 12", "iteration_3".
func isStep(name string) bool {
	n := strings.ToLower(name)
	for _, prefix := range []string{"profilerstep#", "step", "iteration", "iter", "train_step", "training step"} {
		if rest, ok := strings.CutPrefix(n, prefix); ok {
			rest = strings.TrimLeft(rest, " _#:-=")
			if rest != "" && strings.Trim(rest, "0123456789") == "" {
				return true
			}
		}
	}
	return false
}
