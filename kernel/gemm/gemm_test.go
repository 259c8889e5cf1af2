package gemm

import (
	"fmt"
	"slices"
	"testing"

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

// The product is exact and nothing is reported, for every member of the family, on whole and on ragged sizes, each under its own schedule.
func TestExactOnSmallIntegers(t *testing.T) {
	for i, s := range [][3]int{{256, 256, 256}, {136, 200, 72}, {1, 16, 24}, {300, 520, 640}} {
		x := NewExact(s[0], s[1], s[2], int64(i))
		for j, c := range Family() {
			t.Run(fmt.Sprintf("%v/%v", c, s), func(t *testing.T) {
				g, seed := build(t, c), int64(i+j)
				k, err := x.Case(g, 8)
				if err != nil {
					t.Fatal(err)
				}
				if err := (emulate.Emulator{SMs: 8, Seed: seed, Async: emulate.When(seed)}).Run(g.Module(), k.Launch, k.Args); err != nil {
					t.Fatal(err)
				}
				if err := k.Check(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// A name says everything: reading it gives the configuration back.
func TestNamesAreReadBack(t *testing.T) {
	for _, c := range slices.Concat(Family(), Candidates(false), Candidates(true), []Config{Default()}) {
		got, err := ParseConfig(c.String())
		if err != nil || got != c {
			t.Errorf("%v read as %v: %v", c, got, err)
		}
	}
	for _, bad := range []string{"", "128x256x64", "128x256x64-w2-c2x1-s9-g8", "128x256x64-w2-c2x1-s4-g8-fast", "128x256-w2-c2x1-s4-g8", "128x256x64-w2-c3x1-s4-g8", "128x256x64-w1-c1x1-s4-g8"} {
		if c, err := ParseConfig(bad); err == nil {
			t.Errorf("%q read as %v", bad, c)
		}
	}
}
