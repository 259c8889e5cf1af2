package gemm

import (
	"testing"

	"heddle/ptx"
	"heddle/ptx/emulate"
)

func TestMutantsTmp(t *testing.T) {
	c := Config{BN: 192, BK: 64, Stages: 3, Cluster: 2}
	g := build(t, c)
	ms := g.Entry.Mutants()
	t.Log(len(ms))
	for _, m := range ms {
		mod := &ptx.Module{Entries: []*ptx.Entry{m.Entry()}}
		caught := 0
		first := ""
		for seed := range int64(2) {
			k, err := g.Case(512, 384, 320, 7, 4)
			if err != nil {
				t.Fatal(err)
			}
			err = emulate.Emulator{SMs: 4, Seed: seed, MaxSteps: 1e6}.Run(mod, k.Launch, k.Args)
			if r, ok := err.(*emulate.Report); ok {
				caught++
				first = r.Faults[0].String()
			} else if err != nil {
				first = err.Error()
			} else if err := k.Check(); err != nil {
				first = "VALUE " + err.Error()
			}
		}
		if first == "" {
			first = "MISSED"
		}
		t.Logf("%d %v -> %s", caught, m, first)
	}
}
