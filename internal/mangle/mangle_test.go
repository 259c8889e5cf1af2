package mangle

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Inputs are the same each time, differ from their seed almost always, and stay near its size: four edits of at most 32 bytes each.
func TestEditsAreSmallAndTheSameEachTime(t *testing.T) {
	seed := bytes.Repeat([]byte("0123456789"), 20)
	a, b := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	same, short := 0, 0
	for range 2000 {
		x, y := Edit(a, nil, seed, []byte("other")), Edit(b, nil, seed, []byte("other"))
		if !bytes.Equal(x, y) {
			t.Fatal("one seed gives two inputs")
		}
		if len(x) > len(seed)+4*32 {
			t.Fatalf("grew from %d to %d", len(seed), len(x))
		}
		if bytes.Equal(x, seed) {
			same++
		}
		if len(x) < len(seed)-4*32 {
			short++
		}
	}
	if same > 200 || short > 200 {
		t.Errorf("of 2000 inputs %d are the seed, %d are cut short", same, short)
	}
}

func TestEmptySeedGivesSomething(t *testing.T) {
	if Edit(rand.New(rand.NewPCG(1, 1)), nil, nil, nil) == nil {
		t.Error("nothing comes of an empty seed")
	}
}
