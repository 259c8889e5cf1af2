package parity

import "testing"

// A hundred and fifty seeds here; go run ./bench/ranks runs ten thousand, and one alone with --seed.
func TestSeedsEndWithTheRightDiagnosis(t *testing.T) {
	s, err := RunSeeds(1, 150, 2, 15, func(Outcome) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Failures {
		t.Errorf("seed %d, %s: %s of rank %d in %s: %s (hung: %v): %s", f.Seed, f.Scheme, f.Plant, f.Rank, f.Call, f.Wrong, f.Hung, f.Report)
	}
	for _, f := range s.Faults {
		if f.Seeds == 0 || f.Named+f.Sides+f.Harmless != f.Seeds {
			t.Errorf("%+v", f)
		}
	}
}

// The judge is worth something only if it refuses: a report that is right is wrong for another rank, and for another call.
func TestTheJudgeRefusesAnotherRankOrCall(t *testing.T) {
	var lab Laboratory
	seen := map[Plant]int{}
	for seed := uint64(1); seed < 70; seed++ {
		p, e, err := lab.strike(seed)
		if err != nil {
			t.Fatal(err)
		}
		if p.kind == "none" || p.kind == NaNOnce {
			continue
		}
		seen[p.kind]++
		if e.err == nil {
			continue // harmless
		}
		named, wrong := p.judge(e.err, e.trial, e.clean)
		if wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
		if named { // two sides name two ranks
			other := *p
			other.rank = (p.rank + 1) % 4
			if _, wrong := other.judge(e.err, e.trial, e.clean); wrong == "" {
				t.Errorf("seed %d: the report of %s by rank %d passes for rank %d: %v", seed, p.kind, p.rank, other.rank, e.err)
			}
		}
		other := *p
		other.call.Site, other.fault.Next.Site = "elsewhere", "elsewhere"
		if _, wrong := other.judge(e.err, e.trial, e.clean); wrong == "" {
			t.Errorf("seed %d: the report of %s in %s passes for another call: %v", seed, p.kind, p.call.Signature, e.err)
		}
		if _, wrong := p.judge(nil, e.clean, e.clean); wrong == "" && p.nan == nil {
			t.Errorf("seed %d: %s without an error passes", seed, p.kind)
		}
	}
	if len(seen) != len(plants())-2 {
		t.Errorf("only %v were planted", seen)
	}
}

// Without a fault other bits are noticed.
func TestTheJudgeComparesBits(t *testing.T) {
	var lab Laboratory
	for seed := uint64(1); ; seed++ {
		p, e, err := lab.strike(seed)
		if err != nil {
			t.Fatal(err)
		}
		if p.kind != "none" {
			continue
		}
		if _, wrong := p.judge(nil, e.trial, e.clean); wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		e.trial.Digests[2] ^= 1
		if _, wrong := p.judge(nil, e.trial, e.clean); wrong == "" {
			t.Error("other bits pass")
		}
		return
	}
}
