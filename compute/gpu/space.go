package gpu

import "sort"

// Space hands out parts of an arena, always the first gap that fits, so that the same requests in the same order get the same places: what a plan needed is
// what the run needs.
type Space struct {
	gaps []gap // by place, never touching
	top  int   // one past the furthest byte that was handed out
}

type gap struct{ at, bytes int }

// unit is what places and sizes are rounded to: what the driver aligns allocations to.
const unit = 256

// NewSpace makes a space of bytes from at on.
func NewSpace(at, bytes int) *Space { return &Space{gaps: []gap{{at, bytes}}, top: at} }

func round(bytes int) int { return max(unit, (bytes+unit-1)/unit*unit) }

// Take finds room for bytes; its second result is false where there is none.
func (s *Space) Take(bytes int) (at int, ok bool) {
	n := round(bytes)
	for i := range s.gaps {
		g := &s.gaps[i]
		if g.bytes < n {
			continue
		}
		at = g.at
		if g.at, g.bytes = g.at+n, g.bytes-n; g.bytes == 0 {
			s.gaps = append(s.gaps[:i], s.gaps[i+1:]...)
		}
		s.top = max(s.top, at+n)
		return at, true
	}
	return 0, false
}

// Give returns what Take gave for so many bytes.
func (s *Space) Give(at, bytes int) {
	n := round(bytes)
	i := sort.Search(len(s.gaps), func(i int) bool { return s.gaps[i].at > at })
	if i > 0 && s.gaps[i-1].at+s.gaps[i-1].bytes == at {
		i--
		s.gaps[i].bytes += n
	} else {
		s.gaps = append(s.gaps, gap{})
		copy(s.gaps[i+1:], s.gaps[i:])
		s.gaps[i] = gap{at, n}
	}
	if i+1 < len(s.gaps) && s.gaps[i].at+s.gaps[i].bytes == s.gaps[i+1].at {
		s.gaps[i].bytes += s.gaps[i+1].bytes
		s.gaps = append(s.gaps[:i+1], s.gaps[i+2:]...)
	}
}

// Top is one past the furthest byte that was ever handed out.
func (s *Space) Top() int { return s.top }
