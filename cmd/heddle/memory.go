package main

import (
	"fmt"
	"io"

	"heddle/compute"
	"heddle/internal/atomicfile"
	"heddle/internal/cli"
	"heddle/parity"
	"heddle/report"
	"heddle/tensor"
)

type memoryCmd struct {
	Scheme     string `default:"fsdp4" help:"Scheme, named as for compare."`
	Model      string `default:"tiny" help:"tiny, or a transformers folder or config.json."`
	Layers     int    `default:"0" help:"Layers, other than the model's; 0: the model's."`
	Seq        int    `default:"256" help:"Tokens of a sequence."`
	Batch      int    `default:"4" help:"Sequences of the global batch."`
	Recompute  string `default:"selective" help:"What Backward rebuilds: none, selective, full, or everyN."`
	Accumulate int    `default:"1" help:"Micro-batches of the step."`
	DType      string `name:"dtype" enum:"f32,f64" default:"f32" help:"Type of weights and activations: f32 or f64."`
	SVG        string `name:"svg" placeholder:"FILE" help:"Also write a picture, bytes held over the step by category; - for stdout alone."`
}

func (memoryCmd) Help() string {
	return `heddle memory --scheme fsdp4 --layers 12 --svg held.svg
    what a rank's memory is for while a step runs, as numbers and as a picture
heddle memory --scheme fsdp2-megatron4 --model ./Qwen3-8B/config.json --seq 8192 --recompute full
    of a model that need not fit here: nothing is computed

Rank 0 of one training step, optimiser included, on the machine that only counts. A dry run holds what a real one holds.`
}

func (c *memoryCmd) Run(env *cli.Env) error {
	cfg, err := modelOf(c.Model)
	if err != nil {
		return err
	}
	if c.Layers != 0 {
		cfg.Layers = c.Layers
	}
	g, err := (&compareCmd{Schemes: []string{c.Scheme}, Recompute: []string{c.Recompute}, Accumulate: []int{c.Accumulate}, Seq: c.Seq, Batch: c.Batch}).grid(cfg)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	t := tensor.F32
	if c.DType == "f64" {
		t = tensor.F64
	}
	h, err := parity.HeldOver(parity.NewInput(cfg, c.Batch, c.Seq, 1, 1), g.Schemes[0], g.Schedules[0], t)
	if err != nil {
		return err
	}
	if c.SVG == "-" {
		return report.HeldSVG(env.Out, heldPicture(h))
	}
	if c.SVG != "" {
		err := atomicfile.Write(atomicfile.OS{}, c.SVG, func(w io.Writer) error { return report.HeldSVG(w, heldPicture(h)) })
		if err != nil {
			return err
		}
	}
	return env.Emit(h, func(w io.Writer) { printHeld(w, h) })
}

// heldOrder is how categories lie one upon the other: what stays lowest.
func heldOrder() []compute.Category {
	return []compute.Category{compute.Moments, compute.Gradients, compute.Weights, compute.Constant, compute.Saved, compute.Comm, compute.Scratch}
}

func heldPicture(h *parity.Held) report.Held {
	m := h.Model
	p := report.Held{Title: fmt.Sprintf("Memory held by rank 0 of %s over one training step", h.Scheme),
		Notes: []string{fmt.Sprintf("L %d, H %d, A %d, G %d, D %d, F %d, V %d; batch %d × %d tokens, micro-batches %d; %s; recomputation %s", m.Layers, m.Hidden, m.Heads, m.KV, m.Head, m.MLP, m.Vocab, h.Batch, h.Seq, h.Accumulate, h.DType, h.Recompute)}}
	for _, c := range heldOrder() {
		p.Categories = append(p.Categories, c.String())
	}
	for i, c := range h.Changes {
		v := make([]int64, len(heldOrder()))
		for k, cat := range heldOrder() {
			v[k] = int64(c.Bytes[cat])
		}
		p.Changes = append(p.Changes, v)
		if i+1 == len(h.Changes) || h.Changes[i+1].Stage != c.Stage {
			s, label := h.Stages[c.Stage], ""
			if s.Layer >= 0 {
				label = fmt.Sprint(s.Layer)
			}
			p.Stages = append(p.Stages, report.HeldStage{Band: s.Phase, Label: label, End: i + 1})
		}
	}
	return p
}

// printHeld is a line a stage: the most held in it, and what is held when it ends.
func printHeld(w io.Writer, h *parity.Held) {
	u := unitFor(int64(h.Peak))
	fmt.Fprintf(w, "Rank 0 of %s, one training step, in %s:\nthe most held in each stage, and what is held when it ends. Other: batches, and\nstaging of collectives.\n\n", h.Scheme, u.name)
	fmt.Fprintf(w, "%-9s %5s %8s | %8s %8s %8s %8s %8s %8s\n", "phase", "layer", "peak", "moments", "grads", "weights", "saved", "scratch", "other")
	for _, s := range h.Stages {
		layer := "-"
		if s.Layer >= 0 {
			layer = fmt.Sprint(s.Layer)
		}
		fmt.Fprintf(w, "%-9s %5s %8.2f |", s.Phase, layer, u.of(int64(s.Peak)))
		for _, n := range []int{s.End[compute.Moments], s.End[compute.Gradients], s.End[compute.Weights], s.End[compute.Saved], s.End[compute.Scratch], s.End[compute.Constant] + s.End[compute.Comm]} {
			fmt.Fprintf(w, " %8.2f", u.of(int64(n)))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\nPeak %.2f %s.\n", u.of(int64(h.Peak)), u.name)
}
