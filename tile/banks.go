package tile

import (
	"fmt"
	"math/bits"
)

// Shared memory of a multiprocessor: 32 banks of 4-byte words, one word a bank and clock.
const (
	Lanes     = 32 // of a warp
	Banks     = 32
	WordBytes = 4
)

// Access is one warp instruction on shared memory: the byte address of each lane (negative: the lane is off) and the bytes a lane moves, 1 to 16.
type Access struct {
	Addr  [Lanes]int
	Width int
}

// BankConflict is one bank asked for several words in one phase: Lanes[i] want word Words[i], different words one after the other.
type BankConflict struct {
	Phase int   `json:"phase"`
	Bank  int   `json:"bank"`
	Lanes []int `json:"lanes"`
	Words []int `json:"words"`
}

// BankReport is what an access costs. A wavefront is one pass over the banks; without conflicts there is one a phase.
type BankReport struct {
	Wavefronts int            `json:"wavefronts"`
	Phases     int            `json:"phases"` // phases with a lane that is on: the least possible number of wavefronts
	Conflicts  []BankConflict `json:"conflicts"`
}

// Phase is the phase of a lane: accesses of up to 4 bytes are served for the whole warp at once, 8 bytes by half-warps, 16 bytes by quarter-warps,
// so that no phase can want more than the 128 bytes that the banks give in a clock.
func (a Access) Phase(lane int) int { return lane / a.perPhase() }

func (a Access) perPhase() int { return Lanes * WordBytes / max(a.Width, WordBytes) }

// Conflicts works out wavefronts and conflicting lanes. Lanes that want the same word share it (broadcast); the wavefronts of a phase are the most
// different words that any one bank is asked for. Measured cycles on an H200 agree for accesses of 4, 8 and 16 bytes, ldmatrix and stmatrix
// (bench/results/banks-h200.json).
func (a Access) Conflicts() (BankReport, error) {
	r := BankReport{Conflicts: []BankConflict{}}
	if err := a.check(); err != nil {
		return r, err
	}
	for from := 0; from < Lanes; from += a.perPhase() {
		words, lanes := a.wanted(from)
		most := 0
		for bank := range Banks {
			distinct := 0
			for i, w := range words[bank] {
				if first(words[bank], w) == i {
					distinct++
				}
			}
			if most = max(most, distinct); distinct > 1 {
				r.Conflicts = append(r.Conflicts, BankConflict{a.Phase(from), bank, lanes[bank], words[bank]})
			}
		}
		if most > 0 {
			r.Phases++
		}
		r.Wavefronts += most
	}
	return r, nil
}

// wanted lists, by bank, the words that the phase starting at lane from wants, and who wants them.
func (a Access) wanted(from int) (words, lanes [Banks][]int) {
	for lane := from; lane < from+a.perPhase(); lane++ {
		if a.Addr[lane] < 0 {
			continue
		}
		first := a.Addr[lane] / WordBytes
		for w := first; w <= (a.Addr[lane]+a.Width-1)/WordBytes; w++ {
			words[w%Banks] = append(words[w%Banks], w)
			lanes[w%Banks] = append(lanes[w%Banks], lane)
		}
	}
	return words, lanes
}

func first(s []int, x int) int {
	for i, y := range s {
		if y == x {
			return i
		}
	}
	return -1
}

func (a Access) check() error {
	if a.Width < 1 || a.Width > 16 || bits.OnesCount(uint(a.Width)) != 1 {
		return fmt.Errorf("tile: shared access of %d bytes a lane, want 1, 2, 4, 8 or 16", a.Width)
	}
	for lane, addr := range a.Addr {
		if addr > MaxOffset || addr > 0 && addr%a.Width != 0 {
			return fmt.Errorf("tile: lane %d at shared address %d, want a multiple of its %d bytes below 2^48", lane, addr, a.Width)
		}
	}
	return nil
}

// Through is the access with its addresses swizzled.
func (a Access) Through(s Swizzle) Access {
	for lane, addr := range a.Addr {
		if addr >= 0 {
			a.Addr[lane] = s.Apply(addr)
		}
	}
	return a
}

// Wavefronts is the number that Conflicts reports, without the lanes: it allocates nothing. The access must be one that Conflicts accepts.
func (a *Access) Wavefronts() (wavefronts, phases int) {
	var words [Banks][Lanes]int // a phase asks for at most 32 words, if aligned
	group := a.perPhase()
	for from := 0; from < Lanes; from += group {
		var count [Banks]int
		most := 0
		for _, addr := range a.Addr[from : from+group] {
			if addr < 0 {
				continue
			}
			for w := addr / WordBytes; w <= (addr+a.Width-1)/WordBytes; w++ {
				bank := w % Banks
				if n := count[bank]; first(words[bank][:n], w) < 0 {
					words[bank][n] = w
					count[bank]++
					most = max(most, n+1)
				}
			}
		}
		if most > 0 {
			phases++
		}
		wavefronts += most
	}
	return wavefronts, phases
}

// Cost sums the wavefronts of several accesses, and the least they could take.
func Cost(accesses []Access) (wavefronts, least int, err error) {
	for i := range accesses {
		if err := accesses[i].check(); err != nil {
			return 0, 0, fmt.Errorf("access %d: %w", i, err)
		}
		n, phases := accesses[i].Wavefronts()
		wavefronts, least = wavefronts+n, least+phases
	}
	return wavefronts, least, nil
}
