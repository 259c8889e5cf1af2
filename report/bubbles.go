// Package report turns results into what people look at: tables on a terminal, pages in a browser. It reads data,
// computes nothing, and imports no engine.
package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"heddle/trace/analyze"
)

// BubbleText says how a report of bubbles is printed.
type BubbleText struct {
	Top   int // gaps, pairs and steps listed a device
	Color bool
}

const width = 80

// Write prints the report, no line longer than 80 columns.
func (b BubbleText) Write(w io.Writer, r *analyze.Report) {
	for _, f := range r.Files {
		fmt.Fprintf(w, "%s\n  %s\n", fit(f.File, width), fit(fmt.Sprintf("%s, %s%s", f.Format, count(f.Events, "event"), dropped(f.Dropped)), width-2))
	}
	for i := range r.Devices {
		b.device(w, &r.Devices[i], len(r.Devices) > 1)
	}
	if r.Ranks != nil {
		ranks(w, r.Ranks)
	}
	if len(r.Advice) > 0 {
		fmt.Fprintln(w, b.bold("\nAt stake, and what helps"))
		for _, a := range r.Advice {
			fmt.Fprintf(w, "%11s  %s %s\n", duration(a.US), b.paint(a.Cause, fmt.Sprintf("%-13s", a.Cause)), a.Text)
		}
	}
}

// count is a number of things, in the singular for one.
func count[N int | int64](n N, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "copy or fill":
		what = "copies and fills"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func dropped(d map[string]int64) string {
	n := int64(0)
	for _, k := range d {
		n += k
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d not usable", n)
}

func (b BubbleText) device(w io.Writer, d *analyze.Device, several bool) {
	title := fmt.Sprintf("\nDevice %d", d.Device)
	if d.Name != "" {
		title += "  " + d.Name
	}
	if d.Rank != nil && several {
		title += fmt.Sprintf("  rank %d", *d.Rank)
	}
	fmt.Fprintln(w, b.bold(title))
	fmt.Fprintf(w, "  span %s, busy %s (%s), idle %s in %s\n", duration(d.SpanUS), duration(d.BusyUS), percent(d.BusyUS, d.SpanUS), duration(d.IdleUS), count(d.GapCount, "gap"))
	fmt.Fprintf(w, "  %s on %s, launched %s ahead (median), %d unlinked\n", count(d.Kernels, "kernel"), count(d.Streams, "stream"), duration(d.DelayUS), d.Unlinked)
	if d.StartupUS > 0 || d.TailUS > 0 {
		fmt.Fprintf(w, "  the host was recorded from %s before to %s after that\n", duration(d.StartupUS), duration(d.TailUS))
	}
	if d.Copies > 0 {
		fmt.Fprintf(w, "  %s, %s\n", count(d.Copies, "copy or fill"), duration(d.CopyUS))
	}
	if d.Comm > 0 {
		fmt.Fprintf(w, "  %s, %s, %s of it beside other kernels\n", count(d.Comm, "communication kernel"), duration(d.CommUS), percent(d.OverlapUS, d.CommUS))
	}
	if len(d.Causes) > 0 {
		fmt.Fprintf(w, "\n  %-15s %7s %12s %7s\n", "cause", "gaps", "time", "of span")
		for _, c := range d.Causes {
			bar := strings.Repeat("█", int(c.US/d.SpanUS*20+0.5))
			if c.Busy {
				bar = strings.TrimLeft(bar+" alone, not idle", " ")
			}
			if bar != "" {
				bar = " " + bar
			}
			fmt.Fprintf(w, "  %s %7d %12s %7s%s\n", b.paint(analyze.Cause(c.Cause), fmt.Sprintf("%-15s", c.Cause)), c.Count, duration(c.US), percent(c.US, d.SpanUS), bar)
		}
	}
	b.gaps(w, "longest gaps", d.Gaps)
	b.gaps(w, "communication alone", d.Exposed)
	b.pairs(w, d.Pairs)
	b.steps(w, d.Steps)
}

func (b BubbleText) gaps(w io.Writer, title string, gaps []analyze.Gap) {
	if len(gaps) == 0 || b.Top == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s\n", b.bold(fmt.Sprintf("%-22s at %12s", title, "takes")))
	for _, g := range gaps[:min(b.Top, len(gaps))] {
		line := fmt.Sprintf("  %22s %15s", "+"+duration(g.StartUS), duration(g.DurUS))
		fmt.Fprintf(w, "%s  %s", line, b.paint(g.Cause, string(g.Cause)))
		if g.Step != "" {
			fmt.Fprintf(w, "  %s", fit(g.Step, width-utf8.RuneCountInString(line)-len(g.Cause)-4))
		}
		fmt.Fprintln(w)
		fmt.Fprintf(w, "      %s\n", fit(analyze.Short(g.Before), 34)+" → "+fit(analyze.Short(g.After), 34))
		for _, l := range wrap(g.Evidence, width-6) {
			fmt.Fprintf(w, "      %s\n", b.dim(l))
		}
	}
}

func (b BubbleText) pairs(w io.Writer, pairs []analyze.Pair) {
	if len(pairs) == 0 || b.Top == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s\n", b.bold("kernel pairs with the most time between them"))
	for _, p := range pairs[:min(b.Top, len(pairs))] {
		fmt.Fprintf(w, "  %12s %6d×  %s\n", duration(p.US), p.Count, b.paint(p.Cause, string(p.Cause)))
		fmt.Fprintf(w, "      %s\n", fit(analyze.Short(p.Before), 34)+" → "+fit(analyze.Short(p.After), 34))
	}
}

func (b BubbleText) steps(w io.Writer, steps []analyze.Total) {
	if len(steps) == 0 || b.Top == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s\n", b.bold("idle by step"))
	for _, s := range steps[:min(b.Top, len(steps))] {
		fmt.Fprintf(w, "  %12s %10s  %s\n", duration(s.US), count(s.Count, "gap"), fit(s.Step, 50))
	}
}

func ranks(w io.Writer, r *analyze.Ranks) {
	fmt.Fprintf(w, "\nAcross ranks: %s matched, %s not\n", count(r.Collectives, "collective"), count(r.Unmatched, "kernel"))
	if r.Straggler >= 0 {
		s := r.Ranks[r.Straggler]
		fmt.Fprintf(w, "  straggler: %s, last in %d; the others waited %s for it\n", s.Label, s.Last, duration(s.CausedUS))
	}
	fmt.Fprintf(w, "  %-16s %14s %16s %6s %14s\n", "rank", "waited", "made wait", "last", "clock")
	for _, k := range r.Ranks {
		fmt.Fprintf(w, "  %-16s %14s %16s %6d %14s\n", fit(k.Label, 16), duration(k.WaitUS), duration(k.CausedUS), k.Last, duration(k.ClockUS))
	}
	for _, x := range r.Waits[:min(6, len(r.Waits))] {
		fmt.Fprintf(w, "  %s waited %s for %s, %d×\n", fit(r.Ranks[x.Rank].Label, 16), duration(x.US), fit(r.Ranks[x.For].Label, 16), x.Count)
	}
}

// duration prints µs with a unit that leaves three to six digits.
func duration(us float64) string {
	switch {
	case us < 0:
		return "-" + duration(-us)
	case us < 1000:
		return fmt.Sprintf("%.1f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.3f ms", us/1e3)
	}
	return fmt.Sprintf("%.3f s", us/1e6)
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// fit shortens s to n columns, leaving out its middle: both ends of a kernel's name tell kernels apart.
func fit(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n < 3 {
		return ""
	}
	head := (n - 1) * 2 / 3
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// wrap breaks s at spaces.
func wrap(s string, n int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		word = fit(word, n)
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func (b BubbleText) escape(code, s string) string {
	if !b.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (b BubbleText) bold(s string) string { return b.escape("1", s) }
func (b BubbleText) dim(s string) string  { return b.escape("2", s) }

// paint colours a text by cause: red for what the host does, yellow for what streams do, green for what is normal.
func (b BubbleText) paint(c analyze.Cause, s string) string {
	switch c {
	case analyze.CauseHost, analyze.CauseSync, analyze.CauseLaunch:
		return b.escape("31", s)
	case analyze.CauseCopy, analyze.CauseComm, analyze.CauseDependency:
		return b.escape("33", s)
	case analyze.CauseLaunchGap:
		return b.escape("32", s)
	}
	return b.escape("36", s)
}
