package gemm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/num"
	"heddle/ptx"
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

// The product is exact and nothing is reported, for every member of the family, on one or two of its whole and ragged sizes: each size meets every kind of
// configuration, and each configuration several schedules. heddle kernels emulate and heddle gemm check run all of them.
func TestExactOnSmallIntegers(t *testing.T) {
	for i, c := range Family() {
		g := build(t, c)
		for j, s := range c.Sizes() {
			if more := c.StreamK || c.Groups != Alone; j != i%6 && (i > 0 || j%2 == 0) && !(more && j == (i+3)%6) {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", c, s), func(t *testing.T) {
				seed := int64(i + j)
				k, err := NewExact(s[0], s[1], s[2], seed).Case(g, 8)
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
		if err != nil || got != c.Full() {
			t.Errorf("%v read as %v: %v", c, got, err)
		}
	}
	for _, bad := range []string{"", "128x256x64", "128x256x64-w2-c2x1-s9-g8", "128x256x64-w2-c2x1-s4-g8-fast", "128x256-w2-c2x1-s4-g8", "128x256x64-w2-c3x1-s4-g8", "128x256x64-w1-c1x1-s4-g8"} {
		if c, err := ParseConfig(bad); err == nil {
			t.Errorf("%q read as %v", bad, c)
		}
	}
}

func TestConfigRefusesWithAReason(t *testing.T) {
	good := Config{BM: 128, BN: 128, BK: 64, Stages: 2, Consumers: 2, ClusterM: 1, ClusterN: 1, L2: ptx.L2128B}
	for want, edit := range map[string]func(*Config){
		"tile of 96×128": func(c *Config) { c.BM = 96 }, "tile of 128×72": func(c *Config) { c.BN = 72 }, "48 × bf16 deep": func(c *Config) { c.BK = 48 },
		"clusters of 3×1": func(c *Config) { c.ClusterM = 3 }, "2 for ping-pong": func(c *Config) { c.PingPong, c.Consumers = true, 1 },
		"32 rows for each of 2": func(c *Config) { c.BM = 64 }, "registers": func(c *Config) { c.BM, c.BN = 256, 256 },
		"bytes of shared memory": func(c *Config) { c.BN, c.Stages = 256, 5 }, "64 rows at least of a transposed": func(c *Config) { c.BN, c.ClusterM, c.TransB = 64, 2, true },
		"operands of type": func(c *Config) { c.In = num.F32 }, "result of type": func(c *Config) { c.Out = num.I32 }, "adding": func(c *Config) { c.Add = true },
		"33 stages": func(c *Config) { c.Stages = 33 }, "strips of -1": func(c *Config) { c.Order.Group = -1 },
	} {
		c := good
		edit(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q in it", c, err, want)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestLaunchRefusesRowsThatTMACannotMove(t *testing.T) {
	g := build(t, Default())
	for _, s := range [][3]int{{8, 12, 64}, {8, 8, 12}, {0, 8, 8}} {
		if _, err := NewExact(s[0], s[1], s[2], 1).Case(g, 4); err == nil {
			t.Errorf("%v passes", s)
		}
	}
}
