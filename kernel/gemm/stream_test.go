package gemm

import (
	"bytes"
	"math/rand"
	"testing"

	"heddle/num"
	"heddle/ptx"
	"heddle/ptx/emulate"
)

// Every k step of every tile belongs to exactly one piece, and the tile's first step is the last piece of its cluster's share.
func TestSharesCoverEveryStepOnce(t *testing.T) {
	for _, c := range [][3]int{{1, 1, 8}, {3, 5, 8}, {8, 16, 8}, {11, 7, 8}, {64, 128, 132}, {56, 3, 132}, {1376, 128, 132}, {9, 1, 4}} {
		s := newSplit(c[0], c[1], c[2])
		if s.clusters > c[2] || s.units > c[2] || c[0] > c[2] && (c[0]-s.streamed)%s.clusters != 0 {
			t.Errorf("%v: %+v", c, s)
		}
		cut := s.streamed * c[1]
		share, extra := 0, 0
		if cut > 0 {
			share, extra = cut/s.units, cut%s.units
		}
		begin := func(u int) int { return min(u*share+min(u, extra), cut) }
		for u := range s.clusters {
			if begin(u) > begin(u+1) || u < s.units && cut > 0 && begin(u) == begin(u+1) {
				t.Errorf("%v: cluster %d has steps %d to %d", c, u, begin(u), begin(u+1))
			}
		}
		if begin(0) != 0 || begin(s.clusters) != cut || s.streamed == c[0] && cut != c[0]*c[1] {
			t.Errorf("%v: %+v covers %d to %d of %d", c, s, begin(0), begin(s.clusters), cut)
		}
	}
}

// On data whose sums depend on the order of summation, every schedule gives the same bits.
func TestStreamKGivesTheSameBitsUnderEverySchedule(t *testing.T) {
	c, err := ParseConfig("64x128x64-w1-c1x1-s4-g4-streamk-tof32")
	if err != nil {
		t.Fatal(err)
	}
	g := build(t, c)
	r := rand.New(rand.NewSource(1))
	const m, n, k, ctas = 192, 256, 832, 8 // 6 tiles of 13 steps on 8 CTAs: up to two partial sums a tile
	p := Problem{M: m, N: n, K: k, A: buffer("A", num.BF16, m*k), B: buffer("B", num.BF16, n*k), Work: workspace(g.Workspace(ctas), c.flagBytes(ctas))}
	for _, b := range []*ptx.Buffer{p.A, p.B} {
		for i := range (len(b.Data) - guard) / 2 {
			put(b, num.BF16, i, float32(r.NormFloat64()))
		}
	}
	var first []byte
	for seed := range int64(3) {
		p.D = buffer("D", num.F32, m*n)
		l, args, err := g.Launch(p, ctas)
		if err == nil {
			err = (emulate.Emulator{SMs: ctas, Seed: seed, Async: emulate.When(seed)}).Run(g.Module(), l, args) // the workspace as the run before left it
		}
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = p.D.Data
		} else if !bytes.Equal(first, p.D.Data) {
			t.Errorf("seed %d gives other bits", seed)
		}
	}
}
