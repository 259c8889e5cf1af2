package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"heddle/compute/gpu"
	"heddle/internal/cli"
	"heddle/model"
	"heddle/parallel"
	"heddle/train"
)

type stepCmd struct {
	Model   string        `default:"tiny" help:"tiny, or a transformers folder or config.json; weights are drawn."`
	Scheme  string        `default:"single" help:"How ranks share the work: single, or dpN, fsdpN, tpN, megatronN, ulyssesN joined by -."`
	Batch   int           `default:"8" help:"Sequences of a batch."`
	Seq     int           `default:"256" help:"Tokens of a sequence."`
	Steps   int           `default:"10" help:"Steps; the first two are left out of the time."`
	DType   string        `name:"dtype" enum:"f32,f64,bf16" default:"f32" help:"Type of weights and activations: f32, f64 on CPUs, bf16 on GPUs."`
	Device  string        `default:"cpu" help:"What the ranks compute on: cpu, or the GPU that all of them share: cuda, cuda:1."`
	Keep    string        `enum:"selective,all,full" default:"selective" help:"What Forward keeps for Backward: selective, all or full."`
	Profile bool          `help:"After the steps, one more with an event around each kernel: the time of each by name. One rank on a GPU."`
	Limit   time.Duration `default:"5m" help:"End after this long."`
}

func (stepCmd) Help() string {
	return `heddle step
    times training steps of a small model on random tokens, on this machine's CPU
heddle step --model ./Qwen3-0.6B/config.json --batch 8 --seq 2048 --dtype bf16 --device cuda --profile
    the same for a real model on a GPU, with float32 master weights, and where
    the time goes

A step is forward, backward, clipping by the global norm and AdamW. MFU is
(6·N + 6·L·A·D·S) FLOPs a token, all parameters counted once and causal attention
by half, over 989 TFLOP/s, an H200's dense bf16.`
}

// stepReport is what steps took.
type stepReport struct {
	Command    string           `json:"command"`
	Date       string           `json:"date"`
	Model      model.Config     `json:"model"`
	Scheme     string           `json:"scheme"`
	Device     string           `json:"device"`
	DType      string           `json:"dtype"`
	Batch      int              `json:"batch"`
	Seq        int              `json:"seq"`
	Parameters int              `json:"parameters"`
	Median     float64          `json:"median_ms"`
	StepsMS    []float64        `json:"steps_ms"`
	Rate       float64          `json:"tok_s"`
	MFU        float64          `json:"mfu,omitempty"` // of a GPU
	ReadyS     float64          `json:"ready_s"`       // until the weights are there
	StartS     float64          `json:"start_s"`       // to the end of the first step
	Losses     []float64        `json:"losses"`
	Memory     train.Memory     `json:"memory"`
	Kernels    []gpu.KernelTime `json:"kernels,omitempty"`
}

func (c *stepCmd) Run(ctx context.Context, env *cli.Env) error {
	return supervise(ctx, env, c.Limit, c.Limit, func() error { return c.measure(env) })
}

func (c *stepCmd) measure(env *cli.Env) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	on, card, err := onDevice(c.Device, dtypeOf(c.DType))
	if err != nil {
		return err
	}
	if c.Profile && (card == nil || cfg.Parallel.World() != 1) {
		return cli.Exitf(cli.Usage, "step: --profile is for one rank on a GPU")
	}
	steps := c.Steps
	if c.Profile {
		steps++
	}
	t, err := train.Time(cfg, on, steps, func(step int) {
		if card != nil && c.Profile && step == c.Steps {
			card.Profile = new(gpu.Profile)
		}
	})
	if err != nil {
		return exitOf(err)
	}
	r := c.report(cfg, t)
	if card != nil {
		r.Device = card.Device.Name
	}
	if c.Profile {
		if r.Kernels, err = card.Profile.Times(); err != nil {
			return err
		}
	}
	return env.Emit(r, func(w io.Writer) { r.print(w) })
}

func (c *stepCmd) config() (train.Config, error) {
	cfg := train.Default()
	var err error
	if cfg.Model, err = modelOf(c.Model); err != nil {
		return cfg, err
	}
	if cfg.Parallel, err = parallel.ParseLayout(c.Scheme); err != nil {
		return cfg, cli.Exit(cli.Invalid, err)
	}
	cfg.Batch, cfg.Seq, cfg.DType, cfg.Device, cfg.Recompute = c.Batch, c.Seq, c.DType, c.Device, model.Policy{Mode: model.Keep(c.Keep)}
	cfg.Samples, cfg.SaveEvery, cfg.Schedule.Peak = 0, 0, 1e-4
	if c.Steps < 3 {
		return cfg, cli.Exitf(cli.Usage, "step: %d steps, want 3 or more: the first two are left out", c.Steps)
	}
	if _, err := cfg.Check(); err != nil {
		return cfg, cli.Exit(cli.Invalid, err)
	}
	return cfg, nil
}

func (c *stepCmd) report(cfg train.Config, t *train.Timing) *stepReport {
	m := cfg.Model
	r := &stepReport{Command: "heddle " + strings.Join(os.Args[1:], " "), Date: time.Now().UTC().Format(time.RFC3339), Model: m, Scheme: c.Scheme, Device: c.Device, DType: c.DType, Batch: c.Batch, Seq: c.Seq, ReadyS: t.Ready.Seconds(), StartS: t.Start.Seconds(), Losses: t.Losses, Memory: train.MemoryOf(t.Memory)}
	if s, err := cfg.Check(); err == nil {
		for _, row := range m.Table(s) {
			r.Parameters += row.Elems()
		}
	}
	for _, d := range t.Steps {
		r.StepsMS = append(r.StepsMS, d.Seconds()*1e3)
	}
	sorted := slices.Sorted(slices.Values(r.StepsMS[2:c.Steps]))
	r.Median = sorted[len(sorted)/2]
	r.Rate = float64(c.Batch*c.Seq) / r.Median * 1e3
	if c.Device != "cpu" {
		const peak = 989e12
		r.MFU = (6*float64(r.Parameters) + 6*float64(m.Layers*m.Heads*m.Head*c.Seq)) * r.Rate / peak
	}
	return r
}

func (r *stepReport) print(w io.Writer) {
	fmt.Fprintf(w, "%d parameters, batch %d × %d tokens, %s, %s on %s\n", r.Parameters, r.Batch, r.Seq, r.DType, r.Scheme, r.Device)
	fmt.Fprintf(w, "step %.1f ms (median of %d), %.0f tok/s", r.Median, len(r.StepsMS)-2, r.Rate)
	if r.MFU > 0 {
		fmt.Fprintf(w, ", MFU %.1f %%", 100*r.MFU)
	}
	fmt.Fprintf(w, "; weights after %.1f s, first step after %.1f s; loss %.4f → %.4f\n", r.ReadyS, r.StartS, r.Losses[0], r.Losses[len(r.Losses)-1])
	printMemory(w, r.Memory)
	all := time.Duration(0)
	for _, k := range r.Kernels {
		all += k.Time
	}
	for _, k := range r.Kernels {
		fmt.Fprintf(w, "  %-44s %6d × %9.1f µs  %8.2f ms  %4.1f %%\n", k.Name, k.Calls, float64(k.Time.Nanoseconds())/1e3/float64(k.Calls), k.Time.Seconds()*1e3, 100*float64(k.Time)/float64(all))
	}
}
