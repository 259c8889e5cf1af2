package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"heddle/internal/cli"
	"heddle/parity"
	"heddle/tensor"
)

type walkCmd struct {
	Schemes []string `default:"megatron4,ulysses4" help:"Schemes to lay side by side, named as for compare."`
	Model   string   `default:"tiny" help:"tiny, or a transformers folder or config.json of a Qwen3."`
	Seq     int      `default:"32" help:"Tokens of a sequence."`
	Batch   int      `default:"4" help:"Sequences of the global batch."`
	DType   string   `name:"dtype" enum:"f32,f64" default:"f32" help:"Type of weights and activations: f32 or f64."`
}

func (walkCmd) Help() string {
	return `heddle walk --schemes megatron4,ulysses4
    one layer under both: where the residual stream is cut, what is sent, what is held
heddle walk --schemes single,tp2,fsdp2-megatron2 --model ./Qwen3-0.6B --seq 4096
    of another model; nothing is computed, so that it need not fit here

Lines are operations in the order in which rank 0's program issues them, rendered from its dry call log.`
}

func (c *walkCmd) Run(env *cli.Env) error {
	cfg, err := modelOf(c.Model)
	if err != nil {
		return err
	}
	schemes, err := parity.Schemes(c.Schemes, cfg, c.Batch, c.Seq)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	t := tensor.F32
	if c.DType == "f64" {
		t = tensor.F64
	}
	w, err := parity.Walk(parity.NewInput(cfg, c.Batch, c.Seq, 1, 1), schemes, t)
	if err != nil {
		return err
	}
	return env.Emit(w, func(out io.Writer) { printWalk(out, w) })
}

const walkLegend = `Places: S(x) cut along dim x; R every rank has the same value and a part of its gradient;
I same value, same gradient; P partial, the value is the sum over ranks. S(gr): by g, then by r.
Of several axes (@), those not named are R.
Letters: b batch, s sequence, h hidden, g key/value heads, r query heads of one, d head, f MLP.
Bytes: received by rank 0. Held: memory of rank 0, weights included, when the line starts.
Copies that pack and unpack a collective's data are not shown.
`

// printWalk is one line an operation, and beside it, for each scheme, places before → after, bytes received, memory held.
func printWalk(w io.Writer, x *parity.Walkthrough) {
	m := x.Model
	fmt.Fprintf(w, "One layer of L %d, H %d, A %d, G %d, D %d, F %d; batch %d × %d tokens; %s\n\n%s", m.Layers, m.Hidden, m.Heads, m.KV, m.Head, m.MLP, x.Batch, x.Seq, x.DType, walkLegend)
	u := walkUnit(x)
	left, wide := 0, make([]int, len(x.Schemes))
	for _, l := range x.Lines {
		left = max(left, utf8.RuneCountInString(what(l)))
		for i, c := range l.Cells {
			wide[i] = max(wide[i], utf8.RuneCountInString(change(l, c)), len(x.Schemes[i]))
		}
	}
	phase := ""
	for _, l := range x.Lines {
		if l.Phase != phase {
			phase = l.Phase
			head := "\n" + pad(strings.ToUpper(phase), left)
			for i, s := range x.Schemes {
				head += " │ " + pad(s, wide[i]) + fmt.Sprintf(" %7s %7s", "bytes", "held")
			}
			fmt.Fprintln(w, strings.TrimRight(head, " "))
		}
		row := pad(what(l), left)
		for i, c := range l.Cells {
			row += " │ " + pad(change(l, c), wide[i]) + numbers(c, u)
		}
		fmt.Fprintln(w, strings.TrimRight(row, " "))
	}
	fmt.Fprintf(w, "\nIn %s. Of the layer:\n", u.name)
	for i, t := range x.Totals {
		fmt.Fprintf(w, "  %-20s %2d collectives, %.1f received, %.1f held at most\n", x.Schemes[i], t.Calls, u.of(t.Bytes), u.of(int64(t.Peak)))
	}
}

// walkUnit keeps the largest number under five digits.
func walkUnit(x *parity.Walkthrough) unit {
	top := 0
	for _, t := range x.Totals {
		top = max(top, t.Peak)
	}
	return unitFor(int64(top))
}

// what is a line's operation, or where in the program a collective stands, and its letters.
func what(l parity.Line) string { return fmt.Sprintf("%-21s ", l.Name) + squeeze(l.Letters) }

// squeeze drops operands that repeat the one before: attention's do, q, k, v are "bsgrd·bsgd".
func squeeze(letters string) string {
	in, out, _ := strings.Cut(letters, " → ")
	var kept []string
	for a := range strings.SplitSeq(in, "·") {
		if len(kept) == 0 || kept[len(kept)-1] != a {
			kept = append(kept, a)
		}
	}
	return strings.TrimLeft(strings.Join(kept, "·")+" → "+out, " ")
}

// change is the places before → after, with the collective's name where the line is one.
func change(l parity.Line, c *parity.Cell) string {
	if c == nil {
		return "·"
	}
	in, _, _ := strings.Cut(l.Letters, " → ")
	var before []string
	last := ""
	for i, a := range strings.Split(in, "·") {
		if i < len(c.Before) && (a != last || before[len(before)-1] != c.Before[i]) {
			before = append(before, c.Before[i])
		}
		last = a
	}
	s := strings.TrimLeft(strings.Join(before, "·")+" → "+c.After, " ")
	if c.After == "whole" { // one rank
		s = "whole"
	}
	if c.Axes != "" {
		return c.Op + " " + s
	}
	return s
}

func numbers(c *parity.Cell, u unit) string {
	switch {
	case c == nil:
		return strings.Repeat(" ", 16)
	case c.Axes == "":
		return fmt.Sprintf(" %7s %7.1f", "", u.of(int64(c.Held)))
	}
	return fmt.Sprintf(" %7.1f %7.1f", u.of(c.Bytes), u.of(int64(c.Held)))
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s))) }
