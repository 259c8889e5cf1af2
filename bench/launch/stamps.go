package launch

import (
	"encoding/binary"
	"fmt"

	"heddle/cuda"
)

// stamps are the places where launches of stamped kernels leave their times: each launch takes the next.
type stamps struct {
	at   cuda.Ptr
	next int
	room int
}

// stampedLaunch is a launch whose last argument is its place among the stamps.
type stampedLaunch struct {
	*cuda.Prepared
	stamps *stamps
	arg    int
}

// Queue gives the launch the next place.
func (p *stampedLaunch) Queue(stream uintptr) error {
	if p.stamps.next == p.stamps.room {
		return fmt.Errorf("launch: more than %d stamped launches", p.stamps.room)
	}
	p.SetWord(p.arg, uint64(p.stamps.at)+uint64(p.stamps.next*stampBytes))
	p.stamps.next++
	return p.Prepared.Queue(stream)
}

// Times are when one kernel ran, in µs since the first kernel of its chain began.
type Times struct {
	Begin float64 `json:"begin_us"` // the first CTA's first instruction
	Wait  float64 `json:"wait_us"`  // the first CTA past its wait; Begin where it has none
	End   float64 `json:"end_us"`   // the last warp's last instruction
}

// span is Times in ns of the device's clock.
type span struct{ begin, wait, end uint64 }

// spans decodes what count launches left.
func spans(raw []byte, count int) ([]span, error) {
	all := make([]span, count)
	for i := range all {
		word := func(j int) uint64 { return binary.LittleEndian.Uint64(raw[i*stampBytes+8*j:]) }
		x := span{word(0), word(1), ^word(2)}
		if x.wait == ^uint64(0) {
			x.wait = x.begin
		}
		if x.begin == ^uint64(0) || x.end == 0 || x.end < x.wait || x.wait < x.begin {
			return nil, fmt.Errorf("launch: kernel %d left stamps %d, %d, %d; it did not run, or the device's clock went back", i, x.begin, x.wait, x.end)
		}
		all[i] = x
	}
	return all, nil
}
