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
	"heddle/rl/study"
)

type rlStudyCmd struct {
	rlConfig
	Group       int     `default:"16" help:"Rollouts of each prompt."`
	Policies    int     `default:"1" help:"Taught policies of different seeds that are studied as one."`
	Window      int     `default:"4" help:"Tokens that VIX-like features look back over."`
	FalseAlarms float64 `default:"0.1" help:"Share of successes that a trigger may fire on."`
	Bootstrap   int     `default:"1000" help:"Resamples of the prompts."`
	Later       int     `default:"20" help:"Steps of reinforcement after which predictors are tested again; 0: none."`
	Train       bool    `help:"Then train policies with each arm, over seeds, at equal numbers of drawn tokens."`
	TrainTokens int     `default:"150000" help:"Tokens that each arm of --train may draw."`
	Primary     string  `help:"The arm named before the run. Default: entropy / fork at cut."`
	Against     string  `help:"What its gain is compared with. Default: random / fork at cut."`
}

func (rlStudyCmd) Help() string {
	return `heddle rl study --task path --out runs/study
    teaches a policy, holds it still, and asks whether token entropy tells a
    rollout's fate early enough to act on it; writes report.html and result.json
heddle rl study --task path --train --train-tokens 100000
    and then trains policies with each arm, three seeds
heddle rl study --task mul task.digits=2 --group 8 --later 0
    the same on multiplication, without a later policy
heddle rl study --task path --preset tiny eval.prompts=8 --group 4 --json
    a smoke test`
}

func (c *rlStudyCmd) Run(ctx context.Context, env *cli.Env) error {
	cfg, from, err := c.load()
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if c.PrintConfig {
		return env.Emit(cfg, func(w io.Writer) { io.WriteString(w, cli.PrintConfig(cfg, from)) })
	}
	s := study.Default()
	s.Group, s.Window, s.FalseAlarms, s.Bootstrap, s.Later, s.Seed = c.Group, c.Window, c.FalseAlarms, c.Bootstrap, c.Later, cfg.Seed
	if c.Primary != "" {
		s.Primary = c.Primary
	}
	if c.Against != "" {
		s.Against = c.Against
	}
	if err := s.Check(); err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if c.Policies < 1 || c.Policies > 1000 {
		return cli.Exitf(cli.Invalid, "rl: --policies %d, want 1 to 1000", c.Policies)
	}
	if c.Train && c.TrainTokens < 1 {
		return cli.Exitf(cli.Invalid, "rl: --train-tokens %d, want 1 or more", c.TrainTokens)
	}
	if err := c.machine(&cfg); err != nil {
		return err
	}
	if cfg.Out == "" {
		cfg.Out = filepath.Join("runs", "study-"+time.Now().Format("20060102-150405"))
	}
	folder, err := rl.Create(cfg.Out, cli.PrintConfig(cfg, from), os.Args)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	start := time.Now()
	p := &rlPrinter{env: env, start: start, cfg: cfg}
	policies, err := c.teach(ctx, cfg, c.Policies, p)
	for _, one := range policies {
		defer one.Close()
	}
	if err != nil {
		return stoppedOr(ctx, err)
	}
	taught := make([]map[string][]float32, len(policies))
	for i, one := range policies {
		taught[i] = one.Weights
	}
	res, err := study.Run(ctx, s, study.Pool(policies...), p.talk)
	if err != nil {
		return stoppedOr(ctx, err)
	}
	save := func() error {
		res.Seconds = time.Since(start).Seconds()
		command := "heddle " + strings.Join(os.Args[1:], " ")
		return errors.Join(folder.Write("report.html", func(w io.Writer) error { return res.WriteHTML(w, command) }), folder.JSON("result.json", res))
	}
	if err := save(); err != nil { // before the long part
		return err
	}
	if c.Train {
		for i, one := range policies { // the study has reinforced them since
			err = errors.Join(err, one.Use(taught[i], 0))
		}
		if err == nil {
			res.Training, err = c.train(ctx, cfg, s, policies, p)
		}
		if err != nil {
			return stoppedOr(ctx, err)
		}
		res.Conclude()
	}
	if err := errors.Join(save(), folder.Close()); err != nil {
		return err
	}
	return env.Emit(res, func(w io.Writer) { printStudy(w, res, cfg.Out) })
}

// teach makes policies of the first n seeds.
func (c *rlStudyCmd) teach(ctx context.Context, cfg rl.Config, n int, p *rlPrinter) (out []*rl.Policy, err error) {
	p.cfg.Seeds = n
	for i := range n {
		next := cfg
		next.Seed += uint64(i) * 1000
		one, err := rl.Teach(ctx, next, p.event)
		p.end()
		if err != nil {
			return out, err
		}
		out = append(out, one)
	}
	return out, nil
}

// train is the second phase, over the seeds of the configuration; the first policies are there.
func (c *rlStudyCmd) train(ctx context.Context, cfg rl.Config, s study.Config, have []*rl.Policy, p *rlPrinter) (*study.Training, error) {
	out := &study.Training{Tokens: c.TrainTokens}
	for i := range cfg.Seeds {
		if i < len(have) {
			if err := out.Train(ctx, s, have[i], p.talk); err != nil {
				return nil, err
			}
			continue
		}
		next := cfg
		next.Seed += uint64(i) * 1000
		more, err := c.teach(ctx, next, 1, p)
		if err != nil {
			return nil, err
		}
		err = out.Train(ctx, s, more[0], p.talk)
		more[0].Close()
		if err != nil {
			return nil, err
		}
	}
	out.Finish()
	return out, nil
}

func stoppedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cli.Stopped(ctx, "rl: stopped")
	}
	return err
}

func printStudy(w io.Writer, r *study.Result, out string) {
	fmt.Fprintf(w, "\n%-32s %-18s %8s %24s %9s %8s\n", "trigger", "action", "fired", "gain, points (95 %)", "p (Holm)", "tokens")
	for _, a := range r.Arms {
		action := string(a.Action)
		if a.Branches > 1 {
			action = fmt.Sprintf("best of %d by %s", a.Branches, a.Choice)
		}
		fmt.Fprintf(w, "%-32s %-18s %7.1f%% %+8.1f (%+.1f … %+.1f) %9.2g %+7.1f%%\n", a.Trigger, action, 100*a.Fired, 100*a.Gain.Value, 100*a.Gain.Low, 100*a.Gain.High, a.Holm, 100*a.Relative)
	}
	fmt.Fprintln(w)
	for _, line := range r.Answer {
		fmt.Fprintf(w, "%s\n\n", line)
	}
	fmt.Fprintf(w, "%.0f s; %s: report.html result.json config.yaml env.json\n", r.Seconds, out)
}
