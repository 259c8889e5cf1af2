package analyze

import (
	"cmp"
	"fmt"
	"slices"
)

// Ranks is what several devices show together: whose communication began late, and who waited for it. A rank is a
// device of a file, numbered as in Report.Devices.
//
// The n-th communication kernel of a name on one rank is taken for the same collective as the n-th on the others.
// Kernels of a collective end together, within µs; so where the files' clocks differ, the median difference of ends
// sets them right.
type Ranks struct {
	Collectives int        `json:"collectives"` // matched on all ranks
	Unmatched   int        `json:"unmatched"`   // communication kernels that were not
	Ranks       []RankWait `json:"ranks"`
	Waits       []WaitFor  `json:"waits"` // longest first
	Straggler   int        `json:"straggler"`
}

// RankWait is one rank's part.
type RankWait struct {
	Index    int     `json:"index"`
	Label    string  `json:"label"`
	ClockUS  float64 `json:"clock_us"`  // what was added to its times
	WaitUS   float64 `json:"wait_us"`   // it was there and another was not
	CausedUS float64 `json:"caused_us"` // others were there and it was not, summed over the others
	Last     int     `json:"last"`      // collectives to which it came last
}

// WaitFor says how long a rank waited for another.
type WaitFor struct {
	Rank  int     `json:"rank"`
	For   int     `json:"for"`
	Count int     `json:"count"`
	US    float64 `json:"us"`
}

// acrossRanks matches collectives. It is nil if fewer than two devices communicate.
func acrossRanks(devices []Device, timelines []*Timeline) *Ranks {
	names := map[string]*Timeline{}
	for _, t := range timelines {
		names[t.Source] = t
	}
	var lists [][]Work
	var labels []string
	var index []int
	seqs := map[string][][]Work{} // by name, of each rank in lists
	for i := range devices {
		d := &devices[i]
		if d.Comm == 0 {
			continue
		}
		t := names[d.File]
		rank := len(lists)
		lists, index = append(lists, nil), append(index, i)
		labels = append(labels, label(d))
		for _, k := range d.spans.kernels {
			if w := d.spans.work[k]; w.Kind == Comm {
				name := t.Names[w.Name]
				for len(seqs[name]) <= rank {
					seqs[name] = append(seqs[name], nil)
				}
				seqs[name][rank] = append(seqs[name][rank], w)
				lists[rank] = append(lists[rank], w)
			}
		}
	}
	if len(lists) < 2 {
		return nil
	}
	matched := match(seqs, len(lists))
	out := &Ranks{Collectives: len(matched), Ranks: make([]RankWait, len(lists)), Waits: []WaitFor{}, Straggler: -1}
	for r := range lists {
		out.Unmatched += len(lists[r]) - len(matched)
		out.Ranks[r] = RankWait{Index: index[r], Label: labels[r]}
	}
	if len(matched) == 0 {
		return out
	}
	out.waits(matched, clocks(matched, len(lists)))
	return out
}

func label(d *Device) string {
	if d.Rank != nil {
		return fmt.Sprintf("rank %d", *d.Rank)
	}
	return fmt.Sprintf("device %d", d.Device)
}

// match pairs the n-th of a name with the n-th of the same name on every rank. Names that do not occur equally often
// on all ranks are left out: which of them belong together cannot be told.
func match(seqs map[string][][]Work, ranks int) (matched [][]Work) {
	for _, lists := range seqs {
		equal := len(lists) == ranks
		for _, l := range lists {
			equal = equal && len(l) == len(lists[0])
		}
		if !equal {
			continue
		}
		for i := range lists[0] {
			one := make([]Work, ranks)
			for r := range one {
				one[r] = lists[r][i]
			}
			matched = append(matched, one)
		}
	}
	slices.SortFunc(matched, func(a, b []Work) int { return cmp.Compare(a[0].Start, b[0].Start) })
	return matched
}

// clocks is what to add to each rank's times so that the collectives end together with rank 0's, by the median. A
// correction that is no larger than the scatter of the ends is none.
func clocks(matched [][]Work, ranks int) []int64 {
	add := make([]int64, ranks)
	for r := 1; r < ranks; r++ {
		diffs := make([]int64, len(matched))
		for i, m := range matched {
			diffs[i] = m[0].End - m[r].End
		}
		slices.Sort(diffs)
		middle := diffs[len(diffs)/2]
		scatter := diffs[len(diffs)*3/4] - diffs[len(diffs)/4]
		if abs(middle) > 2*scatter+10_000 {
			add[r] = middle
		}
	}
	return add
}

func abs(n int64) int64 { return max(n, -n) }

func (out *Ranks) waits(matched [][]Work, add []int64) {
	waits := map[[2]int]*WaitFor{}
	for _, m := range matched {
		last, at := 0, m[0].Start
		for r, w := range m {
			if w.Start+add[r] > at {
				last, at = r, w.Start+add[r]
			}
		}
		out.Ranks[last].Last++
		for r, w := range m {
			wait := micros(min(at, w.End+add[r]) - (w.Start + add[r]))
			if r == last || wait <= 0 {
				continue
			}
			key := [2]int{r, last}
			if waits[key] == nil {
				waits[key] = &WaitFor{Rank: r, For: last}
			}
			waits[key].Count++
			waits[key].US += wait
		}
	}
	for _, w := range waits {
		w.US = rounded(w.US)
		out.Ranks[w.Rank].WaitUS = rounded(out.Ranks[w.Rank].WaitUS + w.US)
		out.Ranks[w.For].CausedUS = rounded(out.Ranks[w.For].CausedUS + w.US)
		out.Waits = append(out.Waits, *w)
	}
	slices.SortFunc(out.Waits, func(a, b WaitFor) int {
		return cmp.Or(cmp.Compare(b.US, a.US), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.For, b.For))
	})
	for r := range out.Ranks {
		out.Ranks[r].ClockUS = micros(add[r])
		if s := out.Straggler; out.Ranks[r].CausedUS > 0 && (s < 0 || out.Ranks[r].CausedUS > out.Ranks[s].CausedUS) {
			out.Straggler = r
		}
	}
}
