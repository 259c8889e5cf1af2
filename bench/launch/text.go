package launch

import (
	"fmt"
	"regexp"
	"strings"
)

// Two things are done to the text of a kernel and not to its description, because they are about the measurement and not about the kernel: stamps, and taking its
// waits out to see whether the check notices.

// stampBytes is one launch's stamps: the first begin of a CTA, the first end of a wait, and the last end, counted downwards. All begin as ones.
const stampBytes = 32

// stamped gives a kernel a further parameter, the address of its stamps, and takes the time at its begin, after griddepcontrol.wait and at its end. The end is an atomic
// minimum of the complement over the grid.
func stamped(ptx string) (string, error) {
	head := regexp.MustCompile(`(?s)\n\)\n(\.maxntid.*?\n\{\n(?:\t\.reg [^\n]*\n)*)`)
	if strings.Count(ptx, ".visible .entry") != 1 || !head.MatchString(ptx) || strings.Count(ptx, "\tret;\n}") != 1 {
		return "", fmt.Errorf("launch: stamps: the PTX is not one kernel as package ptx prints it")
	}
	// The first 32 CTAs, which are placed first, stamp their begin and the end of their wait. Of the end every CTA tells once, when all its warps are there. More atomics on
	// one address would take longer than the kernels.
	const first = "\tmov.u32 stamp_x, %tid.x;\n\tmov.u32 stamp_y, %ctaid.x;\n\tshr.u32 stamp_y, stamp_y, 5;\n\tor.b32 stamp_x, stamp_x, stamp_y;\n\tsetp.eq.u32 stamp_p, stamp_x, 0;\n"
	const last = "\tbarrier.sync 0;\n\tmov.u32 stamp_x, %tid.x;\n\tsetp.eq.u32 stamp_p, stamp_x, 0;\n"
	take := func(offset int, change string) string {
		return fmt.Sprintf("\tmov.u64 stamp_t, %%globaltimer;\n%s\t@stamp_p red.relaxed.gpu.global.min.u64 [stamp_at+%d], stamp_t;\n", change, offset)
	}
	begin := "\t.reg .pred stamp_p; .reg .b32 stamp_x, stamp_y; .reg .b64 stamp_at, stamp_t;\n\tld.param.u64 stamp_at, [stamps];\n" + first + take(0, "")
	ptx = head.ReplaceAllString(ptx, ",\n\t.param .u64 stamps\n)\n${1}"+strings.ReplaceAll(begin, "$", "$$"))
	ptx = strings.ReplaceAll(ptx, "griddepcontrol.wait;\n", "griddepcontrol.wait;\n"+take(8, ""))
	return strings.Replace(ptx, "\tret;\n}", last+take(16, "\tnot.b64 stamp_t, stamp_t;\n")+"\tret;\n}", 1), nil
}

// unwaited takes the waits out. The trigger stays, so the next kernel runs into this one.
func unwaited(ptx string) (string, error) {
	cut := strings.ReplaceAll(ptx, "griddepcontrol.wait;\n", "")
	if cut == ptx {
		return "", fmt.Errorf("launch: the kernel waits nowhere")
	}
	return cut, nil
}
