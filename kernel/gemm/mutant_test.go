package gemm

import (
	"testing"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
	"heddle/ptx/emulate"
)

// Every planted fault is caught on every seed (two here, eight by heddle kernels emulate --mutants), at its place and with its kind, or stands in the list of equivalent mutants with a proof.
// Size: five k blocks are stages + 2, two tiles a CTA, three or four epilogue chunks.
func TestEveryMutantIsCaught(t *testing.T) {
	for _, c := range []Config{
		{BM: 128, BN: 192, BK: 64, Stages: 3, Consumers: 2, ClusterM: 2, ClusterN: 1, Overlap: Waits, L2: ptx.L2128B},
		{BM: 128, BN: 128, BK: 64, Stages: 3, Consumers: 2, PingPong: true, ClusterM: 1, ClusterN: 1, Order: kernel.Order{Group: 2}, L2: ptx.L2128B, Out: num.F32, TransA: true},
	} {
		t.Run(c.String(), func(t *testing.T) {
			g := build(t, c)
			k, sms, err := g.FaultCase()
			if err != nil {
				t.Fatal(err)
			}
			fresh := func() (ptx.Launch, *ptx.Args, error) { return k.Launch, k.Args, nil } // nothing reads D
			verdicts, err := emulate.Trial(g.Entry, emulate.Emulator{SMs: sms, Dry: true, MaxSteps: 1e6}, 2, fresh, g.Equivalent)
			if err != nil {
				t.Fatal(err)
			}
			equivalent := 0
			for _, v := range verdicts {
				if v.Equivalent != "" {
					equivalent++
					if v.Caught > 0 {
						t.Errorf("%s %s is listed as equivalent but was caught: %s", v.Line, v.Mutant, v.Text)
					}
				}
				if !v.Passed() {
					t.Errorf("%s %s: caught on %d of %d seeds; reported: %s", v.Line, v.Mutant, v.Caught, v.Seeds, v.Text)
				}
			}
			if 10*equivalent > len(verdicts) {
				t.Errorf("%d of %d mutants are equivalent, want at most a tenth", equivalent, len(verdicts))
			}
			t.Logf("%d mutants, %d equivalent", len(verdicts), equivalent)
		})
	}
}
