package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"heddle/internal/cli"
	"heddle/report"
	"heddle/trace/analyze"
)

type traceCmd struct {
	Bubbles traceBubblesCmd `cmd:"" help:"Where the device waits, and why."`
	Convert traceConvertCmd `cmd:"" help:"Rewrite timelines for ui.perfetto.dev."`
}

type traceBubblesCmd struct {
	Files  []string `arg:"" name:"file" help:"Nsight Systems SQLite export, PyTorch or JAX trace (.json, .json.gz), or heddle's trace.json. One file a rank." `
	MinGap float64  `name:"min-gap-us" help:"List no gaps shorter than this. Totals count all."`
	Max    int      `name:"max-gaps" default:"100000" help:"List no more gaps than this a device, the longest. 0 lists all."`
	Top    int      `default:"5" help:"How many gaps, kernel pairs and steps to print a device."`
	HTML   string   `name:"html" placeholder:"OUT" help:"Also write a page with a timeline to zoom into."`
}

func (traceBubblesCmd) Help() string {
	return `Examples:
  heddle trace bubbles trace.json.gz
  heddle trace bubbles --json rank0.sqlite rank1.sqlite`
}

func (c *traceBubblesCmd) Run(env *cli.Env) error {
	if c.MinGap < 0 || c.Top < 0 || c.Max < 0 {
		return cli.Exitf(cli.Usage, "trace: --min-gap-us %g --top %d --max-gaps %d: none may be negative", c.MinGap, c.Top, c.Max)
	}
	debug.SetGCPercent(40) // large files: memory matters more than the few percent of time
	timelines, failed, err := openTimelines(env, c.Files)
	if err != nil {
		return err
	}
	r := analyze.Bubbles(timelines, analyze.Options{MinGap: int64(c.MinGap * 1000), MaxGaps: c.Max})
	r.Warnings = append(failed, r.Warnings...) // failed is never nil: it prints as a list
	for _, w := range r.Warnings {
		fmt.Fprintln(env.Err, "heddle: warning:", w)
	}
	if c.HTML != "" {
		if err := writeFile(c.HTML, func(w io.Writer) error { return report.BubbleHTML(w, r, timelines) }); err != nil {
			return err
		}
	}
	return env.Emit(r, func(w io.Writer) { report.BubbleText{Top: c.Top, Color: env.Color}.Write(w, r) })
}

type traceConvertCmd struct {
	Files  []string `arg:"" name:"file" help:"Timelines as for bubbles. One file a rank."`
	Output string   `short:"o" required:"" placeholder:"OUT" help:"The file to write."`
	Format string   `enum:"chrome,perfetto" default:"chrome" help:"chrome (JSON, which heddle reads back) or perfetto (protobuf, smaller)."`
}

func (traceConvertCmd) Help() string {
	return `Examples:
  heddle trace convert -o trace.json report.sqlite
  heddle trace convert --format perfetto -o all.pftrace rank0.json.gz rank1.json.gz`
}

func (c *traceConvertCmd) Run(env *cli.Env) error {
	timelines, failed, err := openTimelines(env, c.Files)
	if err != nil {
		return err
	}
	for _, t := range timelines {
		for _, w := range t.Warnings {
			failed = append(failed, t.Source+": "+w)
		}
	}
	for _, w := range failed {
		fmt.Fprintln(env.Err, "heddle: warning:", w)
	}
	write := analyze.WriteChrome
	if c.Format == "perfetto" {
		write = analyze.WritePerfetto
	}
	events := 0
	err = writeFile(c.Output, func(w io.Writer) (err error) {
		events, err = write(w, timelines)
		return err
	})
	if err != nil {
		return err
	}
	result := struct {
		Output   string   `json:"output"`
		Events   int      `json:"events"`
		Warnings []string `json:"warnings"`
	}{c.Output, events, failed}
	return env.Emit(result, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d events; open it in https://ui.perfetto.dev\n", c.Output, events)
	})
}

// openTimelines opens all files. What cannot be opened is a warning, unless nothing can.
func openTimelines(env *cli.Env, files []string) (all []*analyze.Timeline, failed []string, err error) {
	failed = []string{}
	for _, name := range files {
		t, e := analyze.Open(name, progress(env, name))
		if e != nil {
			failed, err = append(failed, e.Error()), e
			continue
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, nil, cli.Exit(cli.Invalid, err)
	}
	return all, failed, nil
}

// progress draws a line on a terminal: how much of the file, how fast, how long still.
func progress(env *cli.Env, name string) func(read, size int64) {
	if !env.Terminal {
		return nil
	}
	began := time.Now()
	return func(read, size int64) {
		if read >= size {
			fmt.Fprintf(env.Err, "\r%78s\r", "")
			return
		}
		took := time.Since(began).Seconds()
		rate := float64(read) / took
		fmt.Fprintf(env.Err, "\r%-40.40s %3d %%  %5.0f MB/s  %4.0f s left ", name, read*100/size, rate/1e6, float64(size-read)/rate)
	}
}

// writeFile writes to a temporary name first, so that a file under its name is whole.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
