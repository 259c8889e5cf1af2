package kernel

import (
	"strings"
	"testing"
)

func TestParseLogFindsSpillsAndSerialisedProducts(t *testing.T) {
	a := parseLog("ptxas info    : Potential Performance Loss: wgmma.mma_async instructions are serialized due to C7510 in function 'gemm'\n" +
		"ptxas info    : Function properties for gemm\n    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\nptxas info    : Used 168 registers, used 16 barriers\n")
	if a.Registers != 168 || a.SpillBytes != 12 || len(a.Warnings) != 1 || len(a.Faults()) != 2 {
		t.Errorf("%+v, faults %v", a, a.Faults())
	}
	if clean := parseLog("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nUsed 24 registers"); len(clean.Faults()) != 0 || clean.Registers != 24 {
		t.Errorf("%+v", clean)
	}
}

func TestMainLoopIsTheShortestWithProducts(t *testing.T) {
	sass := strings.Join([]string{
		".L_x_1:", " /*0010*/ MEMBAR.ALL.GPU ;", ".L_x_2:", " /*0020*/ SYNCS.PHASECHK ;", " /*0030*/ @!P0 BRA `(.L_x_2) ;", ".L_x_3:",
		" /*0040*/ HGMMA.64x256x16 ;", " /*0050*/ ERRBAR ;", " /*0060*/ BRA `(.L_x_3) ;", " /*0070*/ BRA `(.L_x_1) ;", " /*0080*/ BRA `(.L_x_9) ;", ".L_x_9:",
	}, "\n")
	n, fences := mainLoop(sass)
	if n != 3 || len(fences) != 1 || !strings.Contains(fences[0], "ERRBAR") {
		t.Errorf("loop of %d instructions with %v, want 3 with ERRBAR", n, fences)
	}
	if n, _ := mainLoop(" /*0010*/ HGMMA ;"); n != -1 {
		t.Errorf("loop of %d instructions in straight code", n)
	}
}

// What nvdisasm and ptxas print is read without a panic, whatever it is.
func FuzzReadingAssemblerOutput(f *testing.F) {
	f.Add(".L_x_1:\n /*0010*/ HGMMA ;\n /*0020*/ BRA `(.L_x_1) ;\n")
	f.Add("Used 168 registers, 99999999999999999999 bytes spill stores\nC7510")
	f.Fuzz(func(t *testing.T, s string) {
		if n, fences := mainLoop(s); n < -1 || n > strings.Count(s, "\n")+1 || len(fences) > max(0, n) {
			t.Errorf("loop of %d instructions, %d fences", n, len(fences))
		}
		parseLog(s)
	})
}
