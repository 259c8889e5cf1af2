package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heddle/internal/cli"
	"heddle/rl"
	"heddle/train"
)

type rlCmd struct {
	Train    rlTrainCmd    `cmd:"" help:"Supervise to a plateau, then reinforce, beside the same time of further supervision."`
	Rollouts rlRolloutsCmd `cmd:"" help:"Completions of a policy, token by token: entropy, verdict, where each was lost."`
	Study    rlStudyCmd    `cmd:"" help:"Does token entropy betray a rollout's fate early enough to act on it?"`
}

// rlConfig is what the verbs of rl share.
type rlConfig struct {
	Args        []string `arg:"" optional:"" help:"A config.yaml, then key=value overrides; --print-config lists the keys."`
	Task        string   `default:"path" help:"path, mul, countdown, add, arithmetic, or external with task.file and task.command."`
	Preset      string   `default:"quick" help:"quick: minutes on two cores. tiny: seconds. text: for a model with a tokenizer, init=FOLDER."`
	Seeds       int      `help:"Repetitions."`
	Device      string   `default:"cpu" help:"What learns: cpu, cuda or cuda:1. Rollouts are drawn on the CPU."`
	DType       string   `name:"dtype" enum:"f32,bf16" default:"f32" help:"Of weights and activations in learning: f32, or bf16 on a GPU."`
	Out         string   `help:"The run's folder. Default: runs/rl- and the time."`
	PrintConfig bool     `help:"Print the effective configuration with the origin of each value, and stop."`
}

// load is preset, file, environment, overrides and flags, in rising order.
func (c *rlConfig) load() (rl.Config, cli.Origins, error) {
	cfg, err := rl.Preset(c.Task, c.Preset)
	if err != nil {
		return cfg, nil, err
	}
	args, file := c.Args, ""
	if len(args) > 0 && !strings.Contains(args[0], "=") {
		file, args = args[0], args[1:]
	}
	from, err := cli.LoadConfig(&cfg, file, os.Environ(), args)
	if err != nil {
		return cfg, nil, err
	}
	if c.Seeds != 0 {
		cfg.Seeds, from["seeds"] = c.Seeds, "--seeds"
	}
	if c.Out != "" {
		cfg.Out, from["out"] = c.Out, "--out"
	}
	if err := cfg.Check(); err != nil {
		return cfg, from, err
	}
	task, err := cfg.Task.New(cfg.Seed) // before the run has a folder
	switch {
	case err != nil:
		return cfg, from, err
	case cfg.Init != "":
		_, err = os.Stat(cfg.Init)
	case task.Alphabet() == nil:
		err = fmt.Errorf("rl: task %s is text, which needs a model with a tokenizer; hint: init=FOLDER", task.Name())
	}
	return cfg, from, err
}

// machine gives the configuration what it learns on. Each learner opens the card anew, in the goroutine that plans and reserves its memory: the driver binds a card
// to the thread that opened it.
func (c *rlConfig) machine(cfg *rl.Config) error {
	on, card, err := onDevice(c.Device, dtypeOf(c.DType))
	if err != nil {
		return err
	}
	if cfg.On = on; card != nil {
		cfg.On.Fleet = func(ranks int) (train.Fleet, error) {
			own, _, err := onDevice(c.Device, on.Type)
			if err != nil {
				return nil, err
			}
			return own.Fleet(ranks)
		}
	}
	return nil
}

type rlTrainCmd struct {
	rlConfig
}

func (rlTrainCmd) Help() string {
	return `heddle rl train --task path --preset quick
    three seeds of a small model on a layered graph: demonstrations that err,
    then GRPO beside the same time of further supervision; under ten minutes
heddle rl train --task path supervise.errors=0 supervise.steps=150
    the control: with clean demonstrations, stopped early, further supervision
    gains as much
heddle rl train --task path staleness.ahead=2 reinforce.loss.importance_cap=2
    generation two rounds ahead of learning
heddle rl train --task arithmetic --preset text init=SmolLM2-135M-Instruct --device cuda --dtype bf16
    reinforces somebody's model on sums in words; rollouts are drawn on the CPU
heddle rl train --task add --preset tiny reinforce.loss.objective=cispo
    a smoke test of another objective`
}

func (c *rlTrainCmd) Run(ctx context.Context, env *cli.Env) error {
	cfg, from, err := c.load()
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if c.PrintConfig {
		return env.Emit(cfg, func(w io.Writer) { io.WriteString(w, cli.PrintConfig(cfg, from)) })
	}
	if err := c.machine(&cfg); err != nil {
		return err
	}
	if cfg.Out == "" {
		cfg.Out = filepath.Join("runs", "rl-"+time.Now().Format("20060102-150405"))
	}
	folder, err := rl.Create(cfg.Out, cli.PrintConfig(cfg, from), os.Args)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	p := &rlPrinter{env: env, start: time.Now(), cfg: cfg}
	p.talk("%s, %d seeds, run folder %s\n", cfg.Task.Name, cfg.Seeds, cfg.Out)
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	res, err := rl.Experiment(running, cfg, func(e rl.Event) {
		p.event(e)
		if err := folder.Add(e); err != nil {
			stop(err)
		}
	})
	p.end()
	if err != nil {
		if ctx.Err() != nil {
			return cli.Stopped(ctx, "rl: stopped; %s has what was measured so far", cfg.Out)
		}
		return errors.Join(err, folder.Close())
	}
	if err := folder.Finish(res); err != nil {
		return err
	}
	return env.Emit(res, func(w io.Writer) { printRL(w, res, cfg) })
}

// rlPrinter is the subscriber that talks to people while a run goes on.
type rlPrinter struct {
	env   *cli.Env
	start time.Time
	cfg   rl.Config
	shown time.Time
	open  bool // the last line has no newline yet
}

func (p *rlPrinter) talk(format string, args ...any) {
	p.end()
	fmt.Fprintf(p.env.Err, format, args...)
}

func (p *rlPrinter) end() {
	if p.open {
		fmt.Fprintln(p.env.Err)
		p.open = false
	}
}

// event shows a step on one redrawn line of a terminal, elsewhere every ten seconds.
func (p *rlPrinter) event(e rl.Event) {
	if e.Success != nil {
		p.talk("seed %d  %s %d  held-out success %.1f %%\n", e.Seed, e.Phase, e.Step, 100**e.Success)
	}
	every := 10 * time.Second
	if p.env.Terminal {
		every = 100 * time.Millisecond
	}
	if e.Took == 0 || time.Since(p.shown) < every {
		return
	}
	p.shown = time.Now()
	text := fmt.Sprintf("seed %d/%d  %s %s", e.Seed, p.cfg.Seeds, e.Phase, p.pace(e))
	switch {
	case e.Loss != nil:
		text += fmt.Sprintf("  loss %.4f", *e.Loss)
	case e.Reinforce != nil:
		r := e.Reinforce
		text += fmt.Sprintf("  reward %.3f  entropy %.3f  mixed groups %d/%d", r.Counts.Reward, r.Entropy, r.Counts.Mixed, r.Counts.Groups)
		if r.Faults.Unscorable > 0 {
			text += fmt.Sprintf("  %d unscorable (%s)", r.Faults.Unscorable, r.Faults.First)
		}
	}
	if p.env.Terminal {
		fmt.Fprintf(p.env.Err, "\r\x1b[K%s", text)
		p.open = true
		return
	}
	fmt.Fprintln(p.env.Err, text)
}

// pace is how far a phase is, how fast it goes, and how long it will take.
func (p *rlPrinter) pace(e rl.Event) string {
	rate := float64(e.Step) / e.Took.Seconds()
	if e.For > 0 {
		return fmt.Sprintf("%d  %.1f steps/s  %s left", e.Step, rate, max(0, e.For-e.Took).Round(time.Second))
	}
	left := time.Duration(float64(e.Of-e.Step) / rate * float64(time.Second))
	return fmt.Sprintf("%d/%d  %.1f steps/s  %s left", e.Step, e.Of, rate, left.Round(time.Second))
}

func printRL(w io.Writer, r *rl.Result, cfg rl.Config) {
	fmt.Fprintf(w, "\nsuccess on held-out prompts, completions drawn at temperature 1\n")
	fmt.Fprintf(w, "%-8s %12s %18s %8s\n", "seed", "before", "supervised further", "GRPO")
	more := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f%%", 100**x)
	}
	for _, x := range r.Each {
		fmt.Fprintf(w, "%-8d %11.1f%% %18s %7.1f%%\n", x.Seed, 100*x.Supervised, more(x.More), 100*x.GRPO)
	}
	fmt.Fprintf(w, "%-8s %11.1f%% %18s %7.1f%%\n", "mean", 100*r.Supervised, more(r.More), 100*r.GRPO)
	fmt.Fprintf(w, "\nGRPO over the policy before it: %+.1f points (95 %% interval %+.1f to %+.1f over %d seeds)\n", 100*r.Gain, 100*r.GainLow, 100*r.GainHigh, r.Seeds)
	if r.More != nil {
		fmt.Fprintf(w, "GRPO over as much time of further supervision: %+.1f points (%+.1f to %+.1f)\n", 100*r.OverMore, 100*r.OverLow, 100*r.OverHigh)
	}
	fmt.Fprintf(w, "%.0f s in all; %s: config.yaml env.json metrics.jsonl result.json\n", r.Seconds, cfg.Out)
}
