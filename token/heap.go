package token

// minHeap is a binary heap; its smallest element is at index 0.
type minHeap[T any] []T

func (h *minHeap[T]) push(x T, less func(a, b T) bool) {
	s := append(*h, x)
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !less(s[i], s[up]) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
	*h = s
}

func (h *minHeap[T]) pop(less func(a, b T) bool) T {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && less(s[down+1], s[down]) {
			down++
		}
		if !less(s[down], s[i]) {
			break
		}
		s[i], s[down] = s[down], s[i]
		i = down
	}
	*h = s
	return top
}
