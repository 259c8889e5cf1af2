package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/cli"
	"heddle/train"
)

// bareResume is what --resume without a value becomes.
const bareResume = "--resume=."

// findRun splits --resume=RUN@STEP into c.Resume and c.step, and finds the newest run where none is named.
func (c *trainCmd) findRun() error {
	c.step = -1
	if c.Resume == "" {
		if len(c.Allow) > 0 {
			return cli.Exitf(cli.Usage, "train: --allow has no effect without --resume")
		}
		return nil
	}
	if c.Out != "" {
		return cli.Exitf(cli.Usage, "train: --resume goes on in the run's own folder; --out has no effect")
	}
	if run, step, ok := strings.Cut(c.Resume, "@"); ok {
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 {
			return cli.Exitf(cli.Usage, "train: --resume=%s: %q is no step", c.Resume, step)
		}
		c.Resume, c.step = run, n
	}
	if "--resume="+c.Resume != bareResume {
		return nil
	}
	runs, _ := filepath.Glob(filepath.Join("runs", "*", "checkpoints")) // named by time
	if len(runs) == 0 {
		return cli.Exitf(cli.Invalid, "train: no run under runs/ has checkpoints; hint: --resume=RUN")
	}
	c.Resume = filepath.Dir(slices.Max(runs))
	return nil
}

// folder makes the run's folder, or opens the one of a run that goes on, and readies its checkpoints.
func (c *trainCmd) folder(job *train.Job, cfg train.Config, from cli.Origins, args []string, p *trainPrinter) (*train.Folder, error) {
	if c.Resume == "" {
		f, err := train.Create(cfg.Out, cli.PrintConfig(job.Config, from), args)
		if err != nil {
			return nil, exitOf(err)
		}
		return f, f.Save(job)
	}
	saved, damaged, err := train.OpenCheckpoint(c.Resume, c.step)
	for _, d := range damaged {
		p.talk("passed over: %v\n", d)
	}
	if err != nil {
		return nil, &cli.Error{Code: cli.Invalid, Err: err, Hint: stepsOf(c.Resume)}
	}
	if err := job.Resume(saved, c.Allow, p.talk); err != nil {
		saved.Close()
		return nil, exitOf(err)
	}
	p.talk("going on after step %d of %s (it ran as %s)\n", saved.Step, c.Resume, saved.Layout)
	f, err := train.Reopen(cfg.Out, saved.Step)
	if err != nil {
		return nil, err
	}
	return f, f.Save(job)
}

// stepsOf names the steps that a run can go on from.
func stepsOf(run string) string {
	marks, _ := filepath.Glob(filepath.Join(run, "checkpoints", "step-*", "COMPLETE"))
	var steps []string
	for _, m := range marks {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(m)), "step-")); err == nil {
			steps = append(steps, strconv.Itoa(n))
		}
	}
	if steps == nil {
		return "save_every=N makes checkpoints"
	}
	return "there are steps " + strings.Join(steps, ", ")
}
