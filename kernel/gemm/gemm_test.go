package gemm

import (
	"fmt"
	"strings"
	"testing"

	"heddle/kernel"
	"heddle/num"
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

// family has every tile height and width, both clusters, shallow and deep rings, each order, schedule, type and layout.
func family() []Config {
	all := []Config{
		Default(),
		{BN: 64, BK: 64, Stages: 4, Cluster: 1},
		{BN: 128, BK: 64, Stages: 4, Cluster: 2, Order: kernel.Order{Group: 2}},
		{BN: 256, BK: 64, Stages: 3, Cluster: 1, Order: kernel.Order{Group: 1, Serpentine: true}},
		{BN: 192, BK: 64, Stages: 2, Cluster: 2},
		{BM: 64, BN: 128, BK: 64, Stages: 8, Cluster: 2, Order: kernel.Order{Group: 4}},
		{BM: 64, BN: 64, BK: 64, Stages: 3, Cluster: 1},
		{BM: 256, BN: 128, BK: 64, Stages: 4, Cluster: 1, Order: kernel.Order{Group: 2}},
		{BM: 128, BN: 192, BK: 64, Stages: 4, Cluster: 2, PingPong: true, Order: kernel.Order{Group: 2}},
		{BM: 128, BN: 128, BK: 64, Stages: 5, Cluster: 1, PingPong: true},
		{BM: 128, BN: 128, BK: 64, Stages: 3, Cluster: 2, In: num.F16},
		{BM: 128, BN: 128, BK: 64, Stages: 3, Cluster: 1, Out: num.F32},
		{BM: 64, BN: 192, BK: 64, Stages: 3, Cluster: 2, In: num.F16, Out: num.F32, Add: true},
		{BM: 256, BN: 64, BK: 64, Stages: 2, Cluster: 1, In: num.F16, Out: num.BF16},
	}
	for layout := 1; layout < 4; layout++ {
		all = append(all,
			Config{BN: 256, BK: 64, Stages: 3, Cluster: 2, TransA: layout&1 != 0, TransB: layout&2 != 0, Order: kernel.Order{Group: 8}},
			Config{BM: 128, BN: 128, BK: 64, Stages: 4, Cluster: 1, PingPong: true, TransA: layout&1 != 0, TransB: layout&2 != 0, Out: num.F32, Add: layout == 3})
	}
	return all
}

// The product is exact and nothing is reported, for the whole family, on whole and on ragged sizes, under several schedules.
func TestExactOnSmallIntegers(t *testing.T) {
	for i, c := range family() {
		g := build(t, c)
		for j := range c.sizes() {
			if i > 0 && j != i%6 && j != (i+3)%6 { // each size still meets every kind of configuration
				continue
			}
			when := emulate.When((i + j) % 3)
			t.Run(fmt.Sprintf("%v/%d", c, j), func(t *testing.T) {
				all, err := g.Cases(4)
				if err != nil {
					t.Fatal(err)
				}
				if err := (emulate.Emulator{SMs: 4, Seed: int64(i), Async: when}).Run(g.Module(), all[j].Launch, all[j].Args); err != nil {
					t.Fatal(err)
				}
				if err := all[j].Check(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func TestConfigRefusesWithAReason(t *testing.T) {
	for want, c := range map[string]Config{
		"rows": {BM: 96, BN: 64, BK: 64, Stages: 2, Cluster: 1}, "columns": {BN: 72, BK: 64, Stages: 2, Cluster: 1}, "deep": {BN: 64, BK: 32, Stages: 2, Cluster: 1},
		"clusters of 3": {BN: 64, BK: 64, Stages: 2, Cluster: 3}, "ping-pong": {BM: 64, BN: 64, BK: 64, Stages: 2, Cluster: 1, PingPong: true},
		"registers": {BM: 256, BN: 256, BK: 64, Stages: 2, Cluster: 1}, "bytes of shared memory": {BN: 256, BK: 64, Stages: 5, Cluster: 1},
		"transposed B": {BN: 192, BK: 64, Stages: 2, Cluster: 2, TransB: true}, "operands of type": {BN: 64, BK: 64, Stages: 2, Cluster: 1, In: num.F32},
		"adding": {BN: 64, BK: 64, Stages: 2, Cluster: 1, Add: true},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q in it", c, err, want)
		}
	}
}

func TestLaunchRefusesRowsThatTMACannotMove(t *testing.T) {
	g := build(t, Default())
	for _, s := range [][3]int{{8, 12, 64}, {8, 8, 12}, {0, 8, 8}} {
		if _, err := g.Case(max(0, s[0]), s[1], s[2], 1, 4); err == nil {
			t.Errorf("%v passes", s)
		}
	}
}
