package main

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"heddle/comm"
	"heddle/internal/cli"
	"heddle/train"
)

// trainPrinter is the subscriber that talks to people while a run goes on.
type trainPrinter struct {
	env    *cli.Env
	start  time.Time // of the run, then of training
	total  int
	first  int   // steps done before this process
	before int64 // tokens seen before it
	shown  time.Time
	open   bool // the last line has no newline yet
}

func (p *trainPrinter) talk(format string, args ...any) {
	p.end()
	fmt.Fprintf(p.env.Err, format, args...)
}

func (p *trainPrinter) begin() { p.start = time.Now() }

func (p *trainPrinter) end() {
	if p.open {
		fmt.Fprintln(p.env.Err)
		p.open = false
	}
}

// event shows a step on one redrawn line of a terminal, elsewhere every ten seconds.
func (p *trainPrinter) event(e train.Event) {
	switch {
	case e.Talk != "":
		p.talk("%s\n", e.Talk)
	case e.Eval != nil:
		p.talk("step %d  held-out loss %.4f nats a token, %.4f bits per byte (%d bytes)\n", e.Eval.Step, e.Eval.Loss, e.Eval.BitsPerByte, e.Eval.Bytes)
	case e.Step != nil:
		every := 10 * time.Second
		if p.env.Terminal {
			every = 100 * time.Millisecond
		}
		if s := e.Step; time.Since(p.shown) >= every || s.Step == p.total {
			p.shown = time.Now()
			p.step(s)
		}
	}
}

func (p *trainPrinter) step(s *train.Metrics) {
	took := time.Since(p.start)
	left := time.Duration(float64(took) / float64(s.Step-p.first) * float64(p.total-s.Step))
	text := fmt.Sprintf("step %d/%d  loss %.4f  grad norm %.3f  lr %.2e  %s tok/s  %s left", s.Step, p.total, s.Loss, s.GradNorm, s.LR,
		thousands(int64(float64(s.Tokens-p.before)/took.Seconds())), left.Round(time.Second))
	if p.env.Terminal {
		fmt.Fprintf(p.env.Err, "\r\x1b[K%s", text)
		p.open = true
		return
	}
	fmt.Fprintln(p.env.Err, text)
}

// trainSummary is what heddle train prints under --json.
type trainSummary struct {
	Steps       int            `json:"steps"`
	Tokens      int64          `json:"tokens"`
	TrainLoss   *float64       `json:"train_loss"` // mean of the last tenth of this process's steps, nats a token; null where there were none
	ValLoss     *float64       `json:"val_loss"`
	ValBPB      *float64       `json:"val_bits_per_byte"`
	ValBytes    int64          `json:"val_bytes"`
	TokensPerS  float64        `json:"tokens_per_s"`
	Collectives []comm.Summary `json:"collectives"`
	Memory      train.Memory   `json:"memory"`
	Read        string         `json:"read"`
	Packed      string         `json:"packed"`
	RunDir      string         `json:"run_dir"`
	Stopped     bool           `json:"stopped"`
}

func summary(j *train.Job, r *train.Result, dir string) trainSummary {
	s := trainSummary{Steps: r.Steps, Tokens: r.Tokens, TokensPerS: r.Rate(), Collectives: r.Collectives, Memory: r.Memory,
		Read: strings.TrimSpace(j.Corpus.Summary().String()), Packed: strings.TrimSpace(j.Loader.Packed().String()), RunDir: dir, Stopped: r.Stopped}
	if n := len(r.Train); n > 0 {
		mean := 0.0
		tail := r.Train[n-(n+9)/10:]
		for _, m := range tail {
			mean += m.Loss / float64(len(tail))
		}
		s.TrainLoss = &mean
	}
	if !r.Stopped {
		s.ValLoss, s.ValBPB, s.ValBytes = &r.Eval.Loss, &r.Eval.BitsPerByte, r.Eval.Bytes
	}
	return s
}

func printSummary(w io.Writer, s trainSummary, j *train.Job, r *train.Result) {
	fmt.Fprintf(w, "\n%s\n%s\n", s.Read, s.Packed)
	fmt.Fprintf(w, "\ntrained %d steps on %s tokens at %s tok/s", s.Steps, thousands(s.Tokens), thousands(int64(s.TokensPerS)))
	if s.TrainLoss != nil {
		fmt.Fprintf(w, "; loss %.4f nats a token (mean of the last tenth)", *s.TrainLoss)
	}
	fmt.Fprintln(w)
	if s.ValLoss != nil {
		fmt.Fprintf(w, "held out: %.4f nats a token, %.4f bits per byte of %s bytes\n", *s.ValLoss, *s.ValBPB, thousands(s.ValBytes))
	}
	fmt.Fprintf(w, "\ncollectives after the first step (calls and bytes received: the rank with most;\ntimes from call to end)\n")
	fmt.Fprintf(w, "%-10s %-15s %-10s %7s %10s %8s %8s %9s %s\n", "axis", "op", "phase", "calls", "bytes", "p50 µs", "p95 µs", "max µs", "slowest")
	for _, c := range s.Collectives {
		fmt.Fprintf(w, "%-10s %-15s %-10s %7d %10s %8.0f %8.0f %9.0f rank %d\n", c.Axis, c.Op, c.Phase, c.Calls, size(c.Bytes), c.P50, c.P95, c.Max, c.SlowestRank)
	}
	fmt.Fprintln(w)
	printMemory(w, s.Memory)
	for _, t := range r.Samples {
		fmt.Fprintf(w, "\nsample\n%s\n", indent(t))
	}
	fmt.Fprintf(w, "\n%s: config.yaml env.json metrics.jsonl loss.svg model/ checkpoints/\ntrace.json (heddle trace bubbles, or ui.perfetto.dev)\n", s.RunDir)
}

func printMemory(w io.Writer, m train.Memory) {
	fmt.Fprintln(w, "memory of a rank (each line: the largest of all ranks, at its own moment)")
	for _, x := range []struct {
		name string
		v    int
	}{{"weights", m.Weights}, {"gradients", m.Gradients}, {"moments", m.Moments}, {"saved activations", m.Saved}, {"scratch", m.Scratch}, {"collectives' staging", m.Comm}, {"held between steps", m.Held}, {"peak", m.Peak}} {
		fmt.Fprintf(w, "  %-22s %10s\n", x.name, size(int64(x.v)))
	}
	var phases []string
	for k := range m.Phases {
		phases = append(phases, k)
	}
	sort.Strings(phases)
	for _, k := range phases {
		fmt.Fprintf(w, "  %-22s %10s\n", "peak in "+k, size(int64(m.Phases[k])))
	}
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.2f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// thousands groups digits: 12,345.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
