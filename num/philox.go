package num

import "math"

// Philox is the counter-based generator Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"):
// the four words of block counter of a stream depend on nothing else, so every rank draws the same value for the same
// element, whatever the layout.
func Philox(key uint64, stream, counter uint64) [4]uint32 {
	k0, k1 := uint32(key), uint32(key>>32)
	c := [4]uint32{uint32(counter), uint32(counter >> 32), uint32(stream), uint32(stream >> 32)}
	for range 10 {
		p0, p1 := uint64(c[0])*0xD2511F53, uint64(c[2])*0xCD9E8D57
		c = [4]uint32{uint32(p1>>32) ^ c[1] ^ k0, uint32(p1), uint32(p0>>32) ^ c[3] ^ k1, uint32(p0)}
		k0, k1 = k0+0x9E3779B9, k1+0xBB67AE85
	}
	return c
}

// Uniform is element i of a stream, in (0, 1).
func Uniform(key, stream, i uint64) float64 {
	w := Philox(key, stream, i/4)
	return (float64(w[i%4]) + 0.5) / (1 << 32)
}

// Normal is element i of a stream of standard normal numbers (Box and Muller 1958): elements 2j and 2j+1 share two words.
func Normal(key, stream, i uint64) float64 {
	w := Philox(key, stream, i/4)
	a, b := w[i%4&^1], w[i%4|1]
	r := math.Sqrt(-2 * math.Log((float64(a)+0.5)/(1<<32)))
	t := 2 * math.Pi * (float64(b) + 0.5) / (1 << 32)
	if i%2 == 0 {
		return r * math.Cos(t)
	}
	return r * math.Sin(t)
}
