package analyze

import (
	"cmp"
	"slices"
)

// sum adds up gaps by cause, by kernel pair and by step.
func (d *Device) sum(j *judge, gaps []gap, alone []bare) {
	pairs := map[pairKey]*pairSum{}
	steps := map[string]*Total{}
	byCause := map[Cause]*Total{}
	j.quiet = true
	for _, g := range gaps {
		out := j.gap(g, 0)
		key := pairKey{j.d.work[g.before].Name, j.d.work[g.after].Name}
		if pairs[key] == nil {
			pairs[key] = &pairSum{us: map[Cause]float64{}}
		}
		pairs[key].count++
		pairs[key].us[out.Cause] += out.DurUS
		if out.Step != "" {
			addTo(steps, out.Step, Total{Step: out.Step}, out.DurUS)
		}
		addTo(byCause, out.Cause, Total{Cause: string(out.Cause)}, out.DurUS)
	}
	j.quiet = false
	d.Causes = sorted(byCause)
	if len(alone) > 0 {
		t := Total{Cause: string(CauseComm), Busy: true, Count: len(alone)}
		for _, b := range alone {
			t.US += micros(b.end - b.start)
		}
		d.Causes = append(d.Causes, t)
		sortTotals(d.Causes)
	}
	d.Steps = sorted(steps)
	d.Pairs = pairsOf(pairs, j.t.Names)
}

type pairKey struct{ before, after uint32 } // names

type pairSum struct {
	count int
	us    map[Cause]float64
}

// pairsOf lists the pairs with the most time between them first, and no more than a thousand.
func pairsOf(sums map[pairKey]*pairSum, names []string) []Pair {
	const most = 1000
	out := make([]Pair, 0, len(sums))
	for key, sum := range sums {
		p := Pair{Before: names[key.before], After: names[key.after], Count: sum.count}
		for c, us := range sum.us {
			p.US += us
			if top := sum.us[p.Cause]; us > top || us == top && c < p.Cause {
				p.Cause = c
			}
		}
		p.US = rounded(p.US)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.US, a.US), cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After))
	})
	return out[:min(most, len(out))]
}

func addTo[K comparable](m map[K]*Total, key K, fresh Total, us float64) {
	if m[key] == nil {
		m[key] = &fresh
	}
	m[key].Count++
	m[key].US += us
}

func sorted[K comparable](m map[K]*Total) []Total {
	out := []Total{}
	for _, t := range m {
		t.US = rounded(t.US)
		out = append(out, *t)
	}
	sortTotals(out)
	return out
}

// rounded cuts what adding floats leaves below a nanosecond.
func rounded(us float64) float64 { return float64(int64(us*1000+0.5)) / 1000 }

func sortTotals(t []Total) {
	slices.SortFunc(t, func(a, b Total) int {
		return cmp.Or(cmp.Compare(b.US, a.US), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Step, b.Step))
	})
}

func addTotal(all []Total, t Total) []Total {
	for i := range all {
		if all[i].Cause == t.Cause && all[i].Busy == t.Busy {
			all[i].US = rounded(all[i].US + t.US)
			all[i].Count += t.Count
			return all
		}
	}
	return append(all, t)
}
