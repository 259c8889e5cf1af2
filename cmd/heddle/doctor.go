package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/cpu"

	"heddle/cuda"
	"heddle/cuda/cublas"
	"heddle/cuda/cupti"
	"heddle/cuda/nvml"
	"heddle/internal/cli"
)

type doctorCmd struct {
	CuBLAS string `name:"cublas" help:"Folder of libcublas; looked for where it is not given." placeholder:"DIR"`
}

func (doctorCmd) Help() string {
	return `Examples:
  heddle doctor
  heddle doctor --json`
}

// finding is one line: what was looked for, what was found, what follows.
type finding struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Found   string `json:"found"`
	Follows string `json:"follows"`
}

type diagnosis struct {
	Findings []finding    `json:"findings"`
	Devices  []cuda.Facts `json:"devices"`
}

func (c *doctorCmd) Run(ctx context.Context, env *cli.Env) error {
	// The drivers are opened in a child: a broken one may hang or crash.
	return supervise(ctx, env, time.Minute, time.Minute, func() error {
		d := c.look()
		return env.Emit(d, func(w io.Writer) {
			for _, f := range d.Findings {
				mark := "ok     "
				if !f.OK {
					mark = "absent "
				}
				fmt.Fprintf(w, "%s%-10s %s\n%18s%s\n", mark, f.Name, wrapped(f.Found, 18), "", wrapped("→ "+f.Follows, 20))
			}
		})
	})
}

// wrapped breaks text into lines of 80 columns, the further ones indented.
func wrapped(text string, indent int) string {
	var b strings.Builder
	col := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case col+1+n > 80:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			col = indent
		default:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += n
	}
	return b.String()
}

func (c *doctorCmd) look() diagnosis {
	d := diagnosis{Findings: []finding{lookCPU()}, Devices: []cuda.Facts{}}
	driver, err := cuda.Open("")
	if err != nil {
		d.Findings = append(d.Findings, finding{"driver", false, err.Error(), "GPU verbs exit with code 4; training, planning, the tile workbench and the emulator run on the CPU"})
	} else {
		d.Findings = append(d.Findings, finding{"driver", true, fmt.Sprintf("CUDA %d.%d, %d GPU", driver.Version/1000, driver.Version%1000/10, driver.Devices), "kernels are compiled by this driver; no toolkit is needed"})
		d.gpus(driver)
	}
	d.Findings = append(d.Findings, lookNVML())
	lib, err := cublas.Open(findCuBLAS(c.CuBLAS))
	if err != nil {
		d.Findings = append(d.Findings, finding{"cublas", false, strings.SplitN(err.Error(), "\n", 2)[0], "gemm bench has no peer; nothing else needs it"})
	} else {
		d.Findings = append(d.Findings, finding{"cublas", true, lib.Path, "gemm bench can measure against it"})
	}
	d.Findings = append(d.Findings, lookCUPTI())
	return d
}

func (d *diagnosis) gpus(driver *cuda.Driver) {
	for i := range driver.Devices {
		dev, err := driver.Device(i)
		name := fmt.Sprintf("gpu %d", i)
		if err != nil {
			d.Findings = append(d.Findings, finding{name, false, err.Error(), "this GPU cannot be used"})
			continue
		}
		f := dev.Facts
		d.Devices = append(d.Devices, f)
		follows := "Hopper kernels (wgmma, TMA, clusters) run here"
		if f.Major != 9 {
			follows = "Hopper kernels need compute capability 9.0; this GPU runs none of them"
		}
		d.Findings = append(d.Findings, finding{name, f.Major == 9, fmt.Sprintf("%s, capability %d.%d, %d SMs, %.1f GiB, L2 %d MiB, %d KiB shared a block",
			f.Name, f.Major, f.Minor, f.SMs, float64(f.MemoryBytes)/(1<<30), f.L2Bytes>>20, f.SharedPerBlock>>10), follows})
	}
}

func lookNVML() finding {
	lib, err := nvml.Open("")
	if err == nil {
		var v string
		if v, err = lib.DriverVersion(); err == nil {
			return finding{"nvml", true, "driver " + v, "benchmarks record clocks, watts and joules"}
		}
	}
	return finding{"nvml", false, err.Error(), "benchmarks run without clocks, watts and joules"}
}

func lookCUPTI() finding {
	lib, err := cupti.Open(findCUPTI(""))
	if err != nil {
		return finding{"cupti", false, strings.SplitN(err.Error(), "\n", 2)[0], "timelines of GPU work are taken with events: kernels and their calls, at 4 µs a kernel"}
	}
	return finding{"cupti", true, fmt.Sprintf("%s, version %d", lib.Path, lib.Version), "timelines hold every kernel, copy and driver call"}
}

func lookCPU() finding {
	var has []string
	for _, f := range []struct {
		name string
		on   bool
	}{{"avx2", cpu.X86.HasAVX2}, {"fma", cpu.X86.HasFMA}, {"avx512f", cpu.X86.HasAVX512F}, {"avx512bf16", cpu.X86.HasAVX512BF16}, {"neon", cpu.ARM64.HasASIMD}} {
		if f.on {
			has = append(has, f.name)
		}
	}
	follows := "CPU training uses vector kernels"
	if len(has) == 0 {
		follows = "CPU training uses the portable kernels, several times slower"
	}
	return finding{"cpu", len(has) > 0, fmt.Sprintf("%s/%s, %d threads: %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), strings.Join(has, " ")), follows}
}
