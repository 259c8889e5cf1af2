package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
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
	Jobs     int           `default:"0" help:"Processes at the same time; compiling takes the time. 0: one for each core, up to 16."`
	Limit    time.Duration `default:"9m" help:"Stop after this long."`
	Stall    time.Duration `default:"30s" help:"Give a program up that is silent for this long."`
	Part     string        `hidden:"" help:"Run this part alone, as a child."`
	From     int           `hidden:"" help:"First program of the part."`
	To       int           `hidden:"" help:"One past the last."`
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
	if c.Programs < 1 || c.Jobs < 0 {
		return cli.Exitf(cli.Usage, "kernels: %d programs in %d jobs, want at least 1 program and no negative number of jobs", c.Programs, c.Jobs)
	}
	if !c.Alone {
		if _, err := cuda.Open(""); err != nil {
			return absent(err)
		}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	t, err := c.all(ctx, env, suite)
	if err != nil {
		return err
	}
	if c.Record != "" {
		if err := atomicfile.Write(atomicfile.OS{}, c.Record, func(w io.Writer) error { return writeRecords(w, t.sorted()) }); err != nil {
			return err
		}
	}
	result := map[string]any{"parts": t.parts, "programs": t.programs, "differ": t.differ, "complete": ctx.Err() == nil, "seconds": time.Since(start).Seconds()}
	err = env.Emit(result, func(w io.Writer) {
		for _, p := range t.parts {
			fmt.Fprintf(w, "%-9s %6d programs, %d differ\n", p.Part, p.Programs, p.Differ)
			for _, d := range p.First {
				fmt.Fprintln(w, "   ", d)
			}
		}
	})
	switch {
	case err != nil:
		return err
	case t.differ > 0:
		return cli.Exitf(cli.Check, "kernels: %d of %d programs differ", t.differ, t.programs)
	case ctx.Err() != nil:
		return cli.Exitf(cli.Failed, "kernels: conform ran past its limit of %v", c.Limit)
	}
	return nil
}

// conformTally is what has been answered so far, by children that run at the same time.
type conformTally struct {
	sync.Mutex
	parts            []*conformPart
	programs, differ int
	answers          []conform.Record
}

// count adds an outcome; an answer can be recorded where it is exact and the program random.
func (t *conformTally) count(p *conformPart, first int64, o conform.Outcome) {
	t.Lock()
	defer t.Unlock()
	t.programs++
	if o.Error != "" {
		t.differ++
	}
	p.count(o)
	if o.Sum != "" && slices.Contains(conform.Families(), p.Part) {
		t.answers = append(t.answers, conform.Record{Family: p.Part, Seed: first + int64(o.Index), Sum: o.Sum})
	}
}

// sorted is the answers by family and seed.
func (t *conformTally) sorted() []conform.Record {
	place := func(r conform.Record) int { return slices.Index(conform.Families(), r.Family) }
	slices.SortFunc(t.answers, func(a, b conform.Record) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Seed, b.Seed))
	})
	return t.answers
}

// conformSpan is programs from … to−1 of a part: the work of one child.
type conformSpan struct {
	part     *conformPart
	from, to int
}

// all runs every program of the suite, a span at a time in each of so many jobs.
func (c *kernelsConformCmd) all(ctx context.Context, env *cli.Env, suite conform.Suite) (*conformTally, error) {
	jobs := c.Jobs
	if jobs == 0 {
		jobs = min(runtime.NumCPU(), 16)
	}
	t := &conformTally{answers: []conform.Record{}}
	var spans []conformSpan
	for _, part := range suite.Parts() {
		p := &conformPart{Part: part.Name, First: []string{}}
		t.parts = append(t.parts, p)
		each := (part.Count/jobs/conform.Together + 1) * conform.Together
		for from := 0; from < part.Count; from += each {
			spans = append(spans, conformSpan{p, from, min(from+each, part.Count)})
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan conformSpan)
	var wait sync.WaitGroup
	for range jobs {
		wait.Go(func() {
			for s := range work {
				if err := c.span(ctx, env, suite, s, t); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, s := range spans {
		work <- s
	}
	close(work)
	wait.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return t, nil
}

// span runs its programs, in a new child behind each one that is lost. The error is that of a run in which not one program has answered.
func (c *kernelsConformCmd) span(ctx context.Context, env *cli.Env, suite conform.Suite, s conformSpan, t *conformTally) error {
	for next := s.from; next < s.to && ctx.Err() == nil; {
		from := next
		err := c.part(ctx, env, suite, s.part.Part, from, s.to, func(o conform.Outcome) {
			t.count(s.part, c.First, o)
			next = o.Index + 1
		})
		if err == nil || next == s.to || ctx.Err() != nil {
			continue
		}
		t.Lock()
		none := t.programs == 0
		t.Unlock()
		if none {
			return err
		}
		t.count(s.part, c.First, conform.Outcome{Index: next, Error: fmt.Sprintf("%s %d: %v", s.part.Part, next, err)}) // the child ended inside this program
		next++
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

// part runs programs from … to−1 of a part until one is lost: in this process on the emulator alone, else in a child that owns a GPU context.
func (c *kernelsConformCmd) part(ctx context.Context, env *cli.Env, s conform.Suite, part string, from, to int, each func(conform.Outcome)) error {
	if c.Alone {
		return s.Run(part, from, to, emulate.Emulator{Seed: 7, Async: emulate.Late}, emulate.Emulator{}, each)
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
	err = watch(ctx, &cli.Env{In: env.In, Out: in, Err: env.Err}, c.Limit, c.Stall, self, "kernels", "conform", "--part", part, "--from", strconv.Itoa(from), "--to", strconv.Itoa(to),
		"--programs", strconv.Itoa(c.Programs), "--first", strconv.FormatInt(c.First, 10), "--device", strconv.Itoa(c.Device))
	in.Close()
	<-done
	return err
}

// child runs its part on a GPU and prints an outcome a line.
func (c *kernelsConformCmd) child(env *cli.Env, s conform.Suite) error {
	i := slices.IndexFunc(s.Parts(), func(p conform.Part) bool { return p.Name == c.Part })
	if i < 0 || c.From < 0 || c.To > s.Parts()[i].Count {
		return cli.Exitf(cli.Usage, "kernels: conform has no part %q with programs %d … %d", c.Part, c.From, c.To-1)
	}
	_, run, err := openRunner(c.Device)
	if err != nil {
		return absent(err)
	}
	enc := json.NewEncoder(env.Out)
	return s.Run(c.Part, c.From, c.To, run, emulate.Emulator{}, func(o conform.Outcome) { enc.Encode(o) })
}
