package attention

import (
	"slices"
	"testing"

	"heddle/compute/cpu/blas"
)

// Cached keys give Forward's bits: a prompt at once, the same prompt in pieces, one token after the other.
func TestCachedIsForward(t *testing.T) {
	for _, set := range machineSets(t) {
		p := blas.NewPoolFor(set, 1)
		for _, s := range []Shape{{B: 1, Sq: 131, G: 2, R: 3, D: 20}, {B: 1, Sq: 65, G: 1, R: 1, D: 64}, {B: 1, Sq: 64, G: 3, R: 2, D: 8}, {B: 1, Sq: 1, G: 1, R: 2, D: 300}} {
			s.Sk = s.Sq
			x := newData[float32](s, 3)
			Forward(p, s, x.t, nil)
			for _, pieces := range [][]int{{s.Sq}, {1}, {3, 61, 1, 64}} {
				if o := decode(p, pieces, s, x); !slices.Equal(o, x.t.O) {
					t.Fatalf("%v %+v, pieces %v: other bits than Forward", set, s, pieces)
				}
			}
		}
	}
}

// decode feeds the tokens in pieces of the given lengths, the last one again and again, and returns the output.
func decode(p *blas.Pool, pieces []int, s Shape, x *data[float32]) []float32 {
	c := Cache{s.G, s.D}
	w, kw := s.G*s.R*s.D, s.G*s.D
	scratch, o := make([]float32, CachedScratch(c)), make([]float32, s.Sq*w)
	var pages [][]float32
	for at, turn := 0, 0; at < s.Sq; turn++ {
		n := min(pieces[min(turn, len(pieces)-1)], s.Sq-at)
		for j := at; j < at+n; j++ {
			if j%PageTokens == 0 {
				pages = append(pages, make([]float32, PageLen[float32](p, c)))
			}
			for g := range c.G {
				Store(p, c, pages[j/PageTokens], j%PageTokens, g, x.t.K[j*kw+g*c.D:], x.t.V[j*kw+g*c.D:])
			}
		}
		for g := range c.G {
			Head(p, c, s.R, &Queries[float32]{First: at, N: n, Q: x.t.Q[at*w:], Pages: pages, O: o[at*w:]}, g, scratch)
		}
		at += n
	}
	return o
}

func TestCachedRefusesMissingPages(t *testing.T) {
	defer func() {
		if _, ok := recover().(*Error); !ok {
			t.Fatal("no *Error for two tokens without a page")
		}
	}()
	Head(blas.NewPool(1), Cache{1, 4}, 1, &Queries[float32]{N: 2, Q: make([]float32, 8), O: make([]float32, 8)}, 0, make([]float32, 1<<14))
}
