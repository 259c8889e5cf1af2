package main

import (
	"fmt"
	"io"

	"heddle/checkpoint/safetensors"
	"heddle/internal/cli"
	"heddle/train"
)

type exportCmd struct {
	Model  string  `arg:"" help:"The folder of a run, a Hugging Face folder or a .gguf file."`
	Folder string  `arg:"" help:"Where to write a Hugging Face folder; it must not exist."`
	DType  string  `name:"dtype" enum:"f32,bf16,f16" default:"f32" help:"Type of the weights: f32, bf16 or f16."`
	Shard  float64 `default:"5" help:"Largest weight file, in GB (10^9 bytes)."`
}

func (exportCmd) Help() string {
	return `heddle export runs/20260101-120000 mymodel --dtype bf16
    a run's weights, configuration and tokenizer, for transformers and others
heddle export SmolLM2-135M.Q4_1.gguf smollm2 --shard 0.2
    a quantised file, dequantised, in files of at most 200 MB and an index

Every weight is read back and compared before the folder appears.`
}

func (c *exportCmd) Run(env *cli.Env) error {
	if !(c.Shard > 0 && c.Shard <= 1e6) {
		return cli.Exitf(cli.Usage, "export: --shard is %g, want GB above 0", c.Shard)
	}
	dtype := map[string]safetensors.DType{"f32": safetensors.F32, "bf16": safetensors.BF16, "f16": safetensors.F16}[c.DType]
	e, err := train.Export(c.Model, c.Folder, dtype, int64(c.Shard*1e9))
	if err != nil {
		return exitOf(err)
	}
	return env.Emit(e, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s parameters in %d tensors, %d weight files of %s bytes (%s), read back and compared\n", e.Dir, thousands(e.Parameters), e.Tensors, e.Files, thousands(e.Bytes), e.DType)
		if e.Rounding > 0 {
			fmt.Fprintf(w, "largest rounding of a weight: %.1e of it\n", e.Rounding)
		}
		if !e.Tokenizer {
			fmt.Fprintln(w, "no tokenizer: the model has none")
		}
	})
}
