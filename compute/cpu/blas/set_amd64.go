//go:build amd64 && !purego

package blas

import "golang.org/x/sys/cpu"

// Runs reports whether this machine has the set.
func (s Set) Runs() bool {
	x := &cpu.X86
	switch s {
	case Portable:
		return true
	case AVX2:
		return x.HasAVX2 && x.HasFMA
	case AVX512:
		return x.HasAVX2 && x.HasFMA && x.HasAVX512F && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512BW
	}
	return false
}
