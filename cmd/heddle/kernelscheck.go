package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"time"

	"heddle/cuda"
	"heddle/internal/cli"
	"heddle/kernel"
	"heddle/kernel/all"
)

type kernelsCheckCmd struct {
	Only   string        `default:"*" help:"Kernels whose names match this pattern."`
	Device int           `default:"0" help:"Which GPU."`
	Limit  time.Duration `default:"4m" help:"End the checking process after this long."`
	Stall  time.Duration `default:"30s" help:"End it when it is silent for this long."`
}

func (kernelsCheckCmd) Help() string {
	return `heddle kernels check
    every kernel of the list on all its cases, on the GPU, beside float64
heddle kernels check --only 'norm-*'
    some of them

Exit code 5 where an answer is outside its bound.`
}

type checkedCase struct {
	Kernel string  `json:"kernel"`
	Case   string  `json:"case"`
	OK     bool    `json:"ok"`
	MS     float64 `json:"ms"` // transfers and compilation included
	Error  string  `json:"error,omitempty"`
}

func (c *kernelsCheckCmd) Run(ctx context.Context, env *cli.Env) error {
	if _, err := path.Match(c.Only, ""); err != nil {
		return cli.Exitf(cli.Usage, "kernels check: pattern %q: %v", c.Only, err)
	}
	return supervise(ctx, env, c.Limit, c.Stall, func() error {
		dev, run, err := openRunner(c.Device)
		if err != nil {
			return absent(err)
		}
		var done []checkedCase
		failed := 0
		for _, k := range all.Kernels() {
			if ok, _ := path.Match(c.Only, k.Name); !ok {
				continue
			}
			cases, err := checkKernel(k, run, dev.SMs)
			if err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
			for _, x := range cases {
				if !x.OK {
					failed++
				}
				fmt.Fprintf(env.Err, "%-28s %-40s ok=%v %.0f ms %s\n", x.Kernel, x.Case, x.OK, x.MS, x.Error)
			}
			done = append(done, cases...)
		}
		if err := env.Emit(map[string]any{"device": dev.Facts, "cases": done, "failed": failed}, func(w io.Writer) { fmt.Fprintf(w, "%d cases, %d failed\n", len(done), failed) }); err != nil {
			return err
		}
		if failed > 0 {
			return cli.Exitf(cli.Check, "kernels check: %d of %d cases failed", failed, len(done))
		}
		return nil
	})
}

// checkKernel runs one kernel's cases; an error of the device ends the check.
func checkKernel(k kernel.Kernel, run *cuda.Runner, sms int) (out []checkedCase, err error) {
	b, err := k.Build()
	if err != nil {
		return nil, err
	}
	cases, err := b.Cases(sms)
	if err != nil {
		return nil, err
	}
	for _, x := range cases {
		begin := time.Now()
		if err := run.Run(b.Module(), x.Launch, x.Args); err != nil {
			return nil, err
		}
		r := checkedCase{Kernel: k.Name, Case: x.Name, OK: true}
		if err := x.Check(); err != nil {
			r.OK, r.Error = false, err.Error()
		}
		r.MS = time.Since(begin).Seconds() * 1e3
		out = append(out, r)
	}
	return out, nil
}
