package tile

import (
	"math"
	"testing"
)

// square is 8192³ in bf16 by 128 × 128 tiles: 64 × 64 of them, stripes of 2 MiB.
func square() Work { return Work{BM: 128, BN: 128, BK: 64, K: 8192, ElemBytes: 2} }

func TestWavesCountStripes(t *testing.T) {
	s := Schedule{TilesM: 64, TilesN: 64, Order: Raster, Fast: AlongN}
	waves := Must(s.Waves(Must(s.Path()), 132, square()))
	// 132 tiles in a row of 64: rows 0, 1 and a bit of 2, all 64 columns; then rows 2 (again), 3, 4.
	want := Wave{First: 132, Clusters: 132, Tiles: 132, StripesA: 3, StripesB: 64, NewA: 2, NewB: 0, Bytes: 67 << 21, NewBytes: 2 << 21}
	if len(waves) != 32 || waves[1] != want || waves[31].Tiles != 4096-31*132 {
		t.Errorf("got %d waves, second %+v, last %+v", len(waves), waves[1], waves[len(waves)-1])
	}
	s = Schedule{TilesM: 64, TilesN: 64, Order: Serpentine, Group: 12, Fast: AlongN}
	waves = Must(s.Waves(Must(s.Path()), 132, square()))
	if w := waves[0]; w.StripesA != 11 || w.StripesB != 12 || waves[1].NewA != 11 || waves[1].NewB != 0 {
		t.Errorf("strip of 12: got %+v, then %+v; want 11 + 12 stripes, then 11 new", w, waves[1])
	}
	// Clusters of 2 × 1 on 132 SMs: 66 at a time, 132 tiles. 9 rows are 4.5 clusters: the last row of clusters overhangs.
	s = Schedule{TilesM: 9, TilesN: 40, ClusterM: 2, Order: Raster, Fast: AlongN}
	total := 0
	for _, w := range Must(s.Waves(Must(s.Path()), 132, square())) {
		total += w.Tiles
	}
	if total != 360 {
		t.Errorf("ragged clusters: waves hold %d tiles, want 360", total)
	}
	if _, err := s.Waves(nil, 1, square()); err == nil {
		t.Error("cluster of 2 on one SM: no error")
	}
}

// The measured hit rates are Nsight Compute's on an H100 (public figures of an 8192³ bf16 GEMM with 128 × 128 tiles and no cluster). The model must rank
// the three orders as measured and come within 12 points: its known gap is 11, for raster.
func TestL2ModelRanksOrdersAsMeasured(t *testing.T) {
	last := 0.0
	for _, c := range []struct {
		s        Schedule
		measured float64
	}{
		{Schedule{Order: Raster}, 0.518}, {Schedule{Order: Hilbert}, 0.754}, {Schedule{Order: Serpentine, Group: 12}, 0.780},
	} {
		c.s.TilesM, c.s.TilesN = 64, 64
		e := Must(c.s.EstimateL2(Must(c.s.Path()), H100(), 40<<20, square()))
		if math.Abs(e.HitRate-c.measured) > 0.12 || e.HitRate <= last {
			t.Errorf("%s: predicted %.3f, measured %.3f, one order worse was predicted %.3f", c.s.Order, e.HitRate, c.measured, last)
		}
		last = e.HitRate
	}
}

func TestL2ModelAtItsLimits(t *testing.T) {
	s := Schedule{TilesM: 8, TilesN: 8, Order: Raster}
	path, w := Must(s.Path()), Work{BM: 128, BN: 128, BK: 64, K: 1024, ElemBytes: 2}
	operands := 2 * 1024 * 1024 * 2 // A and B whole
	chip := H100()
	chip.L2Halves = 1
	all := Must(s.EstimateL2(path, chip, 1<<30, w))
	if all.DRAM != operands || all.Missed != operands || all.Requested != 64*2*128*1024*2 {
		t.Errorf("a cache that holds everything: %+v, want %d bytes read once", all, operands)
	}
	chip.SMs = 1
	none := Must(s.EstimateL2(path, chip, 1, w))
	if none.DRAM != none.Requested || none.HitRate != 0 {
		t.Errorf("no cache and one SM: %+v, want every request to go to DRAM", none)
	}
	// Multicast: a 2 × 1 cluster asks for its B stripe once.
	s.ClusterM = 2
	if got := Must(s.EstimateL2(Must(s.Path()), H100(), 1<<30, w)); got.Requested != all.Requested*3/4 {
		t.Errorf("cluster 2 × 1 requests %d, want 3/4 of %d", got.Requested, all.Requested)
	}
}

func TestLRUAgainstAList(t *testing.T) {
	const blocks, capacity = 12, 50
	l := newLRU(blocks, capacity)
	var held []int // least recent first
	size := func(b int) int { return 5 + b%3*4 }
	state := uint32(1)
	for range 5000 {
		state = state*1664525 + 1013904223
		b := int(state >> 16 % blocks)
		hit := false
		for i, x := range held {
			if x == b {
				hit, held = true, append(held[:i:i], held[i+1:]...)
				break
			}
		}
		held = append(held, b)
		for total := capacity + 1; total > capacity; {
			total = 0
			for _, x := range held {
				total += size(x)
			}
			if total > capacity {
				held = held[1:]
			}
		}
		if l.touch(b, size(b)) != hit {
			t.Fatalf("block %d: want hit %v, held %v", b, hit, held)
		}
		for x := range blocks {
			in := false
			for _, y := range held {
				in = in || x == y
			}
			if l.has(x) != in {
				t.Fatalf("block %d is held: %v, want %v", x, l.has(x), in)
			}
		}
	}
}
