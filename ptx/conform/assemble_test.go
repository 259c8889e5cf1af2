package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"heddle/ptx"
)

// ptxas takes every kind of program.
func TestProgramsAssemble(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("ptxas is not in PATH; pip install nvidia-cuda-nvcc provides it")
	}
	assemble := func(name string, m *ptx.Module) {
		in := filepath.Join(t.TempDir(), "k.ptx")
		if err := os.WriteFile(in, []byte(m.PTX()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(ptxas, "-arch=sm_90a", "-O1", in, "-o", in+".cubin").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%.2000s", name, err, out)
		}
	}
	for _, family := range Families() {
		m := &ptx.Module{}
		for seed := range int64(12) {
			p, err := Random(family, seed)
			if err != nil {
				t.Fatal(err)
			}
			m.Entries = append(m.Entries, p.Entry)
		}
		assemble(family, m)
	}
	for i, c := range Products() {
		if i%16 == 0 {
			p, err := c.Program()
			if err != nil {
				t.Fatal(err)
			}
			assemble(p.Name, &ptx.Module{Entries: []*ptx.Entry{p.Entry}})
		}
	}
	for _, make := range []func() (Program, error){Exchange, func() (Program, error) { return WarpProduct(1) }} {
		p, err := make()
		if err != nil {
			t.Fatal(err)
		}
		assemble(p.Name, &ptx.Module{Entries: []*ptx.Entry{p.Entry}})
	}
	for i, c := range Copies() {
		if i < 2 {
			p, err := c.Program()
			if err != nil {
				t.Fatal(err)
			}
			assemble(p.Name, &ptx.Module{Entries: []*ptx.Entry{p.Entry}})
		}
	}
}
