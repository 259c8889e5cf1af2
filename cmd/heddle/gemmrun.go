package main

import (
	"fmt"
	"io"

	"heddle/bench"
	"heddle/internal/cli"
)

type gemmRunCmd struct {
	Configs []string `required:"" help:"Configurations; @FILE reads one a line." placeholder:"NAME"`
	CuBLAS  string   `name:"cublas" help:"Folder of libcublas; looked for where it is not given." placeholder:"DIR"`
	Size    int      `default:"8192" help:"Square."`
	Device  int      `default:"0" help:"Which GPU."`
}

func (gemmRunCmd) Help() string {
	return `Examples:
  heddle gemm run --configs 128x256x64-w2-c2x1-s4-g8
  ncu --clock-control none -k gemm --metrics lts__t_sector_hit_rate.pct,dram__bytes.sum --csv heddle gemm run --configs @orders.txt

Launches each configuration once, in order, without timing it.`
}

func (c *gemmRunCmd) Run(env *cli.Env) error {
	configs, err := configsNamed(c.Configs)
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	g := bench.GEMM{Configs: configs, Device: c.Device, CuBLAS: findCuBLAS(c.CuBLAS), Cache: cubinCache(),
		Progress: func(format string, args ...any) { fmt.Fprintf(env.Err, format+"\n", args...) }, Store: func(*bench.Result) error { return nil }}
	if err := g.Once(c.Size); err != nil {
		return absent(err)
	}
	return env.Emit(map[string]any{"launched": configs}, func(w io.Writer) { fmt.Fprintf(w, "%d kernels launched\n", len(configs)) })
}
