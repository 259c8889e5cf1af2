package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"heddle/bench"
	"heddle/internal/cli"
	"heddle/kernel/ladder"
	"heddle/ptx/emulate"
)

type gemmLadderCmd struct {
	Emulate bool          `help:"Run every rung on the emulator, on small products, and measure nothing."`
	Size    int           `default:"4096" help:"Square to measure."`
	CuBLAS  string        `name:"cublas" help:"Folder of libcublas; looked for where it is not given." placeholder:"DIR"`
	Pairs   int           `default:"9" help:"Rounds of single launches."`
	Idle    time.Duration `default:"20ms" help:"Rest before each single launch."`
	Device  int           `default:"0" help:"Which GPU."`
	Out     string        `help:"Write all raw samples as JSON to this file." placeholder:"FILE"`
	Limit   time.Duration `default:"2m" help:"End after this long with what is measured by then."`
	Stall   time.Duration `default:"30s" help:"End the measuring process when it is silent for this long."`
}

func (gemmLadderCmd) Help() string {
	return `Examples:
  heddle gemm ladder --emulate
  heddle gemm ladder --size 4096 --out ladder.json

Each rung is one file of kernel/ladder, or one more option of kernel/gemm. All are checked before they are timed, in turn with cuBLAS.`
}

// ladderRow is a rung as it is shown.
type ladderRow struct {
	Rung string  `json:"rung"`
	Adds string  `json:"adds"`
	Why  string  `json:"why"`
	Rate float64 `json:"tflops,omitempty"`
	Gain float64 `json:"gain,omitempty"` // over the rung below
	Peer float64 `json:"of_peer,omitempty"`
}

func (c *gemmLadderCmd) Run(ctx context.Context, env *cli.Env) error {
	if c.Emulate {
		return c.emulate(env)
	}
	return supervise(ctx, env, c.Limit, c.Stall, func() error { return c.measure(ctx, env) })
}

func (c *gemmLadderCmd) emulate(env *cli.Env) error {
	var rows []ladderRow
	for _, r := range ladder.Rungs() {
		cases, module, err := r.Cases(4)
		for _, k := range cases {
			if err == nil {
				err = (emulate.Emulator{SMs: 4, Seed: 1}).Run(module, k.Launch, k.Args)
			}
			if err == nil {
				err = k.Check()
			}
		}
		if err != nil {
			return cli.Exitf(cli.Check, "gemm ladder: %s: %v", r.Name, err)
		}
		fmt.Fprintf(env.Err, "%s: exact\n", r.Name)
		rows = append(rows, ladderRow{Rung: r.Name, Adds: r.Adds, Why: r.Why})
	}
	return c.emit(env, rows)
}

func (c *gemmLadderCmd) measure(ctx context.Context, env *cli.Env) error {
	rungs := ladder.Rungs()
	g := bench.GEMM{Rungs: rungs, Device: c.Device, CuBLAS: findCuBLAS(c.CuBLAS), Cache: cubinCache(), Command: "heddle " + strings.Join(os.Args[1:], " "),
		Sizes: []int{c.Size}, Pairs: c.Pairs, Idle: c.Idle, Quick: true,
		Progress: func(format string, args ...any) { fmt.Fprintf(env.Err, format+"\n", args...) },
		Store: func(r *bench.Result) error {
			if c.Out == "" {
				return nil
			}
			return r.Write(c.Out)
		}}
	ctx, cancel := context.WithTimeout(ctx, c.Limit-reserve(c.Limit))
	defer cancel()
	r, err := g.Run(ctx)
	if err != nil {
		return absent(err)
	}
	rate := map[string]bench.Rank{}
	for _, q := range r.Ranking() {
		rate[q.Kernel] = q
	}
	var rows []ladderRow
	below := 0.0
	for _, x := range rungs {
		row := ladderRow{Rung: x.Name, Adds: x.Adds, Why: x.Why}
		if q, ok := rate["heddle ladder "+x.Name]; ok {
			row.Rate, row.Peer = q.Rate, q.Speed
			if below > 0 {
				row.Gain = q.Rate / below
			}
			below = q.Rate
		}
		rows = append(rows, row)
	}
	if err := c.emit(env, rows); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.Failure != "" {
			return cli.Exitf(cli.Check, "gemm ladder: %s: %s", row.Kernel, row.Failure)
		}
	}
	return nil
}

func (c *gemmLadderCmd) emit(env *cli.Env, rows []ladderRow) error {
	return env.Emit(map[string]any{"size": c.Size, "rungs": rows}, func(w io.Writer) {
		for _, r := range rows {
			figures := "         "
			if r.Rate > 0 {
				figures = fmt.Sprintf("%7.1f TFLOP/s  ×%5.2f  %.3f of cuBLAS", r.Rate, r.Gain, r.Peer)
			}
			fmt.Fprintf(w, "%-10s %s  %s\n           %s\n", r.Rung, figures, r.Adds, r.Why)
		}
	})
}
