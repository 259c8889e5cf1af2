package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"heddle/bench"
	"heddle/cuda"
	"heddle/cuda/cublas"
	"heddle/internal/cli"
)

type gemmCmd struct {
	Bench gemmBenchCmd `cmd:"" help:"Measure a kernel against cuBLAS, in turn, on the same buffers."`
}

type gemmBenchCmd struct {
	PTX       string        `name:"ptx" help:"The kernel: PTX with parameters (map A, map B, map C, M, N, K)." placeholder:"FILE"`
	Tile      string        `help:"Tile and stages, such as 128x256x64_s4, where the file's name does not say them."`
	Peer      string        `default:"cublas" enum:"cublas" help:"What to measure against: cublas, which is cublasGemmEx and the best of 16 cublasLt heuristics."`
	CuBLAS    string        `name:"cublas" help:"Folder of libcublas; looked for where it is not given." placeholder:"DIR"`
	Sizes     []int         `default:"1024,2048,4096,6144,8192,12288,16384" help:"Squares for single launches."`
	Sustained []int         `default:"4096,6144,8192,12288,16384" help:"Squares for seconds back to back, with joules."`
	Graphs    []int         `default:"512,1024" help:"Squares for 200 launches in one graph, with rotating and with warm buffers."`
	Pairs     int           `default:"50" help:"Rounds of single launches."`
	Rounds    int           `default:"5" help:"Rounds of sustained blocks."`
	Idle      time.Duration `default:"50ms" help:"Rest before each single launch."`
	Block     time.Duration `default:"2s" help:"Length of a sustained block."`
	Device    int           `default:"0" help:"Which GPU."`
	Out       string        `help:"Write all raw samples as JSON to this file." placeholder:"FILE"`
	Summary   string        `help:"Measure nothing: recompute the ratios in this file." placeholder:"FILE"`
	Limit     time.Duration `default:"8m" help:"End the measuring process after this long."`
	Stall     time.Duration `default:"60s" help:"End the measuring process when it is silent for this long."`
}

func (gemmBenchCmd) Help() string {
	return `Examples:
  heddle gemm bench --ptx gemm_128x256x64_c2_s4.ptx --out result.json
  heddle gemm bench --summary result.json

Single launches start after rest and a short delay kernel; sustained blocks run at the power limit. Ratios are theirs/ours in time, so above 1 heddle is faster; intervals are 95 %.`
}

func (c *gemmBenchCmd) Run(ctx context.Context, env *cli.Env) error {
	if c.Summary != "" {
		r, err := bench.Read(c.Summary)
		if err != nil {
			return cli.Exit(cli.Invalid, err)
		}
		return emitRatios(env, r)
	}
	if c.PTX == "" {
		return cli.Exitf(cli.Usage, "gemm bench: no kernel; hint: --ptx FILE")
	}
	return supervise(ctx, env, c.Limit, c.Stall, func() error { return c.measure(ctx, env) })
}

func (c *gemmBenchCmd) measure(ctx context.Context, env *cli.Env) error {
	cache, err := os.UserCacheDir()
	if err != nil { // no home: compile every time
		cache = ""
	} else {
		cache = filepath.Join(cache, "heddle", "cubin")
	}
	g := bench.GEMM{PTX: c.PTX, Tile: c.Tile, Device: c.Device, CuBLAS: findCuBLAS(c.CuBLAS), Cache: cache, Command: "heddle " + strings.Join(os.Args[1:], " "),
		Sizes: c.Sizes, Sustained: c.Sustained, Graphs: c.Graphs, Pairs: c.Pairs, Rounds: c.Rounds, Launches: 200, Idle: c.Idle, Block: c.Block,
		Progress: func(format string, args ...any) { fmt.Fprintf(env.Err, format+"\n", args...) },
		Store: func(r *bench.Result) error {
			if c.Out == "" {
				return nil
			}
			return r.Write(c.Out)
		}}
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

func emitRatios(env *cli.Env, r *bench.Result) error {
	all := r.Summary()
	return env.Emit(map[string]any{"device": r.Device, "peer": r.Peer, "date": r.Date, "ratios": all}, func(w io.Writer) { bench.Print(w, all) })
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
