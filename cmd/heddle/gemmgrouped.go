package main

import (
	"fmt"
	"io"

	"heddle/bench"
	"heddle/internal/cli"
	"heddle/kernel/gemm"
)

type gemmGroupedCmd struct {
	Configs []string `help:"Configurations; @FILE reads one a line." placeholder:"NAME"`
	SMs     int      `name:"sms" default:"132" help:"SMs of the GPU that will run them."`
	Dir     string   `arg:"" help:"Folder to write to." placeholder:"DIR"`
}

func (gemmGroupedCmd) Help() string {
	return `Examples:
  heddle gemm grouped /tmp/grouped && python3 bench/grouped.py /tmp/grouped grouped.json
  heddle gemm grouped --configs 128x256x64-w2-c1x1-s3-g8,256x192x64-w2-c1x1-s3-g8 /tmp/grouped

Writes the launches of a mixture of experts' products, forward, dgrad and wgrad, for bench/grouped.py, which measures them beside torch's grouped_mm in one process.`
}

// groupedShapes are two of DeepGEMM's (8 experts) and the two projections of Qwen3-30B-A3B with 16k tokens, 8 of 128 experts each.
var groupedShapes = []bench.Experts{
	{Name: "8x4096x7168", Rows: 32768, Groups: 8, N: 4096, K: 7168},
	{Name: "8x7168x2048", Rows: 32768, Groups: 8, N: 7168, K: 2048},
	{Name: "30B-A3B gate_up", Rows: 131072, Groups: 128, N: 1536, K: 2048},
	{Name: "30B-A3B down", Rows: 131072, Groups: 128, N: 2048, K: 768},
}

func (c *gemmGroupedCmd) Run(env *cli.Env) error {
	configs, err := configsNamed(c.Configs)
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	if len(configs) == 0 {
		configs = []gemm.Config{gemm.Default()}
	}
	if err := bench.ExportExperts(c.Dir, groupedShapes, configs, c.SMs); err != nil {
		return err
	}
	return env.Emit(map[string]any{"dir": c.Dir, "shapes": groupedShapes}, func(w io.Writer) { fmt.Fprintf(w, "launches of %d shapes in %s\n", len(groupedShapes), c.Dir) })
}
