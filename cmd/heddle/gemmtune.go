package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"heddle/bench"
	"heddle/internal/cli"
	"heddle/kernel/gemm"
)

type gemmTuneCmd struct {
	Configs   []string      `help:"Configurations, such as 128x256x64-w2-c2x1-s4-g8; @FILE reads one a line." placeholder:"NAME"`
	CuBLAS    string        `name:"cublas" help:"Folder of libcublas; looked for where it is not given." placeholder:"DIR"`
	Sizes     []int         `help:"Squares for single launches."`
	Shapes    string        `help:"Products of this list, such as bench/shapes.json, each on every configuration in its layout." placeholder:"FILE"`
	Match     string        `help:"Of the list only products whose names this regular expression finds." placeholder:"REGEXP"`
	Sustained []int         `help:"Squares for blocks back to back, with joules."`
	Graphs    []int         `help:"Squares for 200 launches in one graph."`
	Pairs     int           `default:"9" help:"Rounds of single launches."`
	Rounds    int           `default:"2" help:"Rounds of sustained blocks."`
	Idle      time.Duration `default:"20ms" help:"Rest before each single launch."`
	Block     time.Duration `default:"1200ms" help:"Length of a sustained block."`
	Device    int           `default:"0" help:"Which GPU."`
	Out       string        `required:"" help:"Write all raw samples as JSON to this file; a file that is there is continued." placeholder:"FILE"`
	Limit     time.Duration `default:"4m" help:"End the search after this long."`
	Stall     time.Duration `default:"25s" help:"Give up on a kernel after this long in silence."`
}

func (gemmTuneCmd) Help() string {
	return `Examples:
  heddle gemm tune --sizes 4096,8192 --out tune.json
  heddle gemm tune --graphs 512,1024 --configs 64x128x64-w1-c2x1-s4-g4 --out small.json

Every configuration is checked at every size before it is timed, in turn with cuBLAS. One that is wrong, hangs or crashes is set down as failed, and the search goes on without it.`
}

// Run watches a child that measures. A kernel that hangs or faults takes the child down; the journal names it, and the next child leaves it out.
func (c *gemmTuneCmd) Run(ctx context.Context, env *cli.Env) error {
	configs, err := c.configs()
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	if os.Getenv(childMark) != "" {
		return c.measure(ctx, env, configs)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	journal := c.Out + ".journal"
	const restarts = 8
	for range restarts {
		err := supervise(ctx, env, c.Limit, c.Stall, nil)
		trying, e := lastLine(journal) // a kernel's name has a blank, "timing" has not
		if e != nil || err == nil || ctx.Err() != nil || !strings.Contains(trying, " ") {
			return errors.Join(err, e)
		}
		fmt.Fprintf(env.Err, "heddle: gemm tune: the process ended while it tried %s; going on without it\n", trying)
		if err := appendLine(c.Out+".failed", trying); err != nil {
			return err
		}
	}
	return cli.Exitf(cli.Failed, "gemm tune: %d kernels in a row took their process down", restarts)
}

func (c *gemmTuneCmd) configs() ([]gemm.Config, error) {
	all, err := configsNamed(c.Configs)
	if err == nil && len(all) == 0 {
		all = gemm.Candidates(len(c.Sizes)+len(c.Sustained) == 0)
	}
	return all, err
}

// configsNamed reads configurations from words, or from a file that a word names.
func configsNamed(words []string) ([]gemm.Config, error) {
	var all []gemm.Config
	for _, word := range words {
		names := []string{word}
		if file, ok := strings.CutPrefix(word, "@"); ok {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			names = strings.Fields(string(b))
		}
		for _, n := range names {
			g, err := gemm.ParseConfig(n)
			if err != nil {
				return nil, err
			}
			all = append(all, g)
		}
	}
	return all, nil
}

func (c *gemmTuneCmd) measure(ctx context.Context, env *cli.Env, configs []gemm.Config) error {
	skip, err := readLines(c.Out + ".failed")
	if err != nil {
		return err
	}
	before := new(bench.Result)
	if r, err := bench.Read(c.Out); err == nil {
		before = r
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	journal := c.Out + ".journal"
	g := bench.GEMM{Configs: configs, Device: c.Device, CuBLAS: findCuBLAS(c.CuBLAS), Cache: cubinCache(), Command: "heddle " + strings.Join(os.Args[1:], " "),
		Sizes: c.Sizes, Sustained: c.Sustained, Graphs: c.Graphs, Pairs: c.Pairs, Rounds: c.Rounds, Launches: 200, Idle: c.Idle, Block: c.Block,
		Quick: true, Search: true, Skip: skip, Done: before.Rows,
		Progress: func(format string, args ...any) { fmt.Fprintf(env.Err, format+"\n", args...) },
		Try:      func(kernel string, n int) { _ = appendLine(journal, cmp.Or(kernel, "timing")) }, // without a journal a hang ends the search, no more
		Store:    func(r *bench.Result) error { return r.Write(c.Out) }}
	if c.Shapes != "" {
		if g.Shapes, err = c.shapes(); err != nil {
			return cli.Exit(cli.Invalid, err)
		}
	}
	r, err := g.Run(ctx)
	if err != nil {
		return absent(err)
	}
	all := r.Ranking()
	return env.Emit(map[string]any{"device": r.Device, "peer": r.Peer, "date": r.Date, "ranking": all}, func(w io.Writer) { bench.PrintRanking(w, all) })
}

// shapes are those of the list that match.
func (c *gemmTuneCmd) shapes() ([]bench.Shape, error) {
	all, err := bench.ReadShapes(c.Shapes)
	if err != nil || c.Match == "" {
		return all, err
	}
	match, err := regexp.Compile(c.Match)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s bench.Shape) bool { return !match.MatchString(s.Name) }), nil
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// readLines is the lines of a file as a set; a file that is not there has none.
func readLines(path string) (map[string]bool, error) {
	f, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	set := map[string]bool{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		set[s.Text()] = true
	}
	return set, s.Err()
}

func lastLine(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1], err
}
