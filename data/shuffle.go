package data

import "math/bits"

// The shuffles are written out, not taken from math/rand, so that a checkpoint finds the same order after an upgrade of Go.

// Streams of random numbers that must not repeat each other.
const (
	sampleStream = 1 << 62
	windowStream = 1 << 63
)

// random is splitmix64 (Steele, Lea, Flood 2014).
type random uint64

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// shuffled returns 0…n-1 in the order of (seed, stream): Fisher and Yates, with Lemire's multiplication for the range, whose bias below n/2^64 does not matter.
func shuffled(n int, seed, stream uint64) []int32 {
	r := random(seed)
	r = random(r.next() ^ stream)
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	for i := n - 1; i > 0; i-- {
		j, _ := bits.Mul64(r.next(), uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}
