package local

import "heddle/tensor"

// host moves data in the memory of the process, at once.
type host struct{}

var _ Mover = host{}

func (host) Mark() (uint32, error)   { return 0, nil }
func (host) After(int, uint32) error { return nil }

// Take copies.
func (host) Take(dst, src tensor.Tensor) {
	switch dst.Type {
	case tensor.F64:
		copy(tensor.View[float64](dst), tensor.View[float64](src))
	case tensor.I32:
		copy(tensor.View[int32](dst), tensor.View[int32](src))
	default:
		copy(tensor.View[float32](dst), tensor.View[float32](src))
	}
}

// Join reduces.
func (host) Join(dst tensor.Tensor, srcs []tensor.Tensor, largest bool) {
	switch dst.Type {
	case tensor.F64:
		join[float64](dst, srcs, largest)
	case tensor.I32:
		join[int32](dst, srcs, largest)
	default:
		join[float32](dst, srcs, largest)
	}
}

// join finishes a stretch aside before it is stored: dst may be one of the sources.
func join[T float32 | float64 | int32](to tensor.Tensor, srcs []tensor.Tensor, largest bool) {
	var stretch [1024]T
	dst := tensor.View[T](to)
	for at := 0; at < len(dst); at += len(stretch) {
		acc := stretch[:min(len(stretch), len(dst)-at)]
		for i, s := range srcs {
			src := tensor.View[T](s)[at:][:len(acc)]
			switch {
			case i == 0:
				copy(acc, src)
			case largest:
				for k, v := range src {
					acc[k] = max(acc[k], v)
				}
			default:
				for k, v := range src {
					acc[k] += v
				}
			}
		}
		copy(dst[at:], acc)
	}
}
