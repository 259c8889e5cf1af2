package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"heddle/internal/cli"
	"heddle/model"
	"heddle/model/hf"
	"heddle/parity"
	"heddle/tensor"
	"heddle/train"
)

type compareCmd struct {
	Schemes    []string `default:"single,dp2,fsdp2,tp2,megatron2,ulysses2,megatron4,ulysses4,fsdp2-megatron2" help:"Schemes: single, or dpN, fsdpN, tpN, megatronN, ulyssesN joined by -."`
	Model      string   `default:"tiny" help:"tiny, or a transformers folder or config.json of a Qwen3; weights are drawn."`
	Seq        int      `default:"32" help:"Tokens of a sequence."`
	Batch      int      `default:"4" help:"Sequences of the global batch."`
	DType      string   `name:"dtype" enum:"f32,f64" default:"f64" help:"Type of weights and activations: f32 or f64; f32 on a GPU."`
	Device     string   `default:"cpu" help:"What the ranks compute on: cpu, or the GPU that all of them share: cuda, cuda:1."`
	Recompute  []string `default:"selective" help:"What Backward rebuilds: none, selective, full, or everyN: every N-th layer in full."`
	Accumulate []int    `default:"1" help:"Micro-batches of the step."`
	Dry        bool     `help:"Count bytes and memory, compute nothing: for models larger than this machine."`
}

func (compareCmd) Help() string {
	return `heddle compare --schemes single,megatron2,ulysses2,megatron4,ulysses4
    what sequence parallelism does: gradients beside one rank's, bytes, memory,
    time, and where the two cross over
heddle compare --recompute none,selective,full,every2 --accumulate 1,3 --batch 12
    the same schemes when Backward rebuilds more and micro-batches are smaller
heddle compare --dry --model ./Qwen3-8B/config.json --seq 8192 --schemes megatron8,ulysses8,fsdp8 --dtype f32
    bytes and memory of a model that need not fit here

The reference is one rank in float64 with the same weights and batch. Exits with 5 where a gradient is further from it than
1e-12 (f64) or 1e-4 (f32), where bytes or kept activations are not those of the closed forms in parity/formula, where a dry
run has other calls or memory, or where what is kept does not fall from recomputation none over selective to full and with smaller
micro-batches, or the peak rises.`
}

func (c *compareCmd) Run(ctx context.Context, env *cli.Env) error {
	cfg, err := modelOf(c.Model)
	if err != nil {
		return err
	}
	grid, err := c.grid(cfg)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	on := train.Machine{Type: dtypeOf(c.DType), Dry: c.Dry}
	if !c.Dry {
		if on, _, err = onDevice(c.Device, on.Type); err != nil {
			return err
		}
	}
	in := parity.NewInput(cfg, c.Batch, c.Seq, 1, 1)
	if !c.Dry && on.Fleet == nil {
		if err := fits(in, grid, on.Type); err != nil {
			return err
		}
	}
	done := 0
	r, err := parity.Compare(ctx, in, grid, on, func(name string) {
		if done++; env.Terminal {
			fmt.Fprintf(env.Err, "\r%-60s", fmt.Sprintf("%d of %d: %s", done, grid.Rows(), name))
		}
	})
	if env.Terminal {
		fmt.Fprintf(env.Err, "\r%60s\r", "")
	}
	if errors.Is(err, context.Canceled) {
		return cli.Stopped(ctx, "compare: stopped before scheme %d of %d", done+1, grid.Rows())
	}
	if err != nil {
		return err
	}
	if err := env.Emit(r, func(w io.Writer) { printComparison(w, r) }); err != nil {
		return err
	}
	if broken := r.Broken(); len(broken) > 0 {
		return cli.Exitf(cli.Check, "compare: %s", strings.Join(broken, "\n"))
	}
	return nil
}

// grid is every scheme under every schedule. All must be able to take the batch, cut into micro-batches.
func (c *compareCmd) grid(cfg model.Config) (g parity.Grid, err error) {
	if g.Schedules, err = parity.Schedules(c.Recompute, c.Accumulate); err != nil {
		return g, err
	}
	for _, n := range c.Accumulate {
		if c.Batch%n != 0 {
			return g, fmt.Errorf("compare: batch of %d sequences is not divisible into %d micro-batches; hint: --batch %d", c.Batch, n, (c.Batch+n-1)/n*n)
		}
		if g.Schemes, err = parity.Schemes(c.Schemes, cfg, c.Batch/n, c.Seq); err != nil {
			if n > 1 {
				err = fmt.Errorf("in %d micro-batches: %w", n, err)
			}
			return g, err
		}
	}
	return g, nil
}

// fits refuses a comparison that this machine's memory cannot hold.
func fits(in parity.Input, g parity.Grid, t tensor.DType) error {
	need, err := parity.Needs(in, g, t)
	if err != nil {
		return err
	}
	if have := memory(); have > 0 && need > have {
		const gib = 1 << 30
		return &cli.Error{Code: cli.Invalid, Err: fmt.Errorf("compare: all ranks together need about %.1f GiB, this machine has %.1f GiB free", float64(need)/gib, float64(have)/gib),
			Hint: "--dry counts bytes and memory without computing"}
	}
	return nil
}

// memory is what the kernel says is available, 0 where it does not say.
func memory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// modelOf is compare's own small model, or the one that a config.json of transformers describes.
func modelOf(name string) (model.Config, error) {
	if name == "tiny" {
		return parity.Tiny(), nil
	}
	read := hf.ReadFile
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		read = hf.Read
	}
	c, err := read(name)
	if err != nil {
		return model.Config{}, cli.Exit(cli.Invalid, fmt.Errorf("model %s is neither tiny nor a readable config.json: %w", name, err))
	}
	m, err := model.FromHF(c)
	if err != nil {
		return m, cli.Exit(cli.Invalid, err)
	}
	return m, nil
}
