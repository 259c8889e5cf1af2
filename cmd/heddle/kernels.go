package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"heddle/internal/atomicfile"
	"heddle/internal/cli"
	"heddle/kernel"
	"heddle/kernel/all"
	"heddle/ptx"
	"heddle/ptx/emulate"
)

type kernelsCmd struct {
	List     kernelsListCmd     `cmd:"" help:"List every kernel."`
	PTX      kernelsPTXCmd      `cmd:"" name:"ptx" help:"Print a kernel as PTX text."`
	Emulate  kernelsEmulateCmd  `cmd:"" help:"Run a kernel on the CPU and report what is wrong with it."`
	Assemble kernelsAssembleCmd `cmd:"" help:"Assemble kernels with ptxas; spills, serialised products and fences in main loops are failures."`
	Conform  kernelsConformCmd  `cmd:"" help:"Hold the emulator to the definitions of instructions, and to a GPU."`
	Check    kernelsCheckCmd    `cmd:"" help:"Run every kernel on the GPU, beside float64."`
}

func (kernelsCmd) Help() string {
	return `heddle kernels emulate gemm
    runs the GEMM on the CPU over small problems, with every access checked
heddle kernels ptx gemm > gemm.ptx
    prints its PTX`
}

type kernelsListCmd struct{}

func (kernelsListCmd) Help() string {
	return `heddle kernels list
    name, tile, threads, cluster and shared memory of every kernel
heddle kernels list --json
    the same as {"kernels": [...]}`
}

type listedKernel struct {
	Name      string `json:"name"`
	Doc       string `json:"doc"`
	Target    string `json:"target"`
	Threads   int    `json:"threads"`
	Cluster   int    `json:"cluster"`
	Shared    int    `json:"shared_bytes"`
	Registers int    `json:"registers"`
}

func (kernelsListCmd) Run(env *cli.Env) error {
	var list []listedKernel
	for _, k := range all.Kernels() {
		b, err := k.Build()
		if err != nil {
			return err
		}
		for _, e := range b.Module().Entries {
			list = append(list, listedKernel{k.Name, k.Doc, e.Target, e.Threads, e.Cluster, e.SharedBytes, e.Registers})
		}
	}
	return env.Emit(map[string]any{"kernels": list}, func(w io.Writer) {
		for _, k := range list {
			fmt.Fprintf(w, "%-14s %s\n%-14s %s, %d threads, clusters of %d, %d bytes of shared memory\n", k.Name, k.Doc, "", k.Target, k.Threads, k.Cluster, k.Shared)
		}
	})
}

type kernelsPTXCmd struct {
	Name string `arg:"" help:"A kernel of heddle kernels list."`
}

func (kernelsPTXCmd) Help() string {
	return `heddle kernels ptx gemm
    the PTX of the GEMM
heddle kernels ptx row-sum | ptxas -arch=sm_90 -v -
    from a pipe to NVIDIA's assembler`
}

func (c *kernelsPTXCmd) Run(env *cli.Env) error {
	b, err := buildKernel(c.Name)
	if err != nil {
		return err
	}
	text := b.Module().PTX()
	return env.Emit(map[string]string{"kernel": c.Name, "ptx": text}, func(w io.Writer) { io.WriteString(w, text) })
}

func buildKernel(name string) (kernel.Built, error) {
	k, err := all.Find(name)
	if err != nil {
		return nil, cli.Exit(cli.Usage, err)
	}
	return k.Build()
}

type kernelsEmulateCmd struct {
	Name    string `arg:"" help:"A kernel of heddle kernels list."`
	SMs     int    `name:"sms" default:"4" help:"CTAs resident together."`
	Seeds   int    `default:"8" help:"Schedules to run each case, or mutant, under."`
	Mutants bool   `help:"Plant one fault after the other and tell which are caught."`

	Timeline string `help:"Write what each warp, the tensor cores and the port to L2 do, in the time of a simple model, to this file; open it in ui.perfetto.dev."`
}

func (kernelsEmulateCmd) Help() string {
	return `heddle kernels emulate gemm --seeds 2
    two schedules of every small problem
heddle kernels emulate gemm --mutants --json
    {mutant, line, kind, reported_line, seeds_caught} for each planted fault`
}

type emulatedCase struct {
	Case    string          `json:"case"`
	Seed    int             `json:"seed"`
	Seconds float64         `json:"seconds"`
	Steps   int64           `json:"warp_instructions"`
	Counts  emulate.Counts  `json:"counts"`
	Faults  []emulate.Fault `json:"faults"`
	Wrong   string          `json:"wrong,omitempty"`
}

func (c *kernelsEmulateCmd) Run(ctx context.Context, env *cli.Env) error {
	b, err := buildKernel(c.Name)
	if err != nil {
		return err
	}
	if c.Seeds < 1 || c.SMs < 1 {
		return cli.Exitf(cli.Usage, "kernels: %d seeds on %d SMs, want at least 1 of each", c.Seeds, c.SMs)
	}
	if c.Mutants {
		return c.mutants(env, b)
	}
	if c.Timeline != "" {
		return c.timeline(env, b)
	}
	var rows []emulatedCase
	bad := 0
	for seed := range c.Seeds {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		cases, err := b.Cases(c.SMs)
		if err != nil {
			return err
		}
		for _, k := range cases {
			row, err := emulateCase(b, k, c.SMs, seed)
			if err != nil {
				return err
			}
			if len(row.Faults) > 0 || row.Wrong != "" {
				bad++
			}
			rows = append(rows, row)
		}
	}
	if err := env.Emit(map[string]any{"kernel": c.Name, "runs": rows, "failed": bad}, func(w io.Writer) { printRuns(w, rows) }); err != nil {
		return err
	}
	if bad > 0 {
		return cli.Exitf(cli.Check, "kernels: %d of %d runs of %s failed", bad, len(rows), c.Name)
	}
	return nil
}

func emulateCase(b kernel.Built, k kernel.Case, sms, seed int) (emulatedCase, error) {
	row := emulatedCase{Case: k.Name, Seed: seed, Faults: []emulate.Fault{}}
	run := emulate.Emulator{SMs: sms, Seed: int64(seed), After: func(n *emulate.Counts) { row.Counts, row.Steps = *n, n.Steps }}
	start := time.Now()
	err := run.Run(b.Module(), k.Launch, k.Args)
	row.Seconds = time.Since(start).Seconds()
	if r, ok := errors.AsType[*emulate.Report](err); ok {
		row.Faults = r.Faults
		return row, nil
	}
	if err != nil {
		return row, err
	}
	if err := k.Check(); err != nil {
		row.Wrong = err.Error()
	}
	return row, nil
}

func printRuns(w io.Writer, rows []emulatedCase) {
	for _, r := range rows {
		state := "clean and right"
		switch {
		case len(r.Faults) > 0:
			state = fmt.Sprintf("%d faults", len(r.Faults))
		case r.Wrong != "":
			state = "wrong: " + r.Wrong
		}
		fmt.Fprintf(w, "%-16s seed %d  %6.3f s  %9d warp instructions  %s\n", r.Case, r.Seed, r.Seconds, r.Steps, state)
		for _, f := range r.Faults {
			fmt.Fprintln(w, "   ", f)
		}
	}
}

// timeline runs the kernel's longest small problem and writes what happened when.
func (c *kernelsEmulateCmd) timeline(env *cli.Env, b kernel.Built) error {
	k, sms, err := b.FaultCase()
	if err != nil {
		return err
	}
	t := &emulate.Timeline{}
	if err := (emulate.Emulator{SMs: sms, Async: emulate.Early, Timeline: t}).Run(b.Module(), k.Launch, k.Args); err != nil {
		return err
	}
	if err := atomicfile.Write(atomicfile.OS{}, c.Timeline, t.WritePerfetto); err != nil {
		return err
	}
	result := map[string]any{"kernel": c.Name, "case": k.Name, "file": c.Timeline, "slices": len(t.Slices), "clocks": t.End()}
	return env.Emit(result, func(w io.Writer) {
		fmt.Fprintf(w, "%s, %s: %d slices over %.0f clocks in %s; open it in ui.perfetto.dev\n", c.Name, k.Name, len(t.Slices), t.End(), c.Timeline)
	})
}

func (c *kernelsEmulateCmd) mutants(env *cli.Env, b kernel.Built) error {
	k, sms, err := b.FaultCase()
	if err != nil {
		return err
	}
	fresh := func() (ptx.Launch, *ptx.Args, error) { return k.Launch, k.Args, nil }
	start := time.Now()
	verdicts, err := emulate.Trial(b.Module().Entries[0], emulate.Emulator{SMs: sms, Dry: true, MaxSteps: 1e6}, c.Seeds, fresh, b.Equivalent)
	if err != nil {
		return err
	}
	missed, equivalent := 0, 0
	for _, v := range verdicts {
		if v.Equivalent != "" {
			equivalent++
		}
		if !v.Passed() {
			missed++
		}
	}
	result := map[string]any{
		"kernel": c.Name, "case": k.Name, "mutants": verdicts, "total": len(verdicts), "equivalent": equivalent, "missed": missed, "seconds": time.Since(start).Seconds(),
	}
	err = env.Emit(result, func(w io.Writer) {
		for _, v := range verdicts {
			text := or(v.Text, "nothing reported")
			if v.Equivalent != "" {
				text = "equivalent: " + v.Equivalent
			}
			fmt.Fprintf(w, "%d/%d  %-14s %s: %s\n", v.Caught, v.Seeds, v.Line, v.Mutant, text)
		}
		fmt.Fprintf(w, "%d mutants, %d equivalent, %d missed\n", len(verdicts), equivalent, missed)
	})
	if err == nil && missed > 0 {
		return cli.Exitf(cli.Check, "kernels: %d of %d mutants of %s were not caught on every seed", missed, len(verdicts), c.Name)
	}
	return err
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

type kernelsAssembleCmd struct {
	Names []string `arg:"" optional:"" help:"Kernels of heddle kernels list. Default: all."`
}

func (kernelsAssembleCmd) Help() string {
	return `heddle kernels assemble
    every kernel; needs ptxas in PATH (pip install nvidia-cuda-nvcc), looks at
    main loops where nvdisasm is there too
heddle kernels assemble gemm --json`
}

func (c *kernelsAssembleCmd) Run(ctx context.Context, env *cli.Env) error {
	as, err := kernel.FindAssembler()
	if err != nil {
		return cli.Exit(cli.Absent, err)
	}
	if len(c.Names) == 0 {
		for _, k := range all.Kernels() {
			c.Names = append(c.Names, k.Name)
		}
	}
	type row struct {
		Kernel string `json:"kernel"`
		kernel.Assembly
		Faults []string `json:"faults"`
	}
	var rows []row
	bad := 0
	for _, name := range c.Names {
		b, err := buildKernel(name)
		if err != nil {
			return err
		}
		got, err := as.Assemble(ctx, b.Module())
		if err != nil {
			return cli.Exit(cli.Check, err)
		}
		for _, a := range got {
			r := row{name, a, append([]string{}, a.Faults()...)}
			bad += len(r.Faults)
			rows = append(rows, r)
		}
	}
	err = env.Emit(map[string]any{"kernels": rows, "failed": bad}, func(w io.Writer) {
		for _, r := range rows {
			fmt.Fprintf(w, "%-14s %s  %3d registers  %d bytes spilled", r.Kernel, r.Target, r.Registers, r.SpillBytes)
			if r.Loop >= 0 {
				fmt.Fprintf(w, "  main loop of %d instructions", r.Loop)
			}
			fmt.Fprintln(w)
			for _, f := range r.Faults {
				fmt.Fprintln(w, "   ", f)
			}
		}
	})
	if err == nil && bad > 0 {
		return cli.Exitf(cli.Check, "kernels: %d faults in the machine code", bad)
	}
	return err
}
