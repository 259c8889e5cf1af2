package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"heddle/cuda"
	"heddle/internal/atomicfile"
	"heddle/internal/cli"
	"heddle/ptx/conform"
	"heddle/ptx/emulate"
)

type kernelsConformCmd struct {
	Programs int           `default:"100" help:"Random programs of each family."`
	First    int64         `default:"1" help:"Seed of the first."`
	Device   int           `default:"0" help:"Which GPU."`
	Record   string        `help:"Write what was answered to the random programs to this file, one JSON object a line."`
	Alone    bool          `help:"Hold the emulator to the definitions and to itself only; no GPU."`
	Limit    time.Duration `default:"9m" help:"Stop after this long."`
	Stall    time.Duration `default:"30s" help:"Give a program up that is silent for this long."`
	Part     string        `hidden:"" help:"Run this part alone, as a child."`
	From     int           `hidden:"" help:"First program of the part."`
}

func (kernelsConformCmd) Help() string {
	return `heddle kernels conform --alone
    TMA copies and matrix products on the emulator against their definitions,
    random programs under two schedules
heddle kernels conform --programs 2000 --record ptx/conform/testdata/h200.jsonl --json
    the same programs on the GPU and on the emulator: bits equal, approximations
    within their ulps

A program that faults or hangs takes the process's GPU context with it; the rest goes on in a new process.`
}

type conformPart struct {
	Part     string   `json:"part"`
	Programs int      `json:"programs"`
	Differ   int      `json:"differ"`
	First    []string `json:"first_differences"` // up to five
}

func (p *conformPart) count(o conform.Outcome) {
	p.Programs++
	if o.Error == "" {
		return
	}
	p.Differ++
	if len(p.First) < 5 {
		p.First = append(p.First, o.Error)
	}
}

func (c *kernelsConformCmd) Run(ctx context.Context, env *cli.Env) error {
	suite := conform.Suite{Random: c.Programs, First: c.First}
	if c.Part != "" {
		return c.child(env, suite)
	}
	if !c.Alone {
		if _, err := cuda.Open(""); err != nil {
			return absent(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	var all []*conformPart
	answers, differ := []conform.Record{}, 0
	for _, part := range suite.Parts() {
		p := &conformPart{Part: part.Name, First: []string{}}
		for from := 0; from < part.Count && ctx.Err() == nil; {
			next := from
			err := c.part(ctx, env, suite, part, from, func(o conform.Outcome) {
				p.count(o)
				next = o.Index + 1
				if o.Sum != "" && part.Name != "copies" && part.Name != "products" {
					answers = append(answers, conform.Record{Family: part.Name, Seed: c.First + int64(o.Index), Sum: o.Sum})
				}
			})
			if err != nil && next == from && len(all) == 0 && from == 0 {
				return err // not even the first program ran
			}
			if err != nil && next < part.Count { // it ended inside this program
				p.count(conform.Outcome{Error: fmt.Sprintf("%s %d: %v", part.Name, next, err)})
				next++
			}
			from = next
		}
		differ += p.Differ
		all = append(all, p)
		fmt.Fprintf(env.Err, "%s: %d programs, %d differ\n", p.Part, p.Programs, p.Differ)
	}
	if c.Record != "" {
		if err := atomicfile.Write(atomicfile.OS{}, c.Record, func(w io.Writer) error { return writeRecords(w, answers) }); err != nil {
			return err
		}
	}
	err := env.Emit(map[string]any{"parts": all, "differ": differ, "complete": ctx.Err() == nil}, func(w io.Writer) {
		for _, p := range all {
			fmt.Fprintf(w, "%-9s %6d programs, %d differ\n", p.Part, p.Programs, p.Differ)
			for _, d := range p.First {
				fmt.Fprintln(w, "   ", d)
			}
		}
	})
	switch {
	case err != nil:
		return err
	case differ > 0:
		return cli.Exitf(cli.Check, "kernels: %d programs differ", differ)
	case ctx.Err() != nil:
		return cli.Exitf(cli.Failed, "kernels: conform ran past its limit of %v", c.Limit)
	}
	return nil
}

func writeRecords(w io.Writer, all []conform.Record) error {
	enc := json.NewEncoder(w)
	for _, r := range all {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// part runs programs of a part until one is lost: in this process on the emulator alone, else in a child that owns a GPU context.
func (c *kernelsConformCmd) part(ctx context.Context, env *cli.Env, s conform.Suite, part conform.Part, from int, each func(conform.Outcome)) error {
	if c.Alone {
		return s.Run(part, from, emulate.Emulator{Seed: 7, Async: emulate.Late}, emulate.Emulator{}, each)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() { // outcomes are counted while the child runs
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var o conform.Outcome
			if json.Unmarshal(lines.Bytes(), &o) == nil && o.Program != "" {
				each(o)
			}
		}
		io.Copy(io.Discard, out)
	}()
	err = watch(ctx, &cli.Env{In: env.In, Out: in, Err: env.Err}, c.Limit, c.Stall, self, "kernels", "conform", "--part", part.Name, "--from", strconv.Itoa(from),
		"--programs", strconv.Itoa(c.Programs), "--first", strconv.FormatInt(c.First, 10), "--device", strconv.Itoa(c.Device))
	in.Close()
	<-done
	return err
}

// child runs its part on a GPU and prints an outcome a line.
func (c *kernelsConformCmd) child(env *cli.Env, s conform.Suite) error {
	_, run, err := openRunner(c.Device)
	if err != nil {
		return absent(err)
	}
	enc := json.NewEncoder(env.Out)
	for _, part := range s.Parts() {
		if part.Name == c.Part {
			return s.Run(part, c.From, run, emulate.Emulator{}, func(o conform.Outcome) { enc.Encode(o) })
		}
	}
	return cli.Exitf(cli.Usage, "kernels: conform has no part %q", c.Part)
}
