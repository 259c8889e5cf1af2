package local

import "heddle/comm"

// call is one entry of a rank's history: a collective it started, one it waits for, or its end.
type call struct {
	comm.Signature
	axes  string
	waits bool
	ended bool
}

// history is a rank's calls since the last collective of all ranks but one: such a collective brings every rank to the same
// place of the program, so that calls before it need no comparing.
type history struct {
	epoch int // collectives of all ranks that this rank has left
	all   [2][]call
	even  [2][]call // without those that other groups make otherwise
	op    *comm.Op  // waited for, nil when the rank is not in a collective
	stage stage     // of it
	ended bool
}

// longest bounds a history where a program has no collective of all ranks.
const longest = 1 << 12

func (h *history) add(c call, uneven bool) {
	now := h.epoch % 2
	if len(h.all[now]) == longest {
		return
	}
	if h.all[now] = append(h.all[now], c); !uneven {
		h.even[now] = append(h.even[now], c)
	}
}

// pass starts the next epoch.
func (h *history) pass() {
	h.epoch++
	now := h.epoch % 2
	h.all[now], h.even[now] = h.all[now][:0], h.even[now][:0]
}

// of is the calls of an epoch that the rank remembers.
func (h *history) of(calls *[2][]call, epoch int) []call {
	if epoch < 0 || epoch != h.epoch && epoch != h.epoch-1 {
		return nil
	}
	return calls[epoch%2]
}

// odd finds the one rank whose calls differ from those of all others that have come as far; at least two others must have.
// The calls returned are the odd one's and the others'. It needs w.mu.
func (w *World) odd() (rank int, its, theirs call, others []int) {
	newest := 0
	for i := range w.past {
		newest = max(newest, w.past[i].epoch)
	}
	for epoch := newest - 1; epoch <= newest; epoch++ {
		for i := 0; ; i++ {
			by := map[call][]int{}
			came := 0
			for r := range w.past {
				if made := w.past[r].of(&w.past[r].even, epoch); i < len(made) {
					by[made[i]] = append(by[made[i]], r)
					came++
				}
			}
			if came == 0 {
				break
			}
			if len(by) == 1 {
				continue
			}
			rank = -1
			for c, ranks := range by {
				if len(ranks) == 1 && len(by) == 2 && came > 2 {
					rank, its = ranks[0], c
				} else {
					theirs, others = c, ranks
				}
			}
			return rank, its, theirs, others
		}
	}
	return -1, its, theirs, nil
}

// apart finds two ranks, one waiting for the other, whose calls differ, and the first of those calls. It needs w.mu.
func (w *World) apart() (sides []Side, calls [2]call) {
	for a := range w.past {
		o := w.past[a].op
		if o == nil {
			continue
		}
		for i, b := range o.Ranks {
			if !w.absent(o, w.past[a].stage, i) {
				continue
			}
			for epoch := w.past[a].epoch - 1; epoch <= w.past[a].epoch; epoch++ {
				x, y := w.past[a].of(&w.past[a].all, epoch), w.past[b].of(&w.past[b].all, epoch)
				for k := range min(len(x), len(y)) {
					if x[k] != y[k] {
						return []Side{{[]int{a}, x[k].Signature}, {[]int{b}, y[k].Signature}}, [2]call{x[k], y[k]}
					}
				}
			}
		}
	}
	return nil, calls
}
