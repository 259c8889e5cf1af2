package main

import (
	"fmt"
	"io"

	"heddle/internal/atomicfile"
	"heddle/internal/cli"
	"heddle/tile"
	"heddle/tile/draw"
	"heddle/tile/view"
)

// tileCmd is the workbench: each verb is one request to package view, printed as text, JSON or SVG.
type tileCmd struct {
	Layout   tileLayoutCmd   `cmd:"" help:"Any layout, composition or thread-value map as a grid."`
	Swizzle  tileSwizzleCmd  `cmd:"" help:"A shared-memory buffer before and after a swizzle: banks, wavefronts, XOR beside ADD and padding."`
	Schedule tileScheduleCmd `cmd:"" help:"The order of tiles over an output: waves, stripes, an L2 estimate."`
	Depth    tileDepthCmd    `cmd:"" help:"What a tile takes: shared memory, stages, registers, bytes a clock; why not, and what would do."`
	Epilogue tileEpilogueCmd `cmd:"" help:"One element's way from accumulator to TMA box, and what the stores cost."`
	Check    tileCheckCmd    `cmd:"" help:"Replay recorded layout-algebra cases."`
}

func (tileCmd) Help() string {
	return `heddle tile layout "(8,(2,4)):(2,(1,16))"
    a layout as a grid of offsets
heddle tile depth --bm 128 --bn 256 --bk 64 --cluster 2x1
    what this GEMM tile takes of an H200`
}

// pictured is a verb's output: every verb can also write its picture.
type pictured struct {
	SVG string `name:"svg" placeholder:"FILE" help:"Also write the picture as SVG; - for stdout alone."`
}

func (p pictured) show(env *cli.Env, result any, picture func() (draw.Picture, error)) error {
	if env.JSON && p.SVG == "" { // a picture may be refused where data is not
		return env.Emit(result, nil)
	}
	pic, err := picture()
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if p.SVG == "-" {
		return pic.SVG(env.Out)
	}
	if p.SVG != "" {
		if err := atomicfile.Write(atomicfile.OS{}, p.SVG, pic.SVG); err != nil {
			return err
		}
		fmt.Fprintln(env.Err, "heddle: wrote", p.SVG)
	}
	return env.Emit(result, func(w io.Writer) { pic.Text(w, env.Color) })
}

type tileLayoutCmd struct {
	Layouts []string `arg:"" optional:"" help:"Layouts to compose: A B C means A∘B∘C. A shape alone is column-major; the first may be 'Sw<3,4,3> o 0 o (8,64):(64,1)'."`
	Do      []string `sep:"none" placeholder:"OP" help:"Operations in order: coalesce, filter, right-inverse, left-inverse, tiled, 'complement N', 'slice COORD', 'divide L', 'product L'; by mode with sizes (4,_,8): compose-modes, divide-modes, product-modes, zipped-divide, zipped-product."`
	Swizzle string   `placeholder:"B,M,S" help:"Swizzle the offsets."`
	Atom    string   `placeholder:"SPEC" help:"Thread-value map of an instruction: wgmma/n16/bf16/C (or /A), mma/k16/bf16/A (B, C), matrix/x4/trans/registers (or /memory)."`
	Tile    string   `placeholder:"ROWSxCOLS" help:"Read the layout as (thread, value) → element of a column-major tile of this size."`
	pictured
}

func (tileLayoutCmd) Help() string {
	return `heddle tile layout "(8,(2,4)):(2,(1,16))" --swizzle 3,0,3
    a layout as a grid of offsets, swizzled
heddle tile layout --atom wgmma/n16/bf16/C --svg fragment.svg
    who holds what of a wgmma accumulator`
}

func (c *tileLayoutCmd) Run(env *cli.Env) error {
	r, err := view.Layout(view.LayoutRequest{Layouts: c.Layouts, Do: c.Do, Swizzle: c.Swizzle, Atom: c.Atom, Tile: c.Tile})
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	return c.show(env, r, r.Picture)
}

type tileSwizzleCmd struct {
	Swizzle  string `arg:"" optional:"" help:"B,M,S on byte addresses. Default: the widest TMA mode that the rows allow, or what --suggest finds."`
	Rows     int    `default:"64" help:"Rows of the buffer."`
	RowBytes int    `default:"128" help:"Bytes of a row."`
	Pitch    int    `help:"Bytes from row to row. Default: the bytes of a row."`
	Write    string `default:"rows:16" help:"How a warp writes: rows:BYTES, columns:BYTES (a lane), matrix (stmatrix.x4), or one access as a layout from lanes to bytes, (8,4):(128,16):16."`
	Read     string `default:"matrix" help:"How a warp reads: the same, or matrix (ldmatrix.x4)."`
	Access   int    `help:"Which of the reader's instructions is drawn."`
	Suggest  bool   `help:"Find the (B,M,S) with the fewest wavefronts for this writer and reader."`
	Crossbar bool   `help:"Draw the crossbar of lanes and banks alone."`
	pictured
}

func (tileSwizzleCmd) Help() string {
	return `heddle tile swizzle 3,4,3 --rows 64 --row-bytes 128
    a TMA buffer of 64 rows of 64 bf16, read by ldmatrix
heddle tile swizzle --suggest --rows 32 --write rows:4 --read columns:4
    the 32 × 32 float transpose: what to XOR`
}

func (c *tileSwizzleCmd) Run(env *cli.Env) error {
	r, err := view.Swizzle(view.SwizzleRequest{Swizzle: c.Swizzle, Rows: c.Rows, RowBytes: c.RowBytes, Pitch: c.Pitch,
		Write: c.Write, Read: c.Read, Access: c.Access, Suggest: c.Suggest})
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if c.Crossbar {
		return c.show(env, r, r.Crossbar)
	}
	return c.show(env, r, r.Picture)
}

type tileScheduleCmd struct {
	M       int    `default:"8192" help:"Rows of the output."`
	N       int    `default:"8192" help:"Columns of the output."`
	K       int    `default:"8192" help:"Depth of the product."`
	BM      int    `name:"bm" default:"128" help:"Rows of a tile."`
	BN      int    `name:"bn" default:"256" help:"Columns of a tile."`
	BK      int    `name:"bk" default:"64" help:"Step along K."`
	In      string `default:"bf16" help:"Type of the operands."`
	Cluster string `default:"2x1" help:"CTAs of a cluster along M and N."`
	Order   string `default:"serpentine" enum:"raster,grouped,serpentine,hilbert" help:"raster, grouped, serpentine or hilbert."`
	Group   int    `default:"8" help:"Width of a strip in clusters, for grouped and serpentine."`
	Fast    string `enum:"m,n,auto" default:"auto" help:"The axis that strips are cut from: m, n, or auto for the longer one."`
	Chip    string `default:"h200" enum:"h200,h100" help:"h200 or h100."`
	SMs     int    `name:"sms" help:"Multiprocessors in use. Default: the chip's."`
	L2      int    `name:"l2" placeholder:"MB" help:"Effective L2. Default: estimates at 30 and 60 MB."`
	pictured
}

func (tileScheduleCmd) Help() string {
	return `heddle tile schedule --m 8192 --n 8192 --k 8192 --order hilbert --cluster 2x1
    the Hilbert order, its waves and what it reads
heddle tile schedule --m 2048 --n 4096 --k 4096 --group 4 --svg order.svg
    strips four clusters wide, as a picture`
}

func (c *tileScheduleCmd) Run(env *cli.Env) error {
	in, err := view.ElemBytes(c.In)
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	if c.L2 < 0 || c.L2 > 1<<20 {
		return cli.Exitf(cli.Invalid, "tile: L2 of %d MB, want 0 to %d", c.L2, 1<<20)
	}
	fast := tile.Axis(c.Fast)
	if fast == "auto" {
		fast = ""
	}
	r, err := view.Schedule(view.ScheduleRequest{M: c.M, N: c.N, K: c.K, Work: tile.Work{BM: c.BM, BN: c.BN, BK: c.BK, ElemBytes: in}, Cluster: c.Cluster,
		Order: tile.Order(c.Order), Group: c.Group, Fast: fast, Chip: chip(c.Chip), SMs: c.SMs, L2: c.L2 << 20})
	if err != nil {
		return cli.Exit(cli.Invalid, err)
	}
	return c.show(env, r, r.Picture)
}

func chip(name string) tile.Chip {
	if name == "h100" {
		return tile.H100()
	}
	return tile.H200()
}
