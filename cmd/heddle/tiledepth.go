package main

import (
	"fmt"
	"io"
	"os"

	"heddle/internal/cli"
	"heddle/tile"
	"heddle/tile/vector"
	"heddle/tile/view"
)

// gemmTile is the tile that depth and epilogue look at.
type gemmTile struct {
	BM         int    `name:"bm" default:"128" help:"Rows of the CTA's tile."`
	BN         int    `name:"bn" default:"256" help:"Columns of it."`
	BK         int    `name:"bk" default:"64" help:"Elements of K in a stage."`
	In         string `default:"bf16" help:"Type of the operands: bf16, f16, tf32, fp8."`
	Out        string `default:"bf16" help:"Type of the output: bf16, f16, f32."`
	Cluster    string `default:"2x1" help:"CTAs of a cluster along M and N."`
	Warpgroups int    `default:"2" help:"MMA warpgroups, beside the producer."`
	PingPong   bool   `help:"Two warpgroups on alternating tiles."`
	Promote    bool   `help:"fp8: add into a second set of accumulators."`
	Buffers    int    `default:"2" help:"Epilogue buffers of 64 rows × 128 bytes a warpgroup; 0 stores from registers."`
	Stages     int    `help:"Stages of the pipeline. Default: as many as fit."`
	Chip       string `default:"h200" enum:"h200,h100" help:"h200 or h100."`
}

func (g gemmTile) request() view.DepthRequest {
	return view.DepthRequest{In: g.In, Out: g.Out, Cluster: g.Cluster, Chip: chip(g.Chip), Choice: tile.Choice{BM: g.BM, BN: g.BN, BK: g.BK,
		Warpgroups: g.Warpgroups, PingPong: g.PingPong, Promote: g.Promote, Buffers: g.Buffers, Stages: g.Stages}}
}

type tileDepthCmd struct {
	gemmTile
	pictured
}

func (tileDepthCmd) Help() string {
	return `heddle tile depth --bm 128 --bn 256 --bk 64 --cluster 2x1
    a GEMM tile that runs at cuBLAS speed on an H200
heddle tile depth --bm 256 --bn 256 --stages 4
    why this one is refused, and the nearest that works`
}

func (c *tileDepthCmd) Run(env *cli.Env) error {
	r, err := view.Depth(c.request())
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	return c.show(env, r, r.Picture)
}

type tileEpilogueCmd struct {
	gemmTile
	Element string `default:"37,70" aliases:"at" help:"Row and column in the CTA's tile."`
	pictured
}

func (tileEpilogueCmd) Help() string {
	return `heddle tile epilogue --element 37,70
    where this element is, from the accumulator to the TMA box
heddle tile epilogue --out f32 --element 100,200 --svg epilogue.svg
    the same for 32-bit output`
}

func (c *tileEpilogueCmd) Run(env *cli.Env) error {
	r, err := view.Epilogue(view.EpilogueRequest{DepthRequest: c.request(), Element: c.Element})
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	return c.show(env, r, r.Picture)
}

type tileCheckCmd struct {
	File string `arg:"" help:"Cases as JSON lines; - for stdin."`
	Keep int    `default:"10" help:"Failures to print."`
}

func (tileCheckCmd) Help() string {
	return `heddle tile check tile/vector/testdata/sample.jsonl
    pycute's answers against package tile
heddle tile check - --json < cases.jsonl
    from a pipe, as JSON`
}

func (c *tileCheckCmd) Run(env *cli.Env) error {
	in := env.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return cli.Exit(cli.Invalid, err)
		}
		defer f.Close()
		in = f
	}
	r, err := vector.Check(in, c.Keep)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if err := env.Emit(r, func(w io.Writer) { r.Print(w) }); err != nil {
		return err
	}
	switch {
	case r.Failed > 0 && env.JSON: // the report on stdout is the one object
		return cli.Exited(cli.Check)
	case r.Failed > 0:
		return &cli.Error{Code: cli.Check, Err: fmt.Errorf("tile: %d of %d cases failed", r.Failed, r.Passed+r.Failed)}
	}
	return nil
}
