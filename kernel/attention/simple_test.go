package attention

import (
	"testing"

	"heddle/num"
	"heddle/ptx"
	"heddle/ptx/emulate"
)

func build(t *testing.T, c Config) *Simple {
	t.Helper()
	s, err := NewSimple(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every pass gives what float64 gives, on broken blocks, odd heads and shared keys.
func TestSimpleAttentionIsRight(t *testing.T) {
	for _, c := range []Config{{D: 64, Wide: true, Type: num.F32}, {D: 40, Wide: true, Type: num.BF16}, {D: 6, Type: num.F32, Documents: true}, {D: 16, Type: num.BF16, Wide: true, Documents: true}, {D: 33, Type: num.BF16}} {
		for c.Pass = Forward; c.Pass <= KeyGrad; c.Pass++ {
			s := build(t, c)
			cases, err := s.Cases(4)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range cases {
				if err := (emulate.Emulator{Seed: int64(i)}).Run(s.Module(), k.Launch, k.Args); err != nil {
					t.Fatal(s.Entry.Name, k.Name, err)
				}
				if err := k.Check(); err != nil {
					t.Error(k.Name, err)
				}
			}
		}
	}
}

// Every barrier is needed.
func TestEveryMutantOfSimpleAttentionIsCaught(t *testing.T) {
	for pass := Forward; pass <= KeyGrad; pass++ {
		s := build(t, Config{Pass: pass, D: 8, Wide: true, Type: num.F32})
		c, sms, err := s.FaultCase()
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() (ptx.Launch, *ptx.Args, error) { return c.Launch, c.Args, nil }
		verdicts, err := emulate.Trial(s.Entry, emulate.Emulator{SMs: sms}, 2, fresh, s.Equivalent)
		if err != nil {
			t.Fatal(err)
		}
		if len(verdicts) < 3 {
			t.Fatalf("only %d mutants", len(verdicts))
		}
		for _, v := range verdicts {
			if !v.Passed() {
				t.Errorf("%s: %s %s: caught on %d of %d seeds; reported: %s", s.Entry.Name, v.Line, v.Mutant, v.Caught, v.Seeds, v.Text)
			}
		}
	}
}

func TestConfigsThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []Config{{D: 0}, {D: 257}, {D: 20, Wide: true}} {
		if _, err := NewSimple(c); err == nil {
			t.Errorf("%+v passes", c)
		}
	}
}
