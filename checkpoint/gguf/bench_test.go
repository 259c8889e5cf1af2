package gguf

import (
	"math/rand/v2"
	"testing"
)

// One million elements of each type from memory; bytes a second are those of the float32 that come out.
func BenchmarkDequantise(b *testing.B) {
	const n = 1 << 20
	rng := rand.New(rand.NewPCG(1, 1))
	for _, typ := range []Type{F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K} {
		block, size := typ.block()
		file := builder{magic, 3, 1, 0, entry("a", typ, 0, n), make([]byte, n/block*size)}
		for i := range file.data {
			file.data[i] = byte(rng.Uint32())
		}
		f, err := openBytes(file.bytes())
		if err != nil {
			b.Fatal(err)
		}
		x, _ := f.Tensor("a")
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				if _, err := x.Float32s(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
