package gemm

import (
	"fmt"
	"testing"

	"heddle/ptx/emulate"
)

// BenchmarkEmulated times the default kernel on the emulator with all checks on.
func BenchmarkEmulated(b *testing.B) {
	g := build(b, Default())
	for _, n := range []int{256, 1024, 2048} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k, err := NewExact(n, n, n, 1).Case(g, 8)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := (emulate.Emulator{SMs: 8, Seed: 1}).Run(g.Module(), k.Launch, k.Args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
