// Command heddle trains and reinforces transformers, every layer visible and measured.
//
// One verb a file: flags are parsed into a struct, the struct makes one call into a library, the result is printed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"heddle/internal/cli"
)

type commands struct {
	JSON  bool   `help:"Print the result as one JSON object on stdout."`
	Color string `enum:"auto,always,never" default:"auto" help:"Colour: auto, always or never."`

	Train     trainCmd     `cmd:"" help:"Train a model; without arguments a small one on the Go source tree of this machine."`
	Step      stepCmd      `cmd:"" help:"Time training steps of a model on random tokens."`
	Generate  generateCmd  `cmd:"" help:"Continue text with a model: a run, a Hugging Face folder or a .gguf file."`
	Compare   compareCmd   `cmd:"" help:"Compare parallel schemes on one batch: gradients, bytes, memory, time."`
	Walk      walkCmd      `cmd:"" help:"Lay one layer's operations side by side under several schemes: places, bytes, memory."`
	Memory    memoryCmd    `cmd:"" help:"What a rank's memory is for over one training step, as numbers and as a picture."`
	Verify    verifyCmd    `cmd:"" help:"Peers' answers (golden folders) beside those of any layout."`
	Export    exportCmd    `cmd:"" help:"Write a run's model, a folder or a GGUF file as a Hugging Face folder."`
	Tile      tileCmd      `cmd:"" help:"Layouts, swizzles, schedules and what fits on a chip: the workbench."`
	Kernels   kernelsCmd   `cmd:"" help:"Hopper kernels: list, print, emulate, assemble."`
	Gemm      gemmCmd      `cmd:"" help:"Hopper GEMMs against cuBLAS."`
	Launch    launchCmd    `cmd:"" help:"The launch lab: host time, gaps and chains under every way of launching."`
	Trace     traceCmd     `cmd:"" help:"Timelines from Nsight, PyTorch, JAX or heddle."`
	RL        rlCmd        `cmd:"" name:"rl" help:"Reinforce a model on tasks that a program can check; study its rollouts."`
	Tokenizer tokenizerCmd `cmd:"" help:"Learn a tokenizer, turn text into ids and back."`
	Doctor    doctorCmd    `cmd:"" help:"What this machine has for heddle, and what follows."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

type versionCmd struct{}

func (versionCmd) Run(env *cli.Env) error {
	return env.Emit(map[string]string{"version": version}, func(w io.Writer) { fmt.Fprintln(w, "heddle", version) })
}

const version = "0.1.0"

func main() {
	// Caught, a closed pipe is an error of the write (run makes it none) and does not end a training whose talk nobody reads any more.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(untilSignal(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// untilSignal is a context that the first interrupt or termination ends, which asks the verb to finish and save. After it nobody catches them any more: a
// second one ends the process at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-asked
		signal.Stop(asked)
		cancel(cli.Signaled(s.(syscall.Signal)))
	}()
	return ctx
}

// run is the whole command: tests call it with their own streams.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) (code int) {
	env := &cli.Env{In: in, Out: out, Err: errw}
	for _, a := range args { // also when the command line itself is wrong
		if a == "--" {
			break
		}
		env.JSON = env.JSON || a == "--json"
	}
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("heddle"),
		kong.Description("Trains and reinforces transformers, from the swizzled tile up to the policy gradient."),
		kong.Writers(out, errw), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(env))
	if err != nil {
		return env.Report(err)
	}
	k, err := parser.Parse(overridesFirst(args))
	if exited >= 0 { // --help has printed and is done
		return exited
	}
	if errors.Is(err, syscall.EPIPE) { // of help
		return cli.OK
	}
	if err != nil {
		return env.Report(&cli.Error{Code: cli.Usage, Err: err, Hint: helpFor(err)})
	}
	env.JSON = c.JSON
	env.Terminal = isTerminal(errw)
	env.Color = c.Color == "always" || c.Color == "auto" && os.Getenv("NO_COLOR") == "" && isTerminal(out)
	err = k.Run()
	if errors.Is(err, syscall.EPIPE) {
		return cli.OK // a closed pipe is the reader's choice
	}
	return env.Report(err)
}

// helpFor is the help of the verb that was understood so far.
func helpFor(err error) string {
	if p, ok := errors.AsType[*kong.ParseError](err); ok && p.Context != nil && p.Context.Selected() != nil {
		return p.Context.Selected().FullPath() + " --help"
	}
	return "heddle --help"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && cli.IsTerminal(f)
}
