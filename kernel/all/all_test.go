package all

import (
	"strings"
	"testing"

	"heddle/kernel"
	"heddle/ptx/emulate"
)

// Every kernel of the list builds, runs clean on all its cases and gives the right answers.
func TestEveryKernelIsCleanAndRight(t *testing.T) {
	names := map[string]bool{}
	for _, k := range Kernels() {
		if names[k.Name] || k.Doc == "" {
			t.Errorf("kernel %q is twice in the list or has no doc", k.Name)
		}
		names[k.Name] = true
		b, err := k.Build()
		if err != nil {
			t.Fatal(k.Name, err)
		}
		cases, err := b.Cases(4)
		if err != nil {
			t.Fatal(k.Name, err)
		}
		for i, c := range cases {
			if i > 1 && strings.HasPrefix(k.Name, "gemm-") || i > 0 && !strings.HasPrefix(k.Name, "gemm") {
				break // the packages' own tests go through all of them
			}
			if err := (emulate.Emulator{SMs: 4, Seed: int64(i)}).Run(b.Module(), c.Launch, c.Args); err != nil {
				t.Errorf("%s %s: %v", k.Name, c.Name, err)
			} else if err := c.Check(); err != nil {
				t.Errorf("%s %s: %v", k.Name, c.Name, err)
			}
		}
	}
	if _, err := Find("no such kernel"); err == nil {
		t.Error("an unknown name is found")
	}
}

// Every kernel assembles without a spill, a serialised product or a fence in its main loop, in the registers that its launch has.
func TestEveryKernelAssemblesClean(t *testing.T) {
	as, err := kernel.FindAssembler()
	if err != nil {
		t.Skip(err)
	}
	for _, k := range Kernels() {
		b, err := k.Build()
		if err != nil {
			t.Fatal(err)
		}
		got, err := as.Assemble(t.Context(), b.Module())
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got {
			for _, f := range a.Faults() {
				t.Errorf("%s: %s", k.Name, f)
			}
			if e := b.Module().Entries[i]; a.Registers > e.Registers {
				t.Errorf("%s: %d registers, the launch has %d", k.Name, a.Registers, e.Registers)
			}
			t.Logf("%s: %d registers, main loop %d instructions", k.Name, a.Registers, a.Loop)
		}
	}
}
