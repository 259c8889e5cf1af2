package gemm

import (
	goflag "flag"
	"testing"

	"heddle/ptx/emulate"
)

var cleanSeeds = goflag.Int("clean-seeds", 10, "schedules of the unmodified kernel that must give no report")

// The kernel is clean under every schedule: go test ./kernel/gemm -run Clean -clean-seeds 1000 for the long run.
func TestCleanUnderEverySchedule(t *testing.T) {
	g := build(t, Config{BM: 128, BN: 192, BK: 64, Stages: 3, Consumers: 2, ClusterM: 2, ClusterN: 1})
	k, sms, err := g.FaultCase()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(*cleanSeeds) {
		run := emulate.Emulator{SMs: sms, Seed: seed, Async: emulate.When(seed % 3), Dry: true}
		if err := run.Run(g.Module(), k.Launch, k.Args); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
