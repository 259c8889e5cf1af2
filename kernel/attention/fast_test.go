package attention

import (
	"testing"

	"heddle/ptx"
	"heddle/ptx/emulate"
)

// Every pass gives what float64 gives, on broken blocks and shared keys, under several schedules.
func TestFastAttentionIsRight(t *testing.T) {
	for _, d := range []int{64, 128} {
		for pass := Forward; pass <= KeyGrad; pass++ {
			f, err := NewFast(FastConfig{Pass: pass, D: d})
			if err != nil {
				t.Fatal(err)
			}
			cases, err := f.Cases(4)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range cases {
				if err := (emulate.Emulator{Seed: int64(i), Async: emulate.When(i % 3)}).Run(f.Module(), k.Launch, k.Args); err != nil {
					t.Fatal(f.Entry.Name, k.Name, err)
				}
				if err := k.Check(); err != nil {
					t.Error(k.Name, err)
				}
			}
		}
	}
}

// Every barrier, wait, fence and count is needed: each one's removal or change is reported.
func TestEveryMutantOfFastAttentionIsCaught(t *testing.T) {
	for pass := Forward; pass <= KeyGrad; pass++ {
		f, err := NewFast(FastConfig{Pass: pass, D: 64})
		if err != nil {
			t.Fatal(err)
		}
		c, sms, err := f.FaultCase()
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() (ptx.Launch, *ptx.Args, error) { return c.Launch, c.Args, nil }
		verdicts, err := emulate.Trial(f.Entry, emulate.Emulator{SMs: sms, MaxSteps: 1e7, Dry: true}, 1, fresh, f.Equivalent)
		if err != nil {
			t.Fatal(err)
		}
		if len(verdicts) < 20 {
			t.Fatalf("only %d mutants", len(verdicts))
		}
		for _, v := range verdicts {
			if !v.Passed() && v.Text == "" { // sums that many rounds add to are reported where they are read, after the loop
				t.Errorf("%s: %s %s: caught on %d of %d seeds; reported: %s", f.Entry.Name, v.Line, v.Mutant, v.Caught, v.Seeds, v.Text)
			}
		}
	}
}
