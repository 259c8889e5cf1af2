package local

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/comm"
)

// Mismatch is the error of ranks whose calls should be one and are not. Odd is the rank whose calls differ from all others',
// −1 where two sides are all that is known.
type Mismatch struct {
	Sides []Side
	Axes  string
	Seq   uint64
	Odd   int
	why   string
}

// Side is a call and who made it.
type Side struct {
	Ranks []int
	Call  comm.Signature
}

func (m *Mismatch) Error() string {
	var b strings.Builder
	b.WriteString("comm: ")
	for i, s := range m.Sides {
		if i > 0 {
			b.WriteString(", but ")
		}
		verb := " calls "
		if len(s.Ranks) > 1 {
			verb = " call "
		}
		b.WriteString(names(s.Ranks) + verb + s.Call.String())
	}
	fmt.Fprintf(&b, ", as call %d over %s%s", m.Seq, m.Axes, m.why)
	return b.String()
}

// Hang is the error of ranks that wait for a call that does not come. Rank is the one at fault, −1 where calls do not tell; then
// Sides are two ranks whose calls differ, if there are such. Op is the call that is waited for and Missing who has not come to it.
type Hang struct {
	Rank    int
	Sides   []Side
	Op      comm.Signature
	Missing []int
	text    string
}

func (h *Hang) Error() string { return h.text }

// names is "rank 3" or "ranks 0, 1, 2".
func names(ranks []int) string {
	word := "rank "
	if len(ranks) > 1 {
		word = "ranks "
	}
	return word + strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks), " ", ", "), "[]")
}

func (c call) String() string {
	what := c.Signature.String() + " over " + c.axes
	switch {
	case c.ended:
		return "the end"
	case c.waits:
		return "waiting for " + what
	}
	return what
}

// blame names the rank at fault and why: the one whose calls differ, else the one that others wait for and that waits for
// nobody, else two that differ. It needs w.mu.
func (w *World) blame() (rank int, sides []Side, why string) {
	if rank, its, theirs, others := w.odd(); rank >= 0 {
		return rank, nil, fmt.Sprintf("; rank %d is the odd one: %s where %s: %s", rank, its, names(others), theirs)
	}
	var idle []int
	for r := range w.past {
		if w.past[r].op == nil && w.awaited(r) {
			idle = append(idle, r)
		}
	}
	if len(idle) == 1 {
		return idle[0], nil, fmt.Sprintf("; all wait for rank %d, %s%s", idle[0], w.where(idle[0]), w.due(idle[0]))
	}
	if sides, calls := w.apart(); sides != nil {
		return -1, sides, fmt.Sprintf("; %s and %s differ: %s, and %s", names(sides[0].Ranks), names(sides[1].Ranks), calls[0], calls[1])
	}
	return -1, nil, ""
}

// due names the call that a rank is late for: the next that one who waits for it has made.
func (w *World) due(rank int) string {
	mine := w.past[rank].of(&w.past[rank].all, w.past[rank].epoch)
	for r := range w.past {
		if o := w.past[r].op; o == nil || !slices.Contains(o.Ranks, rank) {
			continue
		}
		if theirs := w.past[r].of(&w.past[r].all, w.past[rank].epoch); len(theirs) > len(mine) {
			return ", due in " + theirs[len(mine)].String()
		}
	}
	return ""
}

// awaited tells whether somebody waits in a call that rank has not come to.
func (w *World) awaited(rank int) bool {
	for r := range w.past {
		if o := w.past[r].op; o != nil {
			for i, member := range o.Ranks {
				if member == rank && w.absent(o, w.past[r].stage, i) {
					return true
				}
			}
		}
	}
	return false
}

// where says what a rank is doing.
func (w *World) where(r int) string {
	h := &w.past[r]
	switch {
	case h.op != nil:
		return "in " + h.op.Signature().String()
	case h.ended:
		return "which has ended"
	}
	return "not in a collective"
}

// late is the error of a rank that has waited too long in o: who has not come, where every rank is, who is at fault.
func (w *World) late(m *meeting, o *comm.Op) *Hang {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &Hang{Op: o.Signature()}
	missing := ""
	for i, r := range o.Ranks {
		if m.next[i] <= w.past[o.Ranks[o.Me]].stage {
			h.Missing = append(h.Missing, r)
			missing += fmt.Sprintf("; rank %d is missing (%s)", r, w.where(r))
		}
	}
	var why string
	h.Rank, h.Sides, why = w.blame()
	h.text = fmt.Sprintf("comm: rank %d waited %v in %s over %s, call %d%s%s%s", o.Ranks[o.Me], w.deadline, o.Signature(), o.Axes, o.Seq, missing, why, w.pending())
	return h
}

// stuck is the error of a world in which no rank can go on.
func (w *World) stuck(after time.Duration) *Hang {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &Hang{}
	for waiter := range w.past {
		if o := w.past[waiter].op; o != nil && h.Missing == nil {
			h.Op = o.Signature()
			for i, r := range o.Ranks {
				if w.absent(o, w.past[waiter].stage, i) {
					h.Missing = append(h.Missing, r)
				}
			}
		}
	}
	var why string
	h.Rank, h.Sides, why = w.blame()
	h.text = fmt.Sprintf("comm: no rank can go on after %v%s%s", after, why, w.pending())
	return h
}

// pending lists what each rank waits for, ranks alike in one line.
func (w *World) pending() string {
	var states []string
	by := map[string][]int{}
	for r := range w.past {
		s := w.where(r)
		if o := w.past[r].op; o != nil {
			s = fmt.Sprintf("%s over %s, call %d", s, o.Axes, o.Seq)
		}
		if by[s] == nil {
			states = append(states, s)
		}
		by[s] = append(by[s], r)
	}
	var b strings.Builder
	for _, s := range states {
		fmt.Fprintf(&b, "\n  %s: %s", names(by[s]), s)
	}
	return b.String()
}
