package blas

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// Nobody passes a Wait before everybody has come to it, on more threads than processors too.
func TestWaitHoldsEverybody(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 9} {
		p := NewPool(threads)
		var count atomic.Int64
		wrong := make([]int, threads)
		p.Together(func(m *Member) {
			for turn := range 300 {
				if (turn+m.Index)%50 == 0 {
					time.Sleep(time.Microsecond)
				}
				count.Add(1)
				m.Wait()
				if count.Load() != int64((turn+1)*m.Of) {
					wrong[m.Index]++
				}
				m.Wait()
			}
		})
		p.Close()
		if !slices.Equal(wrong, make([]int, threads)) {
			t.Errorf("%d threads: early %v times", threads, wrong)
		}
	}
}

// The first panic reaches the caller, the others end, and the pool goes on working.
func TestTogetherPassesAPanicOn(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for bad := range 3 {
		func() {
			defer func() {
				if v := recover(); v != bad {
					t.Errorf("member %d panics, the caller gets %v", bad, v)
				}
			}()
			p.Together(func(m *Member) {
				m.Wait()
				if m.Index == bad {
					panic(bad)
				}
				m.Wait()
			})
		}()
		var n atomic.Int32
		p.Together(func(*Member) { n.Add(1) })
		if n.Load() != 3 {
			t.Fatalf("afterwards %d members run, want 3", n.Load())
		}
	}
}

// Every index is done once, by loops that follow each other.
func TestEachDoesEveryIndexOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := NewPool(threads)
		var done [3][100]atomic.Int32
		p.Together(func(m *Member) {
			for turn := range done {
				n := 100 - 49*turn // fewer than threads, in the end
				m.Each(n, func(i int) { done[turn][i].Add(1) })
				for i := range n {
					if done[turn][i].Load() != 1 {
						t.Errorf("%d threads, loop %d: index %d done %d times when the loop has ended", threads, turn, i, done[turn][i].Load())
					}
				}
			}
		})
		p.Close()
	}
}

// Windows side by side are Gemm, to the bit.
func TestWindowsAreGemm(t *testing.T) {
	for _, set := range machineSets(t) {
		p := NewPoolFor(set, 2)
		r := rand.New(rand.NewPCG(9, 9))
		for _, s := range []shape{{1, 200, 70}, {7, 133, 300}, {2, 1, 5}, {40, 64, 64}} {
			g, _ := product[float32](r, s, false, true, false)
			clear(g.C)
			Gemm(p, g)
			want := slices.Clone(g.C)
			clear(g.C)
			for j := 0; j < g.N; j += 64 {
				Window(p, g, j, min(j+64, g.N))
			}
			if !slices.Equal(g.C, want) {
				t.Errorf("%v, %v: other products", set, s)
			}
		}
		p.Close()
	}
}
