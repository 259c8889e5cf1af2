package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"heddle/compute"
	"heddle/internal/cli"
	"heddle/parallel"
	"heddle/parity"
)

type verifyCmd struct {
	Dirs     []string `arg:"" help:"Golden folders: config.json, model.safetensors and expected.safetensors with a peer's answers, at least input_ids, labels, logits and loss."`
	Schemes  []string `help:"Schemes to verify, named as for compare; without any, all usual ones that a folder's shapes allow."`
	Parallel []string `sep:"none" placeholder:"AXES" help:"One more layout, by its axes: tp=2,sp=megatron."`
	DType    string   `name:"dtype" enum:"f32,f64,bf16" default:"f64" help:"Type of weights and activations: f32 or f64, bf16 on a GPU."`
	Device   string   `default:"cpu" help:"What the ranks compute on: cpu, or the GPU that all of them share: cuda, cuda:1."`
	Tol      float64  `help:"Largest error of any class, in place of the rule below."`
}

func (verifyCmd) Help() string {
	return `heddle verify internal/golden/testdata/qwen3-gqa internal/golden/testdata/gpt2
    logits, loss, gradients and three AdamW steps beside transformers', under
    every usual layout
heddle verify internal/golden/testdata/llama --parallel fsdp=2 --dtype f32
    one layout, in float32

The rule: an error is max|a−b| ÷ max|b| of a tensor. Logits, loss, gradients and
their norm within 2e-6 (f32: 1e-5); weights after three steps within 5e-6 (f32:
2e-5) where the first gradient is at least 1e-5 of the model's largest, within
1e-3 absolute elsewhere. In bf16, whose roundings are 4e-3, within 8e-2, weights
within 6e-2. Exits with 5 where an answer is beyond it.`
}

func (c *verifyCmd) Run(env *cli.Env) error {
	if !(c.Tol >= 0) {
		return cli.Exitf(cli.Usage, "verify: --tol is %g, want a positive number", c.Tol)
	}
	names := c.Schemes
	for _, axes := range c.Parallel {
		l, err := parallel.ParseAxes(axes)
		if err != nil {
			return cli.Exit(cli.Invalid, err)
		}
		names = append(names, l.Name())
	}
	on, _, err := onDevice(c.Device, dtypeOf(c.DType))
	if err != nil {
		return err
	}
	out := []*parity.FolderReport{}
	var beyond []string
	for _, dir := range c.Dirs {
		f, err := parity.VerifyFolder(dir, names, on, c.Tol)
		if _, fault := errors.AsType[*compute.Fault](err); err != nil && !fault {
			return cli.Exit(cli.Invalid, err)
		}
		if err != nil {
			return err
		}
		if out = append(out, f); !f.OK {
			beyond = append(beyond, dir)
		}
	}
	if err := env.Emit(map[string]any{"folders": out}, func(w io.Writer) { c.print(w, out) }); err != nil {
		return err
	}
	if len(beyond) > 0 {
		return cli.Exitf(cli.Check, "verify: beyond the limits: %s", strings.Join(beyond, ", "))
	}
	return nil
}

func (c *verifyCmd) print(w io.Writer, folders []*parity.FolderReport) {
	fmt.Fprintf(w, "Errors beside the peer's: max|a−b| ÷ max|b| of a tensor\n\n%-20s %8s %8s %8s %8s %8s %8s %7s\n", "scheme", "logits", "loss", "norm", "gradient", "weights", "rest", "verdict")
	for _, f := range folders {
		fmt.Fprintf(w, "%s, %s: %d tensors written again, byte for byte\n", f.Dir, f.DType, f.RoundTrip)
		for _, v := range f.Layouts {
			verdict := "ok"
			if !v.Within(c.Tol) {
				verdict = "beyond"
			}
			fmt.Fprintf(w, "%-20s %8.1e %8.1e %8.1e %8.1e %8.1e %8.1e %7s\n", v.Layout, v.Logits, max(v.Loss, v.Losses), v.GradNorm, v.Grad.Error, v.After.Error, v.Rest, verdict)
		}
		for _, r := range f.Refused {
			fmt.Fprintf(w, "%-20s %s\n", r.Layout, r.Why)
		}
		if len(f.Layouts) > 0 && !f.Layouts[0].Steps {
			fmt.Fprint(w, "the folder has logits and loss alone\n\n")
			continue
		}
		fmt.Fprintf(w, "weights over %.1f %% of the elements, rest over the others\n\n", 100*f.Share)
	}
	fmt.Fprintln(w, "loss: the batch's and those before three AdamW steps; gradient: of the worst\ntensor; weights: of the worst tensor after the steps, over elements whose first\ngradient is at least 1e-5 of the model's largest; rest: absolute, of the others.")
}
