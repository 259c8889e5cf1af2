package analyze

import (
	"cmp"
	"slices"
)

// sum adds up gaps by cause, by kernel pair and by step.
func (d *Device) sum(gaps, exposed []Gap) {
	type pairKey struct{ before, after string }
	pairs := map[pairKey]*Pair{}
	causes := map[pairKey]map[Cause]float64{}
	steps := map[string]*Total{}
	byCause := map[Cause]*Total{}
	for _, g := range gaps {
		key := pairKey{g.Before, g.After}
		if pairs[key] == nil {
			pairs[key] = &Pair{Before: g.Before, After: g.After}
			causes[key] = map[Cause]float64{}
		}
		pairs[key].Count++
		pairs[key].US += g.DurUS
		causes[key][g.Cause] += g.DurUS
		if g.Step != "" {
			addTo(steps, g.Step, Total{Step: g.Step}, g.DurUS)
		}
		addTo(byCause, g.Cause, Total{Cause: string(g.Cause)}, g.DurUS)
	}
	d.Causes = sorted(byCause)
	if len(exposed) > 0 {
		t := Total{Cause: string(CauseComm), Busy: true, Count: len(exposed)}
		for _, g := range exposed {
			t.US += g.DurUS
		}
		d.Causes = append(d.Causes, t)
		sortTotals(d.Causes)
	}
	d.Steps = sorted(steps)
	d.Pairs = []Pair{}
	for key, p := range pairs {
		p.US = rounded(p.US)
		for c, us := range causes[key] {
			if most := causes[key][p.Cause]; us > most || us == most && c < p.Cause {
				p.Cause = c
			}
		}
		d.Pairs = append(d.Pairs, *p)
	}
	slices.SortFunc(d.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.US, a.US), cmp.Compare(a.Before, b.Before), cmp.Compare(a.After, b.After))
	})
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
