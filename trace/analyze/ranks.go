package analyze

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
)

// Ranks is what several devices show together: whose communication began late, and who waited for it. A rank is a
// device of a file, numbered as in Report.Devices.
//
// The n-th communication kernel of a name in a group is the same collective on all ranks of the group. Kernels of a
// collective end together, within µs; so where the files' clocks differ, the median difference of ends sets them
// right.
type Ranks struct {
	Collectives int        `json:"collectives"` // matched
	Unmatched   int        `json:"unmatched"`   // communication kernels that were not
	Ranks       []RankWait `json:"ranks"`
	Waits       []WaitFor  `json:"waits"`     // longest first
	Straggler   int        `json:"straggler"` // in Ranks, -1 if nobody waited
}

// RankWait is one rank's part.
type RankWait struct {
	Index    int     `json:"index"` // in Report.Devices
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

// part is one rank's kernel of a collective.
type part struct {
	rank       int
	start, end int64
}

type collectiveKey struct{ name, group string }

// acrossRanks matches collectives. It is nil if fewer than two devices communicate.
func acrossRanks(devices []Device, timelines []*Timeline) *Ranks {
	out := &Ranks{Ranks: []RankWait{}, Waits: []WaitFor{}, Straggler: -1}
	lists := map[collectiveKey][][]part{} // by rank
	kernels := 0
	for i := range devices {
		d := &devices[i]
		if d.Comm == 0 {
			continue
		}
		rank := len(out.Ranks)
		out.Ranks = append(out.Ranks, RankWait{Index: i, Label: label(d, len(timelines) > 1)})
		kernels += d.Comm
		t := d.timeline
		for _, k := range d.spans.kernels {
			if w := d.spans.work[k]; w.Kind == Comm {
				key := collectiveKey{t.Names[w.Name], t.Groups[w.Group]}
				for len(lists[key]) <= rank {
					lists[key] = append(lists[key], nil)
				}
				lists[key][rank] = append(lists[key][rank], part{rank, w.Start, w.End})
			}
		}
	}
	if len(out.Ranks) < 2 {
		return nil
	}
	matched := match(lists, len(out.Ranks))
	out.Collectives, out.Unmatched = len(matched), kernels
	for _, m := range matched {
		out.Unmatched -= len(m)
	}
	out.setRight(matched)
	out.waits(matched)
	return out
}

func label(d *Device, several bool) string {
	switch {
	case d.Rank != nil:
		return fmt.Sprintf("rank %d", *d.Rank)
	case several:
		return fmt.Sprintf("device %d of %s", d.Device, filepath.Base(d.File))
	}
	return fmt.Sprintf("device %d", d.Device)
}

// match pairs the n-th with the n-th. Kernels that do not occur equally often on all ranks of their group are left
// out: which of them belong together cannot be told. Who is in an unnamed group cannot either, so that is all ranks.
func match(lists map[collectiveKey][][]part, ranks int) (matched [][]part) {
	for key, byRank := range lists {
		members := slices.DeleteFunc(slices.Clone(byRank), func(l []part) bool { return len(l) == 0 })
		equal := len(members) >= 2 && (key.group != "" || len(members) == ranks)
		for _, l := range members {
			equal = equal && len(l) == len(members[0])
		}
		if !equal {
			continue
		}
		for i := range members[0] {
			one := make([]part, len(members))
			for r := range one {
				one[r] = members[r][i]
			}
			matched = append(matched, one)
		}
	}
	slices.SortFunc(matched, func(a, b []part) int {
		return cmp.Or(cmp.Compare(a[0].start, b[0].start), cmp.Compare(a[0].rank, b[0].rank), cmp.Compare(a[0].end, b[0].end))
	})
	return matched
}

// setRight finds what to add to each rank's times so that collectives end together, and adds it. Rank 0's clock
// holds; the others follow from a rank that is already right and in a group with them.
func (out *Ranks) setRight(matched [][]part) {
	right := make([]bool, len(out.Ranks))
	add := make([]int64, len(out.Ranks))
	for {
		diffs := make([][]int64, len(out.Ranks))
		for _, m := range matched {
			ref := slices.IndexFunc(m, func(p part) bool { return right[p.rank] })
			for _, p := range m {
				if ref >= 0 && !right[p.rank] {
					diffs[p.rank] = append(diffs[p.rank], m[ref].end+add[m[ref].rank]-p.end)
				}
			}
		}
		found := false
		for r, d := range diffs {
			if len(d) > 0 {
				add[r], right[r], found = correction(d), true, true
			}
		}
		if !found {
			first := slices.Index(right, false) // the first at all, or of ranks that share no group with those before
			if first < 0 {
				break
			}
			right[first] = true
		}
	}
	for r := range out.Ranks {
		out.Ranks[r].ClockUS = micros(add[r])
	}
	for _, m := range matched {
		for i := range m {
			m[i].start += add[m[i].rank]
			m[i].end += add[m[i].rank]
		}
	}
}

// correction is the median of diffs, or 0 if that is no larger than their scatter.
func correction(diffs []int64) int64 {
	slices.Sort(diffs)
	n := len(diffs)
	middle, scatter := diffs[n/2], diffs[n*3/4]-diffs[n/4]
	if max(middle, -middle) > 2*scatter+10_000 {
		return middle
	}
	return 0
}

func (out *Ranks) waits(matched [][]part) {
	sums := map[[2]int]*WaitFor{}
	for _, m := range matched {
		last := m[0]
		for _, p := range m {
			if p.start > last.start {
				last = p
			}
		}
		out.Ranks[last.rank].Last++
		for _, p := range m {
			wait := micros(min(last.start, p.end) - p.start)
			if p.rank == last.rank || wait <= 0 {
				continue
			}
			key := [2]int{p.rank, last.rank}
			if sums[key] == nil {
				sums[key] = &WaitFor{Rank: p.rank, For: last.rank}
			}
			sums[key].Count++
			sums[key].US += wait
		}
	}
	for _, w := range sums {
		w.US = rounded(w.US)
		out.Ranks[w.Rank].WaitUS = rounded(out.Ranks[w.Rank].WaitUS + w.US)
		out.Ranks[w.For].CausedUS = rounded(out.Ranks[w.For].CausedUS + w.US)
		out.Waits = append(out.Waits, *w)
	}
	slices.SortFunc(out.Waits, func(a, b WaitFor) int {
		return cmp.Or(cmp.Compare(b.US, a.US), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.For, b.For))
	})
	for r := range out.Ranks {
		if s := out.Straggler; out.Ranks[r].CausedUS > 0 && (s < 0 || out.Ranks[r].CausedUS > out.Ranks[s].CausedUS) {
			out.Straggler = r
		}
	}
}
