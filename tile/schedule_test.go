package tile

import (
	"math/rand/v2"
	"testing"
)

func TestDivmodIsDivision(t *testing.T) {
	check := func(d, n int) {
		m := Must(NewDivmod(d))
		if q, r := m.Of(n); q != n/d || r != n%d {
			t.Fatalf("%d / %d: got %d rest %d, %+v", n, d, q, r, m)
		}
		if d > 1 && int(uint64(n)*uint64(m.Multiplier)>>32>>(m.Shift-32)) != n/d { // the mul.hi form
			t.Fatalf("%d / %d by the high word: %+v", n, d, m)
		}
	}
	// The quotient of magic division is monotonic in n, so that being right on both sides of every multiple is being right everywhere.
	// Small divisors: all multiples below 2^17 and the last ones below 2^31. Large ones: all multiples.
	for d := 1; d <= 2048; d++ {
		for n := 0; n < 1<<17; n += d {
			check(d, n)
			check(d, n+d-1)
		}
		for top := 1<<31 - 1; top > 1<<31-1-8*d; top -= d {
			check(d, top/d*d)
			check(d, top/d*d-1)
			check(d, top)
		}
	}
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300_000 {
		d := 1 + r.IntN(1<<(1+r.IntN(31))-1)
		n := r.IntN(1 << 31)
		check(d, n)
		check(d, n/d*d)
		check(d, max(n/d*d-1, 0))
	}
	for _, d := range []int{0, -1, 1 << 31} {
		if m, err := NewDivmod(d); err == nil {
			t.Errorf("divmod by %d: got %+v", d, m)
		}
	}
}

func FuzzDivmod(f *testing.F) {
	f.Add(uint32(1), uint32(1<<31-1))
	f.Add(uint32(1<<31-1), uint32(1<<31-1))
	f.Fuzz(func(t *testing.T, d, n uint32) {
		d, n = max(d>>1, 1), n>>1
		if q, r := Must(NewDivmod(int(d))).Of(int(n)); q != int(n/d) || r != int(n%d) {
			t.Fatalf("%d / %d = %d rest %d", n, d, q, r)
		}
	})
}

func TestEveryOrderVisitsEachTileOnce(t *testing.T) {
	for _, order := range Orders() {
		for _, size := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {2, 2}, {5, 4}, {13, 7}, {20, 10}, {64, 32}, {33, 17}, {2, 31}} {
			for _, cluster := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {2, 4}} {
				for _, group := range []int{1, 3, 8, 100} {
					for _, fast := range []Axis{"", AlongM, AlongN} {
						s := Schedule{TilesM: size[0], TilesN: size[1], ClusterM: cluster[0], ClusterN: cluster[1], Order: order, Group: group, Fast: fast}
						seen := map[Pos]int{}
						path := Must(s.Path())
						for _, c := range path {
							for _, p := range s.Tiles(c) {
								seen[p]++
							}
						}
						for m := range size[0] {
							for n := range size[1] {
								if seen[Pos{m, n}] != 1 {
									t.Fatalf("%+v: tile (%d,%d) is visited %d times", s, m, n, seen[Pos{m, n}])
								}
							}
						}
						if cm, cn := s.ClusterM, s.ClusterN; len(seen) != size[0]*size[1] || len(path) != ceilDiv(size[0], cm)*ceilDiv(size[1], cn) {
							t.Fatalf("%+v: %d tiles, %d clusters", s, len(seen), len(path))
						}
					}
				}
			}
		}
	}
}

func TestHilbertAndSerpentineStepToNeighbours(t *testing.T) {
	for m := 1; m <= 20; m++ {
		for n := 1; n <= 20; n++ {
			diagonal := 0
			path := Must(Schedule{TilesM: m, TilesN: n, Order: Hilbert}.Path())
			for i := 1; i < len(path); i++ {
				switch d := path[i].minus(path[i-1]); {
				case length(d) == 1:
				case d.M*d.M == 1 && d.N*d.N == 1:
					diagonal++
				default:
					t.Fatalf("hilbert %d × %d jumps from %v to %v", m, n, path[i-1], path[i])
				}
			}
			if diagonal > 1 || diagonal > 0 && m%2 == 0 && n%2 == 0 {
				t.Errorf("hilbert %d × %d has %d diagonal steps", m, n, diagonal)
			}
		}
	}
	path := Must(Schedule{TilesM: 4, TilesN: 6, Order: Serpentine, Group: 2}.Path())
	want := []Pos{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}, {3, 3}, {2, 2}, {2, 3}}
	for i, p := range want {
		if path[i] != p {
			t.Errorf("serpentine step %d: got %v, want %v", i, path[i], p)
		}
	}
}

func TestImpossibleSchedulesAreRefused(t *testing.T) {
	for _, s := range []Schedule{{}, {TilesM: 1, TilesN: 1}, {TilesM: 1 << 30, TilesN: 1 << 30, Order: Raster}, {TilesM: 4, TilesN: 4, Order: Grouped},
		{TilesM: 4, TilesN: 4, Order: Raster, ClusterM: 5, ClusterN: 4}, {TilesM: 4, TilesN: 4, Order: Raster, Fast: "k"}, {TilesM: 4, TilesN: 4, Order: "spiral"}, {TilesM: 4, TilesN: -4, Order: Raster}} {
		if path, err := s.Path(); err == nil {
			t.Errorf("%+v: got %d clusters", s, len(path))
		}
	}
}
