//go:build amd64 && !purego

package vec

import "golang.org/x/sys/cpu"

// GODEBUG=cpu.avx512f=off and cpu.avx2=off hide a set, as the tests do.

func hasAVX512() bool {
	return cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasBMI2 && hasAVX2()
}

func hasAVX2() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }
