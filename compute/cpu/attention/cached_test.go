package attention

import (
	"slices"
	"testing"

	"heddle/compute/cpu/blas"
)

// Cached gives Forward's bits: a prompt at once, the same prompt in pieces, one token after the other, sequences of different
// lengths in one call, any number of threads.
func TestCachedIsForward(t *testing.T) {
	for _, set := range machineSets(t) {
		one, three := blas.NewPoolFor(set, 1), blas.NewPoolFor(set, 3)
		defer three.Close()
		for _, s := range []Shape{{B: 1, Sq: 131, G: 2, R: 3, D: 20}, {B: 1, Sq: 65, G: 1, R: 1, D: 64}, {B: 1, Sq: 64, G: 3, R: 2, D: 8}, {B: 1, Sq: 1, G: 1, R: 2, D: 300}} {
			s.Sk = s.Sq
			x := newData[float32](s, 3)
			Forward(one, s, x.t, nil)
			for _, pieces := range [][]int{{s.Sq}, {1}, {3, 61, 1, 64}} {
				for _, p := range []*blas.Pool{one, three} {
					short := s
					short.Sq = (s.Sq + 1) / 2
					o := decode(p, pieces, cachedCase{s, x}, cachedCase{short, x})
					if !slices.Equal(o[0], x.t.O) {
						t.Fatalf("%v %+v, %d threads, pieces %v: other bits than Forward", set, s, p.Threads(), pieces)
					}
					if !slices.Equal(o[1], x.t.O[:len(o[1])]) {
						t.Fatalf("%v %+v, %d threads, pieces %v: a shorter neighbour has other bits", set, s, p.Threads(), pieces)
					}
				}
			}
		}
	}
}

type cachedCase struct {
	s Shape
	x *data[float32]
}

// decode feeds the cases' tokens in pieces of the given lengths, the last one again and again, and returns their outputs.
func decode(p *blas.Pool, pieces []int, cases ...cachedCase) (out [][]float32) {
	c := Cache{cases[0].s.G, cases[0].s.D}
	w, kw := cases[0].s.G*cases[0].s.R*c.D, c.G*c.D
	pages := make([][][]float32, len(cases))
	for _, k := range cases {
		out = append(out, make([]float32, k.s.Sq*w))
	}
	for at, turn := 0, 0; at < cases[0].s.Sq; turn++ {
		n := pieces[min(turn, len(pieces)-1)]
		var all []Queries[float32]
		for i, k := range cases {
			n := min(n, k.s.Sq-at)
			if n <= 0 {
				continue
			}
			for j := at; j < at+n; j++ {
				if j%PageTokens == 0 {
					pages[i] = append(pages[i], make([]float32, PageLen[float32](p, c)))
				}
				Store(p, c, pages[i][j/PageTokens], j%PageTokens, k.x.t.K[j*kw:], k.x.t.V[j*kw:])
			}
			all = append(all, Queries[float32]{First: at, N: n, Q: k.x.t.Q[at*w:], Pages: pages[i], O: out[i][at*w:]})
		}
		Cached(p, c, cases[0].s.R, all, make([]float32, CachedScratch(p, c)))
		at += n
	}
	return out
}

func TestCachedRefusesMissingPages(t *testing.T) {
	defer func() {
		if _, ok := recover().(*Error); !ok {
			t.Fatal("no *Error for two tokens without a page")
		}
	}()
	Cached(blas.NewPool(1), Cache{1, 4}, 1, []Queries[float32]{{N: 2, Q: make([]float32, 8), O: make([]float32, 8)}}, nil)
}
