package launch

import (
	"fmt"
	"io"
)

// Print writes the result as tables, 100 columns wide at most.
func (r *Result) Print(w io.Writer) {
	for i := range r.Sizes {
		r.Sizes[i].print(w)
	}
	if len(r.Host) > 0 {
		fmt.Fprintf(w, "Host time of one launch, µs: median (p10..p90) of batches; allocations\n")
		for _, h := range r.Host {
			fmt.Fprintf(w, "  %-13s %-18s %2.0f  %s\n", h.Name, h.Micros, h.Allocs, h.Doc)
		}
	}
	if r.Stopped != "" {
		fmt.Fprintf(w, "stopped: %s\n", r.Stopped)
	}
}

func (s *Size) print(w io.Writer) {
	fmt.Fprintf(w, "n = %d, GEMM %s, %d chains a burst. µs: median (p10..p90)\n", s.N, s.Config, s.Chains)
	fmt.Fprintf(w, "  %-21s %-21s %-21s %-19s %-19s %6s %6s\n", "way", "chain, idle device", "chain, queued", "host a call", "gemm→gemm gap", "gaps", "hole")
	for i := range s.Ways {
		v := &s.Ways[i]
		fmt.Fprintf(w, "  %-21s %-21s %-21s %-19s", v.Name, v.Live, v.Queued, v.Host)
		if x := v.Stamped; x != nil {
			fmt.Fprintf(w, " %-19s %6.2f %6.2f", x.Gaps[2], x.gaps(), x.Hole.Median)
		}
		fmt.Fprintln(w)
	}
	for _, p := range s.Peers {
		fmt.Fprintf(w, "  %-21s %-21s %-21s %s\n", p.Name, p.Live, p.Queued, p.Host)
	}
	for _, c := range s.Controls {
		fmt.Fprintf(w, "  control, %s: wrong results in %d of %d bursts\n", c.Name, c.Caught, c.Bursts)
	}
	s.gain(w)
	fmt.Fprintln(w)
}

// gaps is the sum of the medians of the gaps within a chain.
func (s *Stamped) gaps() float64 { return s.Gaps[0].Median + s.Gaps[1].Median + s.Gaps[2].Median }

// bodies is the same for the kernels.
func (s *Stamped) bodies() float64 {
	return s.Bodies[0].Median + s.Bodies[1].Median + s.Bodies[2].Median + s.Bodies[3].Median
}

// Gain is what one way saves a chain over another, taken apart, in µs.
type Gain struct {
	From, To                    string
	Total, Bodies, Gaps, Hole   float64
	Share                       float64 // of From's period
	FromPeriod, ToPeriod, Other float64 // Other: what medians of parts leave over
}

// Gain compares two ways by name; ok is false where one was not measured.
func (s *Size) Gain(from, to string) (g Gain, ok bool) {
	a, b := s.way(from), s.way(to)
	if a == nil || b == nil || a.Stamped == nil || b.Stamped == nil {
		return g, false
	}
	x, y := a.Stamped, b.Stamped
	g = Gain{From: from, To: to, Total: x.Period.Median - y.Period.Median, Bodies: x.bodies() - y.bodies(), Gaps: x.gaps() - y.gaps(), Hole: x.Hole.Median - y.Hole.Median,
		FromPeriod: x.Period.Median, ToPeriod: y.Period.Median}
	g.Share = g.Total / g.FromPeriod
	g.Other = g.Total - g.Bodies - g.Gaps - g.Hole
	return g, true
}

func (s *Size) way(name string) *Way {
	for i := range s.Ways {
		if s.Ways[i].Name == name {
			return &s.Ways[i]
		}
	}
	return nil
}

// Comparisons are the pairs of ways whose difference is PDL alone, and those that add a graph.
func Comparisons() [][2]string {
	return [][2]string{{"handle", "handle-attribute"}, {"handle", "handle-pdl"}, {"graph", "graph-pdl"}, {"graph-many", "graph-many-pdl"}, {"handle", "graph-many-pdl"}}
}

func (s *Size) gain(w io.Writer) {
	for _, c := range Comparisons() {
		if g, ok := s.Gain(c[0], c[1]); ok {
			fmt.Fprintf(w, "  %s → %s saves %.2f µs of %.2f (%.1f %%): bodies %.2f, gaps %.2f, hole between chains %.2f\n", g.From, g.To, g.Total, g.FromPeriod, 100*g.Share, g.Bodies, g.Gaps, g.Hole)
		}
	}
}
