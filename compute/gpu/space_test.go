package gpu

import (
	"math/rand"
	"testing"
)

// Parts never overlap, gaps are joined again, and the same requests get the same places.
func TestPartsOfASpaceNeverOverlap(t *testing.T) {
	const size = 1 << 20
	for seed := range int64(20) {
		var again [2][]int
		for round := range again {
			s, r := NewSpace(512, size), rand.New(rand.NewSource(seed))
			live := map[int]int{}
			for range 500 {
				if len(live) > 0 && r.Intn(2) == 0 {
					at := least(live)
					s.Give(at, live[at])
					delete(live, at)
					continue
				}
				n := r.Intn(20000)
				at, ok := s.Take(n)
				if !ok {
					continue
				}
				if at < 512 || at+n > 512+size || at%unit != 0 {
					t.Fatalf("seed %d: %d bytes at %d", seed, n, at)
				}
				for o, m := range live {
					if at < o+max(m, 1) && o < at+max(n, 1) {
						t.Fatalf("seed %d: %d bytes at %d and %d at %d overlap", seed, n, at, m, o)
					}
				}
				live[at] = n
				again[round] = append(again[round], at)
			}
			for at, n := range live {
				s.Give(at, n)
			}
			if len(s.gaps) != 1 || s.gaps[0] != (gap{512, size}) {
				t.Fatalf("seed %d: what is left is %v", seed, s.gaps)
			}
		}
		for i := range again[0] {
			if again[0][i] != again[1][i] {
				t.Fatalf("seed %d: request %d is at %d, then at %d", seed, i, again[0][i], again[1][i])
			}
		}
	}
}

func least(m map[int]int) int {
	best := -1
	for k := range m {
		if best < 0 || k < best {
			best = k
		}
	}
	return best
}

func TestASpaceThatIsFullSaysSo(t *testing.T) {
	s := NewSpace(0, 1024)
	for range 4 {
		if _, ok := s.Take(200); !ok {
			t.Fatal("a unit does not fit")
		}
	}
	if _, ok := s.Take(1); ok || s.Top() != 1024 {
		t.Errorf("a fifth unit fits, top %d", s.Top())
	}
}
