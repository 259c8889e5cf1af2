package kernel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heddle/ptx"
)

// Assembler names the programs that turn PTX into machine code and back. Both come with CUDA, or from PyPI: nvidia-cuda-nvcc, nvidia-cuda-nvdisasm.
type Assembler struct {
	Ptxas    string
	Nvdisasm string // "": the main loops are not looked at
}

// FindAssembler looks the programs up in PATH.
func FindAssembler() (Assembler, error) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		return Assembler{}, fmt.Errorf("kernel: ptxas is not in PATH; hint: pip install nvidia-cuda-nvcc and add its bin folder to PATH")
	}
	nvdisasm, err := exec.LookPath("nvdisasm")
	if err != nil {
		nvdisasm = "" // optional
	}
	return Assembler{ptxas, nvdisasm}, nil
}

// Assembly is what the assembler made of one entry.
type Assembly struct {
	Entry      string   `json:"entry"`
	Target     string   `json:"target"`
	Registers  int      `json:"registers"`
	SpillBytes int      `json:"spill_bytes"` // stores and loads
	Warnings   []string `json:"warnings"`    // C75xx: wgmma that ptxas serialised
	// Of the disassembly, −1 where there was none.
	Loop   int      `json:"main_loop"` // instructions of the innermost loop with matrix products
	Fences []string `json:"fences"`    // MEMBAR and ERRBAR in it
}

// Faults lists what no kernel may have.
func (a Assembly) Faults() []string {
	var f []string
	if a.SpillBytes > 0 {
		f = append(f, fmt.Sprintf("spills %d bytes", a.SpillBytes))
	}
	for _, w := range a.Warnings {
		f = append(f, "ptxas: "+w)
	}
	for _, x := range a.Fences {
		f = append(f, "main loop has "+x)
	}
	return f
}

// Assemble compiles each entry of the module on its own.
func (as Assembler) Assemble(ctx context.Context, m *ptx.Module) ([]Assembly, error) {
	dir, err := os.MkdirTemp("", "heddle-ptx-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var all []Assembly
	for _, e := range m.Entries {
		a, err := as.entry(ctx, dir, e)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (as Assembler) entry(ctx context.Context, dir string, e *ptx.Entry) (Assembly, error) {
	arch := e.Target
	if arch == "sm_80" {
		arch = "sm_90" // what it will run on
	}
	return as.text(ctx, dir, e.Name, (&ptx.Module{Entries: []*ptx.Entry{e}}).PTX(), arch)
}

// Text compiles the PTX text of one entry.
func (as Assembler) Text(ctx context.Context, name, text, arch string) (Assembly, error) {
	dir, err := os.MkdirTemp("", "heddle-ptx-")
	if err != nil {
		return Assembly{}, err
	}
	defer os.RemoveAll(dir)
	return as.text(ctx, dir, name, text, arch)
}

func (as Assembler) text(ctx context.Context, dir, name, text, arch string) (Assembly, error) {
	in, cubin := filepath.Join(dir, name+".ptx"), filepath.Join(dir, name+".cubin")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		return Assembly{}, err
	}
	log, err := exec.CommandContext(ctx, as.Ptxas, "-v", "-arch="+arch, "-o", cubin, in).CombinedOutput()
	if err != nil {
		return Assembly{}, fmt.Errorf("kernel: ptxas refuses %s: %w\n%s", name, err, log)
	}
	a := parseLog(string(log))
	a.Entry, a.Target, a.Loop = name, arch, -1
	if as.Nvdisasm == "" {
		return a, nil
	}
	sass, err := exec.CommandContext(ctx, as.Nvdisasm, "-c", cubin).Output()
	if err != nil {
		return Assembly{}, fmt.Errorf("kernel: nvdisasm of %s: %w", name, err)
	}
	a.Loop, a.Fences = mainLoop(string(sass))
	return a, nil
}

var (
	usedRegisters = regexp.MustCompile(`Used (\d+) registers`)
	spills        = regexp.MustCompile(`(\d+) bytes spill`)
	serialised    = regexp.MustCompile(`.*C75\d\d.*`)
)

// parseLog reads what ptxas -v prints for one entry.
func parseLog(log string) Assembly {
	a := Assembly{Warnings: []string{}, Fences: []string{}}
	if m := usedRegisters.FindStringSubmatch(log); m != nil {
		a.Registers, _ = strconv.Atoi(m[1])
	}
	for _, m := range spills.FindAllStringSubmatch(log, -1) {
		n, _ := strconv.Atoi(m[1])
		a.SpillBytes += n
	}
	a.Warnings = append(a.Warnings, serialised.FindAllString(log, -1)...)
	return a
}

var (
	sassLabel  = regexp.MustCompile(`^(\.L_x_\d+):`)
	sassBranch = regexp.MustCompile(`BRA.*` + "`" + `\((\.L_x_\d+)\)`)
)

// mainLoop finds the shortest loop with matrix products in a disassembly: a branch back to a label, HGMMA or QGMMA in between. It gives its length in instructions and
// the fences in it; −1 where there is no such loop.
func mainLoop(sass string) (int, []string) {
	at := map[string]int{}
	var code []string
	best, fences := -1, []string{}
	for line := range strings.Lines(sass) {
		if m := sassLabel.FindStringSubmatch(line); m != nil {
			at[m[1]] = len(code)
			continue
		}
		if !strings.Contains(line, "/*") {
			continue
		}
		code = append(code, strings.TrimSpace(line))
		m := sassBranch.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		first, back := at[m[1]]
		if !back {
			continue
		}
		body := code[first:]
		if !slices.ContainsFunc(body, func(s string) bool { return strings.Contains(s, "GMMA") }) || best >= 0 && len(body) >= best {
			continue
		}
		best, fences = len(body), fences[:0]
		for _, s := range body {
			if strings.Contains(s, "MEMBAR") || strings.Contains(s, "ERRBAR") {
				fences = append(fences, s)
			}
		}
	}
	return best, fences
}
