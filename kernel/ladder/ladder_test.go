package ladder

import (
	"testing"

	"heddle/ptx/emulate"
)

// Every rung is exact on small integers, on whole and ragged sizes, and clean in the emulator.
func TestEveryRungIsExact(t *testing.T) {
	for i, r := range Rungs() {
		cases, module, err := r.Cases(4)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		for j, c := range cases {
			t.Run(r.Name+"/"+c.Name, func(t *testing.T) {
				seed := int64(i + j)
				err := (emulate.Emulator{SMs: 4, Seed: seed, Async: emulate.When(seed % 3)}).Run(module, c.Launch, c.Args)
				if err == nil {
					err = c.Check()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
