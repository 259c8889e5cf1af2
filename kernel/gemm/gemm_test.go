package gemm

import (
	"fmt"
	"testing"

	"heddle/kernel"
	"heddle/ptx/emulate"
)

func build(t testing.TB, c Config) *Gemm {
	t.Helper()
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The product is exact and nothing is reported, for tiles, stages, clusters and orders, on whole and on ragged sizes, under several schedules.
func TestExactOnSmallIntegers(t *testing.T) {
	configs := []Config{
		{BN: 64, BK: 64, Stages: 4, Cluster: 1}, {BN: 128, BK: 64, Stages: 4, Cluster: 2, Order: kernel.Order{Group: 2}}, Default(),
		{BN: 256, BK: 64, Stages: 3, Cluster: 1, Order: kernel.Order{Group: 1, Serpentine: true}}, {BN: 192, BK: 64, Stages: 2, Cluster: 2},
	}
	for _, c := range configs {
		g := build(t, c)
		for _, s := range [][3]int{{256, 256, 256}, {136, 200, 72}, {512, 256, 1024}, {8, 8, 8}, {1, 16, 24}, {300, 520, 640}} {
			for seed := range int64(3) {
				t.Run(fmt.Sprintf("%v/%v/%d", c, s, seed), func(t *testing.T) {
					kase, err := g.Case(s[0], s[1], s[2], seed, 4)
					if err != nil {
						t.Fatal(err)
					}
					run := emulate.Emulator{SMs: 4, Seed: seed, Async: emulate.When(seed)}
					if err := run.Run(g.Module(), kase.Launch, kase.Args); err != nil {
						t.Fatal(err)
					}
					if err := kase.Check(); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}
