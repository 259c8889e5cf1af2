package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heddle/bench"
	"heddle/cuda"
	"heddle/cuda/cublas"
	"heddle/internal/cli"
	"heddle/kernel/gemm"
)

type gemmCmd struct {
	Bench   gemmBenchCmd   `cmd:"" help:"Measure our kernels against cuBLAS, in turn, on the same buffers."`
	Banks   gemmBanksCmd   `cmd:"" help:"Measure shared-memory wavefronts on the GPU against the model."`
	Tune    gemmTuneCmd    `cmd:"" help:"Search the family of kernels for the fastest at each size."`
	Run     gemmRunCmd     `cmd:"" help:"Launch configurations once, for a profiler."`
	Check   gemmCheckCmd   `cmd:"" help:"Run every kernel against exact products, on the GPU."`
	JIT     gemmJITCmd     `cmd:"" name:"jit" help:"Compile and load every kernel, and say how long that takes."`
	Ladder  gemmLadderCmd  `cmd:"" help:"Climb from the naive product to ours, a rung at a time."`
	Grouped gemmGroupedCmd `cmd:"" help:"Write the launches of mixture-of-experts products, to measure beside PyTorch."`
}

type gemmBenchCmd struct {
	PTX       string        `name:"ptx" help:"Measure this PTX too, with parameters (map A, map B, map C, M, N, K)." placeholder:"FILE"`
	Only      bool          `name:"ptx-only" help:"Measure the PTX file alone, not our own kernel."`
	Tile      string        `help:"Tile and stages, such as 128x256x64_s4, where the file's name does not say them."`
	Peer      string        `default:"cublas" enum:"cublas" help:"What to measure against: cublas, which is cublasGemmEx and the best of 16 cublasLt heuristics."`
	CuBLAS    string        `name:"cublas" help:"Folder of libcublas; looked for where it is not given." placeholder:"DIR"`
	Sizes     []int         `default:"1024,2048,4096,6144,8192,12288,16384" help:"Squares for single launches."`
	Sustained []int         `default:"4096,6144,8192,12288,16384" help:"Squares for seconds back to back, with joules."`
	Shapes    string        `help:"Measure the products of this list, such as bench/shapes.json, and no squares." placeholder:"FILE"`
	Graphs    []int         `default:"512,1024" help:"Squares for 200 launches in one graph, with rotating and with warm buffers."`
	Pairs     int           `default:"50" help:"Rounds of single launches."`
	Rounds    int           `default:"5" help:"Rounds of sustained blocks."`
	Idle      time.Duration `default:"50ms" help:"Rest before each single launch."`
	Block     time.Duration `default:"2s" help:"Length of a sustained block."`
	Device    int           `default:"0" help:"Which GPU."`
	Out       string        `help:"Write all raw samples as JSON to this file." placeholder:"FILE"`
	Summary   string        `help:"Measure nothing: recompute the ratios in this file." placeholder:"FILE"`
	Limit     time.Duration `default:"8m" help:"End after this long with what is measured by then."`
	Stall     time.Duration `default:"60s" help:"End the measuring process when it is silent for this long."`
}

func (gemmBenchCmd) Help() string {
	return `Examples:
  heddle gemm bench --sizes 2048,4096,8192,16384 --sustained 8192,16384 --graphs 512,1024 --out gemm.json
  heddle gemm bench --shapes bench/shapes.json --pairs 5 --idle 10ms --out shapes.json
  heddle gemm bench --summary result.json

Single launches start after rest and a short delay kernel; sustained blocks run at the power limit. Ratios are theirs/ours in time, so above 1 heddle is faster; intervals are 95 %. Out of time, it ends after the pair or round that runs and reports what it has; the file then says where it stopped.

Seconds of the first example, three sides in every pair: singles 4 × 50 × 3 × 55 ms = 33, graphs 4 × 50 × 3 × 52 ms = 31, sustained 2 × 5 × 3 × 2.5 s = 75, compiling, checking and choosing the peer about 30: 170 in all.`
}

func (c *gemmBenchCmd) Run(ctx context.Context, env *cli.Env) error {
	if c.Summary != "" {
		r, err := bench.Read(c.Summary)
		if err != nil {
			return cli.Exit(cli.Invalid, err)
		}
		return emitRatios(env, r)
	}
	if c.PTX == "" && c.Only {
		return cli.Exitf(cli.Usage, "gemm bench: --ptx-only without a kernel; hint: --ptx FILE")
	}
	return supervise(ctx, env, c.Limit, c.Stall, func() error { return c.measure(ctx, env) })
}

func (c *gemmBenchCmd) measure(ctx context.Context, env *cli.Env) error {
	g := bench.GEMM{PTX: c.PTX, Tile: c.Tile, Device: c.Device, CuBLAS: findCuBLAS(c.CuBLAS), Cache: cubinCache(), Command: "heddle " + strings.Join(os.Args[1:], " "),
		Sizes: c.Sizes, Sustained: c.Sustained, Graphs: c.Graphs, Pairs: c.Pairs, Rounds: c.Rounds, Launches: 200, Idle: c.Idle, Block: c.Block,
		Progress: func(format string, args ...any) { fmt.Fprintf(env.Err, format+"\n", args...) },
		Store: func(r *bench.Result) error {
			if c.Out == "" {
				return nil
			}
			return r.Write(c.Out)
		}}
	var err error
	if c.Shapes != "" {
		g.Sizes, g.Sustained, g.Graphs, g.Quick = nil, nil, nil, true
		if g.Shapes, err = bench.ReadShapes(c.Shapes); err != nil {
			return cli.Exit(cli.Invalid, err)
		}
	} else if !c.Only {
		g.Chosen = c.PTX == ""
		if g.Configs, err = c.configs(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limit-reserve(c.Limit))
	defer cancel()
	r, err := g.Run(ctx)
	if err != nil {
		return absent(err)
	}
	if err := emitRatios(env, r); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.Failure != "" {
			return cli.Exitf(cli.Check, "%s", row.Failure)
		}
	}
	return nil
}

// reserve is the time before the limit, at which the process is killed, that stays for what cannot be broken off: the checks of a 16384 square, or a sustained round.
func reserve(limit time.Duration) time.Duration { return min(20*time.Second, limit/4) }

// configs are the default and the kernels that are chosen for the sizes.
func (c *gemmBenchCmd) configs() ([]gemm.Config, error) {
	all := []gemm.Config{gemm.Default()}
	for _, n := range slices.Concat(c.Sizes, c.Sustained, c.Graphs) {
		const sms = 132 // of an H200, which the table is for
		x, err := gemm.Choose(n, n, n, sms, gemm.Config{})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(a gemm.Config) bool { return a.String() == x.String() }) {
			all = append(all, x)
		}
	}
	return all, nil
}

func emitRatios(env *cli.Env, r *bench.Result) error {
	all := r.Summary()
	return env.Emit(map[string]any{"device": r.Device, "peer": r.Peer, "date": r.Date, "ratios": all}, func(w io.Writer) {
		bench.Print(w, all)
		bench.PrintShapes(w, r)
	})
}

// cubinCache is the folder of compiled kernels; empty, so that nothing is kept, where there is no home.
func cubinCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "heddle", "cubin")
}

// findCuBLAS lists folders to try; a Python on the PATH often carries the libraries as packages.
func findCuBLAS(hint string) []string {
	python, err := exec.LookPath("python3")
	if err != nil {
		python = ""
	}
	return cublas.Find(hint, python)
}

// absent gives a missing GPU, driver or library its exit code.
func absent(err error) error {
	if _, ok := errors.AsType[*cuda.Absent](err); ok {
		return cli.Exit(cli.Absent, err)
	}
	return err
}

type gemmCheckCmd struct {
	Configs []string      `help:"Configurations, such as 128x256x64-w2-c2x1-s4-g8; @FILE reads one a line; none: a family that spans all options." placeholder:"NAME"`
	Draws   int           `default:"2" help:"Random products of each size."`
	Device  int           `default:"0" help:"Which GPU."`
	Limit   time.Duration `default:"4m" help:"End the checking process after this long."`
	Stall   time.Duration `default:"40s" help:"End it when it is silent for this long."`
}

func (gemmCheckCmd) Help() string {
	return `Examples:
  heddle gemm check
  heddle gemm check --configs 128x256x64-w2-c2x1-s4-g8,128x256x64-w2-c2x1-s3-g8-tb --json

Small integers, whose products are exact, over NaN-filled outputs with guard bands, on whole and ragged shapes. Exit code 5 where anything differs.`
}

func (c *gemmCheckCmd) Run(ctx context.Context, env *cli.Env) error {
	configs, err := configsNamed(c.Configs)
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	if len(configs) == 0 {
		configs = gemm.Family()
	}
	return supervise(ctx, env, c.Limit, c.Stall, func() error {
		dev, run, err := openRunner(c.Device)
		if err != nil {
			return absent(err)
		}
		all, failed := []bench.CaseResult{}, 0
		fault := bench.CheckGEMM(run, dev.SMs, c.Draws, configs, func(r bench.CaseResult) {
			all = append(all, r)
			if !r.OK {
				failed++
			}
			fmt.Fprintf(env.Err, "%-22s %-22s ok=%v %.0f ms %s\n", r.Kernel, r.Case, r.OK, r.Ms, r.Error)
		})
		if err := env.Emit(map[string]any{"device": dev.Facts, "cases": all, "failed": failed}, func(w io.Writer) { fmt.Fprintf(w, "%d cases, %d failed\n", len(all), failed) }); err != nil {
			return err
		}
		if fault != nil || failed > 0 {
			return cli.Exitf(cli.Check, "gemm check: %d of %d cases failed", failed, len(all))
		}
		return nil
	})
}

type gemmBanksCmd struct {
	Random int           `default:"60" help:"Random patterns of each kind of access, beside the textbook ones."`
	Device int           `default:"0" help:"Which GPU."`
	Limit  time.Duration `default:"90s" help:"End the measuring process after this long."`
}

func (gemmBanksCmd) Help() string {
	return `Examples:
  heddle gemm banks
  heddle gemm banks --random 500 --json

A saturated SM serves one wavefront a cycle, so cycles an access are its wavefronts.`
}

func (c *gemmBanksCmd) Run(ctx context.Context, env *cli.Env) error {
	return supervise(ctx, env, c.Limit, c.Limit, func() error {
		dev, run, err := openRunner(c.Device)
		if err != nil {
			return absent(err)
		}
		all := []bench.BankResult{}
		if err := bench.Banks(run, c.Random, func(r bench.BankResult) { all = append(all, r) }); err != nil {
			return err
		}
		return env.Emit(map[string]any{"device": dev.Facts, "accesses": all}, func(w io.Writer) {
			for _, r := range all {
				fmt.Fprintf(w, "%-9s %-20s model %3d wavefronts, measured %6.2f cycles\n", r.Kind, r.Pattern, r.Model, r.Cycles)
			}
		})
	})
}

// openRunner opens a GPU for the calling goroutine.
func openRunner(device int) (*cuda.Device, *cuda.Runner, error) {
	driver, err := cuda.Open("")
	if err != nil {
		return nil, nil, err
	}
	dev, err := driver.Device(device)
	if err != nil {
		return nil, nil, err
	}
	if err := dev.Bind(); err != nil {
		return nil, nil, err
	}
	s, err := dev.NewStream()
	if err != nil {
		return nil, nil, err
	}
	return dev, cuda.NewRunner(dev, s, &cuda.Cache{Dir: cubinCache()}), nil
}
