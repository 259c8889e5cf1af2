package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"heddle/internal/cli"
	"heddle/rl"
	"heddle/rl/tasks"
)

type rlRolloutsCmd struct {
	rlConfig
	Prompts int `default:"3" help:"Held-out prompts."`
	Group   int `default:"4" help:"Completions of each."`
}

func (rlRolloutsCmd) Help() string {
	return `heddle rl rollouts --task path --preset tiny
    supervises a policy for seconds and shows completions of held-out prompts:
    each token with its entropy in nats, and where the completion was lost
heddle rl rollouts --task mul --prompts 20 --group 8 --json
    the same as data, with log-probabilities and versions`
}

func (c *rlRolloutsCmd) Run(ctx context.Context, env *cli.Env) error {
	cfg, from, err := c.load()
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if c.PrintConfig {
		return env.Emit(cfg, func(w io.Writer) { io.WriteString(w, cli.PrintConfig(cfg, from)) })
	}
	if c.Prompts < 1 || c.Group < 1 {
		return cli.Exitf(cli.Usage, "rl: --prompts %d and --group %d, want 1 or more", c.Prompts, c.Group)
	}
	if err := c.machine(&cfg); err != nil {
		return err
	}
	cfg.Eval.Prompts, cfg.Eval.Samples, cfg.Seeds = c.Prompts, c.Group, 1
	p := &rlPrinter{env: env, start: time.Now(), cfg: cfg}
	policy, err := rl.Teach(ctx, cfg, p.event)
	p.end()
	if err != nil {
		return err
	}
	defer policy.Close()
	groups, err := policy.Rollouts(ctx, policy.HeldOut, c.Group)
	if err != nil {
		return err
	}
	return env.Emit(map[string]any{"task": cfg.Task.Name, "groups": groups}, func(w io.Writer) {
		for _, g := range groups {
			printGroup(w, policy.Problem.Codec, g)
		}
	})
}

// printGroup writes a completion a line: symbols with their entropies; what stands after | was lost.
func printGroup(w io.Writer, codec tasks.Codec, g *rl.Group) {
	fmt.Fprintf(w, "\n%s  (%d of %d right)\n", g.Prompt.Text, g.Successes(), len(g.Rollouts))
	for _, r := range g.Rollouts {
		var b strings.Builder
		for i, t := range r.Tokens {
			text, err := codec.Decode([]int32{t.ID})
			switch {
			case err != nil:
				text = "?"
			case t.ID == codec.End():
				text = "end"
			}
			if i == r.Lost {
				b.WriteString("| ")
			}
			fmt.Fprintf(&b, "%s %.2f  ", text, t.Entropy)
		}
		verdict := "right"
		switch {
		case !r.Scored:
			verdict = "unscorable: " + r.Fault
		case !r.Succeeded():
			verdict = "wrong"
		}
		fmt.Fprintf(w, "  %-11s %s\n", verdict, b.String())
	}
}
