package blas

// Set names an instruction set that kernels exist for.
type Set uint8

const (
	Portable Set = iota // plain Go, every architecture
	AVX2                // AVX2 and FMA
	AVX512              // AVX-512 F, VL, DQ, BW
)

func (s Set) String() string {
	switch s {
	case Portable:
		return "portable"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	}
	return "unknown"
}

// BestSet is the fastest set this machine runs.
func BestSet() Set {
	for _, s := range []Set{AVX512, AVX2} {
		if s.Runs() {
			return s
		}
	}
	return Portable
}
