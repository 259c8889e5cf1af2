package emulate

import "fmt"

// explain reports a launch in which nothing can move any more: causes first, then what only follows from them.
func (m *machine) explain(cs []*cluster) {
	for rank := range 4 {
		for _, c := range cs {
			for _, w := range c.warps {
				if !w.done && w.wait != nil && w.rank() == rank {
					m.report.add(Fault{
						Kind: Deadlock, Line: m.line(w.pc), Object: w.wait.object, Role: m.role(w.id), CTA: w.t.index, Warp: w.id, Lanes: w.mask,
						Text: "waits for ever for " + w.wait.describe(),
					})
				}
			}
		}
	}
}

// rank orders what warps wait for by how likely it is the cause.
func (w *warp) rank() int {
	switch x := w.wait; {
	case x.what == "setmaxnreg":
		return 0
	case x.bar != nil && x.bar.waited[w.id] < x.bar.phase: // it has missed a phase: a wrong parity
		return 1
	case x.bar != nil && x.bar.tx != 0: // bytes are missing, and nothing that could bring them is under way
		return 1
	case x.bar != nil && x.bar.pending < x.bar.count, x.what == "named barrier": // some have come, the others never will
		return 2
	}
	return 3
}

func (x *wait) describe() string {
	if x.bar == nil {
		if x.object != "" {
			return x.object
		}
		return x.what
	}
	b := x.bar
	return fmt.Sprintf("%s, parity %d: it is in phase %d, %d of %d arrivals and %d bytes are missing", b.name, x.parity&1, b.phase, b.pending, b.count, b.tx)
}
