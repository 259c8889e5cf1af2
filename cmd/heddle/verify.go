package main

import (
	"fmt"
	"io"
	"strings"

	"heddle/internal/cli"
	"heddle/parity"
	"heddle/tensor"
)

type verifyCmd struct {
	Dirs    []string `arg:"" help:"Golden folders: config.json, model.safetensors and expected.safetensors with a peer's answers."`
	Schemes []string `default:"single,tp2,megatron2,ulysses2,fsdp2" help:"Schemes to verify, named as for compare."`
	DType   string   `name:"dtype" enum:"f32,f64" default:"f64" help:"Type of weights and activations: f32 or f64."`
}

func (verifyCmd) Help() string {
	return `heddle verify internal/golden/testdata/qwen3-gqa
    logits, loss, gradients and three AdamW steps beside transformers', under
    five schemes
heddle verify internal/golden/testdata/qwen3-gqa --schemes megatron8,fsdp2-ulysses2 --dtype f32
    other layouts, in float32

Exits with 5 where an answer is further from the peer's than the limits in parity/verify.go.`
}

func (c *verifyCmd) Run(env *cli.Env) error {
	t := tensor.F64
	if c.DType == "f32" {
		t = tensor.F32
	}
	out := []*parity.Verification{}
	var beyond []string
	for _, dir := range c.Dirs {
		schemes, err := parity.PeerSchemes(dir, c.Schemes)
		if err != nil {
			return cli.Exit(cli.Invalid, err)
		}
		for _, s := range schemes {
			v, err := parity.Verify(dir, s.Layout, t)
			if err != nil {
				return fmt.Errorf("%s under %s: %w", dir, s.Name, err)
			}
			out = append(out, v)
			if !v.Within() {
				beyond = append(beyond, fmt.Sprintf("%s under %s", dir, s.Name))
			}
		}
	}
	if err := env.Emit(map[string]any{"verifications": out}, func(w io.Writer) { printVerifications(w, out) }); err != nil {
		return err
	}
	if len(beyond) > 0 {
		return cli.Exitf(cli.Check, "verify: beyond the limits: %s", strings.Join(beyond, ", "))
	}
	return nil
}

func printVerifications(w io.Writer, vs []*parity.Verification) {
	fmt.Fprintf(w, "Errors beside the peer's: max|a−b| ÷ max|b| of a tensor\n\n%-20s %8s %8s %8s %8s %8s %6s %7s\n", "scheme", "logits", "loss", "norm", "gradient", "weights", "share", "verdict")
	dir := ""
	for _, v := range vs {
		if v.Dir != dir {
			dir = v.Dir
			fmt.Fprintf(w, "%s, %s\n", dir, v.DType)
		}
		verdict := "ok"
		if !v.Within() {
			verdict = "beyond"
		}
		fmt.Fprintf(w, "%-20s %8.1e %8.1e %8.1e %8.1e %8.1e %6.3f %7s\n", v.Layout, v.Logits, max(v.Loss, v.Losses), v.GradNorm, v.Grad.Error, v.After.Error, v.Share, verdict)
	}
	fmt.Fprintln(w, "\nloss: the batch's and those before three AdamW steps; gradient: of the worst\ntensor; weights: of the worst tensor after the steps, over the share of elements\nwhose first gradient is at least 1e-5 of the model's largest; the others are\nwithin 1e-3.")
}
