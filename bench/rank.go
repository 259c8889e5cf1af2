package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Rank is one of our kernels at one size in one mode, against the fastest peer there.
type Rank struct {
	Name   string  `json:"name,omitempty"` // of a shape
	N      int     `json:"n"`
	Mode   string  `json:"mode"`
	Kernel string  `json:"kernel"`
	Rate   float64 `json:"tflops"`
	Speed  float64 `json:"speed"`            // above 1 is faster than the peer
	Joules float64 `json:"joules,omitempty"` // below 1 is cheaper than the peer
	Clock  uint32  `json:"sm_clock_mhz"`
}

// Ranking lists our kernels at each size and mode, the fastest first. Its numbers are of medians, without intervals: it is for a search, not for a claim.
func (r *Result) Ranking() []Rank {
	var all []Rank
	for _, row := range r.Rows {
		peer := row.fastestPeer()
		if peer == nil {
			continue
		}
		flop, first := 2*float64(row.M)*float64(row.N)*float64(row.K), len(all)
		for _, s := range row.Samples {
			if !s.Own || len(s.Micros) == 0 {
				continue
			}
			q := Rank{Name: row.Name, N: row.N, Mode: row.Mode, Kernel: s.Side, Rate: flop / Median(s.Micros) / 1e6, Speed: Median(peer.Micros) / Median(s.Micros), Clock: middle(s.SMClocks)}
			if len(s.Joules) > 0 && len(peer.Joules) > 0 && Median(peer.Joules) > 0 {
				q.Joules = Median(s.Joules) / Median(peer.Joules)
			}
			all = append(all, q)
		}
		slices.SortFunc(all[first:], func(a, b Rank) int { return cmp.Compare(b.Rate, a.Rate) })
	}
	return all
}

func (row *Row) fastestPeer() *Samples {
	var best *Samples
	for i := range row.Samples {
		s := &row.Samples[i]
		if !s.Own && len(s.Micros) > 0 && (best == nil || Median(s.Micros) < Median(best.Micros)) {
			best = s
		}
	}
	return best
}

// PrintRanking writes a ranking as a table.
func PrintRanking(w io.Writer, all []Rank) {
	for i, q := range all {
		if i == 0 || all[i-1].N != q.N || all[i-1].Name != q.Name || all[i-1].Mode != q.Mode {
			fmt.Fprintf(w, "%s\n", strings.TrimSpace(fmt.Sprintf("%s %d %s", q.Name, q.N, q.Mode)))
		}
		fmt.Fprintf(w, "  %7.1f TFLOP/s  %.3f of the peer's speed  %.3f of its joules  %4d MHz  %s\n", q.Rate, q.Speed, q.Joules, q.Clock, q.Kernel)
	}
}
