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

// isLoading tells calls that load code, which happens once.
func isLoading(call string) bool {
	return strings.Contains(call, "ModuleLoad") || strings.Contains(call, "LibraryLoad") || strings.HasPrefix(call, "cuLink") || strings.Contains(call, "GraphInstantiate")
}

// Short is a C++ name without return type, namespaces, template arguments and parameters, which make it long. Other
// names stay as they are.
func Short(name string) string {
	if !strings.ContainsAny(name, "<(") || strings.HasPrefix(name, "<") || strings.Contains(name, ".py(") || strings.Contains(name, " (") && !strings.HasPrefix(name, "void ") {
		return name
	}
	s := strings.ReplaceAll(strings.TrimPrefix(name, "void "), "(anonymous namespace)::", "")
	var b strings.Builder
	depth := 0
	for _, r := range s {
		switch {
		case r == '<':
			depth++
		case r == '>':
			depth = max(0, depth-1)
		case depth > 0:
		case r == '(' && b.Len() > 0:
			return named(b.String(), s)
		default:
			b.WriteRune(r)
		}
	}
	return named(b.String(), s)
}

func named(stripped, whole string) string {
	last := lastPart(stripped)
	if last == "Kernel" || last == "Kernel2" || last == "device_kernel" {
		return inner(whole)
	}
	return last
}

// inner is what a generic kernel such as cutlass::Kernel<gemm_128x64<...>> runs: its first template argument.
func inner(s string) string {
	_, arg, ok := strings.Cut(s, "<")
	if i := strings.IndexAny(arg, "<,>("); ok && i > 0 {
		return lastPart(arg[:i])
	}
	return s
}

func lastPart(s string) string {
	s = strings.TrimRight(s, " :")
	if i := strings.LastIndex(s, "::"); i >= 0 && i+2 < len(s) {
		s = s[i+2:]
	}
	return s
}
