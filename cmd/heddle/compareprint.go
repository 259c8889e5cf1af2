package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"heddle/parity"
	"heddle/parity/formula"
	"heddle/tensor"
)

// printComparison is compare's result for people, within 80 columns.
func printComparison(w io.Writer, c *parity.Comparison) {
	m := c.Model
	fmt.Fprintf(w, "L %d, H %d, A %d, G %d, D %d, F %d, V %d; batch %d × %d tokens; %s\n\n", m.Layers, m.Hidden, m.Heads, m.KV, m.Head, m.MLP, m.Vocab, c.Batch, c.Seq, c.DType)
	printSchemes(w, c)
	printReceived(w, c)
	if c.Noise > 0 {
		worst := 0.0
		for _, r := range c.Schemes {
			worst = max(worst, r.GradErr)
		}
		fmt.Fprintf(w, "\nfloat32 noise: one rank is %.1e from float64, the schemes at most %.1e\n", c.Noise, worst)
	}
	for _, x := range c.Crossings {
		printCrossing(w, c, x)
	}
}

func printSchemes(w io.Writer, c *parity.Comparison) {
	fmt.Fprintf(w, "%-20s %8s %8s %10s %9s %9s %8s\n", "", "gradient", "norm", "received", "saved", "peak", "step")
	u := unitOf(c)
	fmt.Fprintf(w, "%-20s %8s %8s %10s %9s %9s %8s\n", "scheme", "error", "ratio−1", u.name, u.name, u.name, "ms")
	loss := 0.0
	for i, r := range c.Schemes {
		under(w, c, i)
		err, ratio, step := "-", "-", "-"
		if x := r.Measured; x != nil {
			err, ratio, step = fmt.Sprintf("%.1e", x.GradErr), fmt.Sprintf("%.0e", x.NormRatio-1), fmt.Sprintf("%.1f", x.StepMS)
			loss = x.Loss
		}
		fmt.Fprintf(w, "%-20s %8s %8s %10.1f %9.1f %9.1f %8s\n", r.Scheme, err, ratio, u.of(r.Bytes.Total()), u.of(r.Saved), u.of(r.Peak), step)
	}
	fmt.Fprintln(w)
	if loss != 0 {
		fmt.Fprintf(w, "Gradient error: of the worst tensor, max|Δ| ÷ max|ref|, against one rank in\nfloat64. Loss %.6f nats a token. ", loss)
	}
	fmt.Fprint(w, "Received: by the rank that receives most,\nin one step. Memory: of the rank that holds most; peak has weights, gradients.\n")
}

// under prints a line where the schedule of the rows changes, if there is more than the usual one.
func under(w io.Writer, c *parity.Comparison, i int) {
	name := func(i int) string {
		r := c.Schemes[i]
		return fmt.Sprintf("recomputation %s, micro-batches %d", r.Recompute, r.Accumulate)
	}
	first, last := name(0), name(len(c.Schemes)-1)
	if usual := "recomputation selective, micro-batches 1"; first == usual && last == usual {
		return
	}
	if i == 0 || name(i) != name(i-1) {
		fmt.Fprintln(w, name(i))
	}
}

// unit is what the table's bytes are counted in.
type unit struct {
	name string
	size float64
}

func (u unit) of(n int64) float64 { return float64(n) / u.size }

// unitOf keeps the largest number under five digits.
func unitOf(c *parity.Comparison) unit {
	top := int64(0)
	for _, r := range c.Schemes {
		top = max(top, r.Bytes.Total(), r.Peak)
	}
	return unitFor(top)
}

func unitFor(top int64) unit {
	for _, u := range []unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}} {
		if u.of(top) < 1e4 {
			return u
		}
	}
	return unit{"GiB", 1 << 30}
}

// printReceived lists bytes by axis and operation beside the closed forms.
func printReceived(w io.Writer, c *parity.Comparison) {
	fmt.Fprintf(w, "\n%-20s %-24s %15s %15s\n", "scheme", "axis/operation", "bytes received", "closed form")
	for i, r := range c.Schemes {
		name := r.Scheme
		under(w, c, i)
		for _, k := range slices.Sorted(maps.Keys(union(r.Bytes, r.BytesExpected))) {
			fmt.Fprintf(w, "%-20s %-24s %15d %15d%s\n", name, k, r.Bytes[k], r.BytesExpected[k], differs(r.Bytes[k], r.BytesExpected[k]))
			name = ""
		}
		if r.Saved != r.SavedExpected {
			fmt.Fprintf(w, "%-20s %-24s %15d %15d%s\n", name, "saved activations", r.Saved, r.SavedExpected, " ≠")
		}
	}
}

func union(a, b formula.Table) formula.Table {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func differs(a, b int64) string {
	if a == b {
		return ""
	}
	return " ≠"
}

// printCrossing answers when Ulysses moves fewer bytes than Megatron.
func printCrossing(w io.Writer, c *parity.Comparison, x formula.Crossing) {
	m, p, e := c.Model, x.Ranks, tensor.F32.Size()
	if c.DType == "f64" {
		e = tensor.F64.Size()
	}
	here := float64(c.Batch) * float64(c.Seq) / float64(p)
	meg, uly := float64(x.Megatron.PerToken)*here+float64(x.Megatron.Fixed), float64(x.Ulysses.PerToken)*here+float64(x.Ulysses.Fixed)
	fmt.Fprintf(w, "\nMegatron or Ulysses on %d ranks: bytes received in a step of t tokens a rank\n", p)
	fmt.Fprintf(w, "  megatron%-2d %10d·t + %-11d = e(P−1)((10L+4)H + 6)·t + norms\n", p, x.Megatron.PerToken, x.Megatron.Fixed)
	fmt.Fprintf(w, "  ulysses%-2d  %10d·t + %-11d = e(P−1)L((4D+1)A/P + 4D·max(G/P,1))·t\n%39s + e·2(P−1)/P·parameters\n", p, x.Ulysses.PerToken, x.Ulysses.Fixed, "")
	fmt.Fprintf(w, "  with e %d, P %d, L %d, H %d, A %d, G %d, D %d\n", e, p, m.Layers, m.Hidden, m.Heads, m.KV, m.Head)
	fmt.Fprintf(w, "At the same tokens a rank Megatron's bytes grow with P−1, Ulysses' with (P−1)/P,\nuntil key/value heads are copied (G < P). But Ulysses pays for the gradients of\nall weights in every step, however short it is; Megatron for those of its norms.\n")
	if x.Tokens == 0 {
		fmt.Fprintf(w, "Here they do not cross: heads are too wide for the stream, or copied too often,\nso that Ulysses never moves fewer bytes on %d ranks.\n", p)
		return
	}
	u := unitOf(c)
	fewer, than := "Megatron", "below"
	if uly < meg {
		fewer, than = "Ulysses", "above"
	}
	fmt.Fprintf(w, "They cross at %.1f tokens a rank: above, Ulysses moves fewer bytes; below,\nMegatron. This step has %.0f a rank, %s it: %s moves fewer\n(megatron%d %.1f %s, ulysses%d %.1f %s).\n",
		x.Tokens, here, than, fewer, p, meg/u.size, u.name, p, uly/u.size, u.name)
}
