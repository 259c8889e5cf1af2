package gemm

import (
	"os"
	"testing"

	"heddle/kernel"
)

// The built kernel needs no more than the hand-written reference: registers, spills, instructions and fences of the main loop. The reference is outside the
// repository; where it is absent its figures stand in (ptxas 13.5, 2026-12-01: 168 registers, 49 instructions).
func TestNoWorseThanTheReference(t *testing.T) {
	as, err := kernel.FindAssembler()
	if err != nil {
		t.Skip(err)
	}
	ref := kernel.Assembly{Registers: 168, Loop: 49}
	if text, err := os.ReadFile("../../../shared/reference/gemm_bf16_128x256x64_c2_s4.ptx"); err != nil {
		t.Log("the reference's text is absent; comparing with its recorded figures")
	} else if ref, err = as.Text(t.Context(), "gemm", string(text), "sm_90a"); err != nil {
		t.Fatal(err)
	}
	got, err := as.Assemble(t.Context(), build(t, Default()).Module())
	if err != nil {
		t.Fatal(err)
	}
	if as.Nvdisasm == "" {
		t.Log("nvdisasm is not in PATH (pip install nvidia-cuda-nvdisasm): main loops and their fences are not compared")
	}
	if g := got[0]; len(g.Faults()) > 0 || g.Registers > ref.Registers || g.Loop > ref.Loop {
		t.Errorf("%d registers, main loop %d, faults %v; the reference has %d and %d", g.Registers, g.Loop, g.Faults(), ref.Registers, ref.Loop)
	}
	t.Logf("%d registers, main loop %d instructions; reference %d, %d", got[0].Registers, got[0].Loop, ref.Registers, ref.Loop)
}
