package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"heddle/bench/launch"
	"heddle/cuda/cupti"
	"heddle/internal/atomicfile"
	"heddle/internal/cli"
)

type launchCmd struct {
	Chain launchChainCmd `cmd:"" default:"withargs" help:"The chain zero, zero, gemm, gemm under every way of launching it."`
	Host  launchHostCmd  `cmd:"" help:"What one launch costs the host, beside the same call from C."`

	Bubbles launchBubblesCmd `cmd:"" help:"Record runs with one known bubble each, for a report to find."`
}

func (launchCmd) Help() string {
	return `Examples:
  heddle launch --sizes 256,1024 --picture chain.svg
  heddle launch host --c ./host`
}

type launchChainCmd struct {
	Sizes   []int         `default:"256,512,1024,2048,4096,8192" help:"Squares."`
	Ways    []string      `help:"Only these ways of launching." placeholder:"NAME"`
	Config  string        `help:"The GEMM's configuration; by default what is chosen for each size." placeholder:"NAME"`
	Rounds  int           `default:"21" help:"How often each way is measured; all take turns."`
	Chains  int           `default:"64" help:"Chains a burst, and in the graph of many."`
	Torch   string        `help:"A python with PyTorch for CUDA, to measure its chains too." placeholder:"PYTHON"`
	Device  int           `default:"0" help:"Which GPU."`
	Out     string        `help:"Write everything measured as JSON to this file." placeholder:"FILE"`
	Read    string        `help:"Measure nothing: show this file." placeholder:"FILE"`
	Picture string        `help:"Draw the timelines of the first size, stacked, as SVG." placeholder:"FILE"`
	Queued  bool          `help:"Draw chains that were queued ahead, without the host's part."`
	Limit   time.Duration `default:"4m" help:"End after this long."`
	Stall   time.Duration `default:"60s" help:"End the measuring process when it is silent for this long."`
}

func (launchChainCmd) Help() string {
	return `Examples:
  heddle launch --sizes 256,1024 --picture chain.svg
  heddle launch --read bench/results/launch-h200.json --picture chain.svg --queued

The ways: naive encodes everything anew a call; handle is a compiled signature; -pdl lets kernels start early and wait themselves (programmatic dependent launch); graph replays a chain, graph-many all chains of a burst. Results must equal those of plain launches bit for bit; the controls take the waits out and must be caught.`
}

func (c *launchChainCmd) Run(ctx context.Context, env *cli.Env) error {
	if c.Read != "" {
		r, err := launch.Read(c.Read)
		if err != nil {
			return cli.Exit(cli.Invalid, err)
		}
		return c.show(env, r)
	}
	for _, n := range c.Sizes {
		if n < 64 || n%64 != 0 || n > 16384 {
			return cli.Exitf(cli.Usage, "launch: size %d, want multiples of 64 up to 16384", n)
		}
	}
	return supervise(ctx, env, c.Limit, c.Stall, func() error {
		ctx, cancel := context.WithTimeout(ctx, c.Limit-c.Limit/8)
		defer cancel()
		l := lab(env, c.Device, c.Rounds, c.Out)
		l.Sizes, l.Only, l.Config, l.Chains, l.Torch = c.Sizes, c.Ways, c.Config, c.Chains, c.Torch
		r, err := l.Run(ctx)
		if err != nil {
			return absent(err)
		}
		return c.show(env, r)
	})
}

// show prints a result, and draws its first size.
func (c *launchChainCmd) show(env *cli.Env, r *launch.Result) error {
	if c.Picture != "" {
		if len(r.Sizes) == 0 {
			return cli.Exitf(cli.Invalid, "launch: nothing was measured that could be drawn")
		}
		err := atomicfile.Write(atomicfile.OS{}, c.Picture, func(w io.Writer) error { return r.Sizes[0].Picture(w, !c.Queued) })
		if err != nil {
			return err
		}
	}
	if err := env.Emit(r, r.Print); err != nil {
		return err
	}
	for _, s := range r.Sizes {
		for _, k := range s.Controls {
			if k.Must && k.Caught == 0 {
				return cli.Exitf(cli.Check, "launch: n = %d: control %q went unnoticed: the comparison proves nothing", s.N, k.Name)
			}
		}
	}
	return nil
}

type launchHostCmd struct {
	C      string        `name:"c" help:"The same launches from C: a program built from bench/launch/testdata/host.c." placeholder:"PROGRAM"`
	Rounds int           `default:"31" help:"Batches of each way; all take turns."`
	Device int           `default:"0" help:"Which GPU."`
	Out    string        `help:"Write the result as JSON to this file." placeholder:"FILE"`
	Limit  time.Duration `default:"1m" help:"End after this long."`
}

func (launchHostCmd) Help() string {
	return `Examples:
  heddle launch host
  heddle launch host --c ./host --json

Build the C program with cc -O2 -o host bench/launch/testdata/host.c -ldl.`
}

func (c *launchHostCmd) Run(ctx context.Context, env *cli.Env) error {
	return supervise(ctx, env, c.Limit, c.Limit, func() error {
		r, err := lab(env, c.Device, c.Rounds, c.Out).Host(ctx, c.C)
		if err != nil {
			return absent(err)
		}
		return env.Emit(r, r.Print)
	})
}

type launchBubblesCmd struct {
	Dir    string        `arg:"" help:"Folder for the traces and the list of what is in them." placeholder:"DIR"`
	CUPTI  string        `name:"cupti" help:"Folder of libcupti; looked for where it is not given." placeholder:"DIR"`
	Events bool          `help:"Record with events although there is libcupti."`
	Device int           `default:"0" help:"Which GPU."`
	Limit  time.Duration `default:"1m" help:"End after this long."`
}

func (launchBubblesCmd) Help() string {
	return `Examples:
  heddle launch bubbles traces && heddle trace bubbles traces/host.json
  heddle launch bubbles traces --events`
}

func (c *launchBubblesCmd) Run(ctx context.Context, env *cli.Env) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return cli.Exit(cli.Usage, err)
	}
	return supervise(ctx, env, c.Limit, c.Limit, func() error {
		var candidates []string
		if !c.Events {
			candidates = findCUPTI(c.CUPTI)
		}
		all, err := lab(env, c.Device, 1, "").Bubbles(c.Dir, candidates)
		if err != nil {
			return absent(err)
		}
		return env.Emit(all, func(w io.Writer) {
			for _, b := range all {
				fmt.Fprintf(w, "%-11s %-11s %3d gaps or more, %.0f µs or more: %s\n", b.Name, b.Cause, b.Count, b.Micros, b.Doc)
			}
		})
	})
}

// findCUPTI lists places to try; a Python on the PATH often carries the library as a package.
func findCUPTI(hint string) []string {
	site := ""
	if python, err := exec.LookPath("python3"); err == nil {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(python)), "lib", "python3*", "site-packages"))
		if err == nil && len(found) > 0 {
			site = found[0]
		}
	}
	return cupti.Find(hint, site)
}

// lab is what the verbs share.
func lab(env *cli.Env, device, rounds int, out string) launch.Lab {
	return launch.Lab{Device: device, Rounds: rounds, Cache: cubinCache(), Command: "heddle " + strings.Join(os.Args[1:], " "),
		Progress: func(format string, args ...any) { fmt.Fprintf(env.Err, format+"\n", args...) },
		Store: func(r *launch.Result) error {
			if out == "" {
				return nil
			}
			return r.Write(out)
		}}
}
