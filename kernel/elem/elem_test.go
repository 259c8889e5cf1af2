package elem

import (
	"testing"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx/emulate"
)

// Every spec, wide and narrow, gives what its float64 reference does, on whole and broken groups, and writes nothing else.
func TestElementsAreRight(t *testing.T) {
	for _, s := range Specs() {
		for _, wide := range []bool{true, false} {
			m, err := New(s, wide)
			if err != nil {
				t.Fatal(err)
			}
			cases, err := m.Cases(4)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				if err := (emulate.Emulator{}).Run(m.Module(), c.Launch, c.Args); err != nil {
					t.Fatal(m.Entry.Name, c.Name, err)
				}
				if err := c.Check(); err != nil {
					t.Error(m.Entry.Name, c.Name, err)
				}
			}
		}
	}
}

// A result may take the place of an operand: c = a + b in a's memory.
func TestOutputMayBeAnInput(t *testing.T) {
	m, err := New(Add(num.F32), true)
	if err != nil {
		t.Fatal(err)
	}
	a, b := kernel.NewSample("a", num.F32, 2051, 0), kernel.NewSample("b", num.F32, 2051, 0)
	x := a.Fill(func(i int) float64 { return float64(i) })
	y := b.Fill(func(i int) float64 { return float64(3 * i) })
	l, args, err := m.Launch(Operands{In: []kernel.Place{a.Place(), b.Place()}, Out: []kernel.Place{a.Place()}, N: a.N})
	if err != nil {
		t.Fatal(err)
	}
	if err := (emulate.Emulator{}).Run(m.Module(), l, args); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if got := a.At(i); got != x[i]+y[i] {
			t.Fatalf("element %d is %v, want %v", i, got, x[i]+y[i])
		}
	}
}

func TestLaunchRefusesWhatDoesNotFit(t *testing.T) {
	m, err := New(Add(num.F32), true)
	if err != nil {
		t.Fatal(err)
	}
	a := kernel.NewSample("a", num.F32, 64, 0)
	at := func(off int) []kernel.Place { return []kernel.Place{{Buffer: a.Buffer, Offset: off}, a.Place()} }
	for name, o := range map[string]Operands{
		"one input":   {In: at(0)[:1], Out: at(0)[:1], N: 8},
		"no elements": {In: at(0), Out: at(0)[:1]},
		"unaligned":   {In: at(4), Out: at(0)[:1], N: 8},
	} {
		if _, _, err := m.Launch(o); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}
