package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// elements lists the global indices of a box, row-major, by counting.
func elements(b Box) (out [][]int) {
	out = [][]int{{}}
	for d := range b.Lo {
		var next [][]int
		for _, at := range out {
			for x := b.Lo[d]; x < b.Hi[d]; x++ {
				next = append(next, append(slices.Clone(at), x))
			}
		}
		out = next
	}
	return out
}

// randomBox is a box of dims dimensions with sides of 0 to 4, somewhere below 6.
func randomBox(rng *rand.Rand, dims int) Box {
	b := Box{make([]int, dims), make([]int, dims)}
	for i := range dims {
		b.Lo[i] = rng.IntN(3)
		b.Hi[i] = b.Lo[i] + rng.IntN(5)
	}
	return b
}

// The boxes of a range, one after the other, are the range's elements; and they are few.
func TestRangeIsItsBoxesInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		b := randomBox(rng, rng.IntN(5))
		all := elements(b)
		if len(all) != b.Len() {
			t.Fatalf("%v has %d elements, Len says %d", b, len(all), b.Len())
		}
		to := rng.IntN(len(all) + 1)
		from := rng.IntN(to + 1)
		var got [][]int
		boxes := b.Range(from, to)
		for _, x := range boxes {
			if x.Len() == 0 {
				t.Fatalf("%v [%d, %d): an empty box", b, from, to)
			}
			got = append(got, elements(x)...)
		}
		if fmt.Sprint(got) != fmt.Sprint(all[from:to]) {
			t.Fatalf("%v [%d, %d): got %v, want %v", b, from, to, got, all[from:to])
		}
		if most := max(1, 2*len(b.Lo)-1); len(boxes) > most {
			t.Fatalf("%v [%d, %d): %d boxes, at most %d", b, from, to, len(boxes), most)
		}
	}
}

// Runs visit every shared element once, at its place in both boxes.
func TestRunsVisitTheSharedElements(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 3000 {
		dims := rng.IntN(4)
		a, b := randomBox(rng, dims), randomBox(rng, dims)
		inA, inB := elements(a), elements(b)
		part := a.Meet(b)
		if (part.Len() > 0) != a.meets(b) && a.Len() > 0 && b.Len() > 0 {
			t.Fatalf("%v and %v: meets says %v, they share %d", a, b, a.meets(b), part.Len())
		}
		var got [][]int
		runs(part, a, b, func(n, x, y int) error {
			for i := range n {
				if !slices.Equal(inA[x+i], inB[y+i]) {
					t.Fatalf("%v and %v: %v against %v", a, b, inA[x+i], inB[y+i])
				}
				got = append(got, inA[x+i])
			}
			return nil
		})
		if want := elements(part); part.Len() > 0 && fmt.Sprint(got) != fmt.Sprint(want) || part.Len() == 0 && got != nil {
			t.Fatalf("%v and %v: visited %v, want %v", a, b, got, want)
		}
	}
}
