package gemm

import (
	"testing"

	"heddle/num"
	"heddle/ptx"
	"heddle/ptx/emulate"
)

// All layouts, types and both kinds of result are exact on small integers.
func TestPlainIsExactOnSmallIntegers(t *testing.T) {
	for i := range 8 {
		for _, types := range [][2]num.DType{{num.F32, num.F32}, {num.BF16, num.BF16}, {num.BF16, num.F32}} {
			p, err := NewPlain(PlainConfig{In: types[0], Out: types[1], TransA: i&1 != 0, TransB: i&2 != 0, Add: i&4 != 0})
			if err != nil {
				t.Fatal(err)
			}
			cases, err := p.Cases(4)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				if err := (emulate.Emulator{}).Run(p.Module(), c.Launch, c.Args); err != nil {
					t.Fatal(p.Entry.Name, c.Name, err)
				}
				if err := c.Check(); err != nil {
					t.Error(c.Name, err)
				}
			}
		}
	}
}

// Both barriers are needed.
func TestEveryMutantOfPlainIsCaught(t *testing.T) {
	p, err := NewPlain(PlainConfig{In: num.F32, Out: num.F32})
	if err != nil {
		t.Fatal(err)
	}
	c, sms, err := p.FaultCase()
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() (ptx.Launch, *ptx.Args, error) { return c.Launch, c.Args, nil }
	verdicts, err := emulate.Trial(p.Entry, emulate.Emulator{SMs: sms}, 4, fresh, p.Equivalent)
	if err != nil {
		t.Fatal(err)
	}
	if len(verdicts) < 2 {
		t.Fatalf("only %d mutants", len(verdicts))
	}
	for _, v := range verdicts {
		if !v.Passed() {
			t.Errorf("%s %s: caught on %d of %d seeds; reported: %s", v.Line, v.Mutant, v.Caught, v.Seeds, v.Text)
		}
	}
}
