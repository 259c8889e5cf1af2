package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Columns adds up the columns of a matrix, in parts of neighbouring rows:
//
//	y[part, j] = Σ_{i of the part} x[i, j], or y[j] += Σ_i x[i, j] where it is the Last
//
// y is float32. A warp has every eighth row of a part; the warps' sums are added in order.
type Columns struct {
	Config     ColumnsConfig
	Entry      *ptx.Entry
	x, y       ptx.ParamPtr
	rows, cols ptx.ParamU32
	parts      ptx.ParamU32
}

// ColumnsConfig chooses the kernel.
type ColumnsConfig struct {
	Type num.DType // of x
	Last bool
}

// NewColumns builds the kernel. A CTA has 32 columns of one part.
func NewColumns(config ColumnsConfig) (*Columns, error) {
	name := "columns_" + config.Type.String()
	if config.Last {
		name += "_last"
	}
	k := ptx.New(name, threads, 1)
	c := &Columns{Config: config, x: k.ParamPtr("x"), y: k.ParamPtr("y"), rows: k.ParamU32("rows"), cols: k.ParamU32("cols"), parts: k.ParamU32("parts")}
	sums := k.Shared("sums", 4*threads, 16).Addr()
	across := c.cols.Plus(31).Shr(5)
	part := k.CTAIndex().Div(across)
	col := k.CTAIndex().Sub(part.Mul(across)).Shl(5).Add(k.Lane())
	in := col.Lt(c.cols.U32)
	from := in.SelectU32(col, k.U32(0))
	each := c.rows.Add(c.parts.U32).Sub(k.U32(1)).Div(c.parts.U32)
	first := part.Mul(each)
	end := first.Add(each).Min(c.rows.U32)
	var sum [4]*ptx.Var[ptx.F32] // as many loads on their way at once
	for i := range sum {
		sum[i] = ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	}
	k.For(first.Add(k.WarpIndex()), end, k.U32(warps*len(sum)), func(row ptx.U32) {
		var x [len(sum)]ptx.F32
		for i := range sum {
			at := row.Plus(warps * i)
			line := c.x.At(at.Min(end.Sub(k.U32(1))).MulWide(c.cols.Times(config.Type.Size())))
			x[i] = at.Lt(end).SelectF32(kernel.LoadSpan(k, config.Type, kernel.At(k, config.Type, line, from), 1)[0], k.F32(0))
		}
		for i := range sum {
			sum[i].Set(sum[i].Get().Add(x[i]))
		}
	})
	sums.At(k.Tid().Shl(2)).StoreF32(sum[0].Get().Add(sum[1].Get()).Add(sum[2].Get().Add(sum[3].Get())))
	k.SyncCTA()
	k.If(k.WarpIndex().Eq(k.U32(0)), func() {
		mine := sums.At(k.Lane().Shl(2))
		all := mine.LoadF32()
		for w := 1; w < warps; w++ {
			all = all.Add(mine.Plus(128 * w).LoadF32())
		}
		k.If(in, func() {
			at := kernel.At(k, num.F32, c.y.At(part.MulWide(c.cols.Shl(2))), col)
			if config.Last {
				all = all.Add(at.LoadF32())
			}
			at.StoreF32(all)
		})
	})
	var err error
	c.Entry, err = k.Build()
	return c, err
}

// ColumnParts is into how many parts many rows are best cut on a device of so many SMs.
func ColumnParts(rows, cols, sms int) int {
	across := (cols + 31) / 32
	return max(1, min((rows+63)/64, 4*sms/across))
}

// Launch describes the launch for x [rows, cols] in parts.
func (c *Columns) Launch(y, x kernel.Place, rows, cols, parts int) (ptx.Launch, *ptx.Args, error) {
	if rows < 1 || cols < 1 || rows >= 1<<31 || cols >= 1<<29 || parts < 1 || c.Config.Last && parts != 1 {
		return ptx.Launch{}, nil, fmt.Errorf("row: columns of %d × %d in %d parts, want positive sizes, one part for the last", rows, cols, parts)
	}
	a := c.Entry.NewArgs()
	x.Put(a, c.x)
	y.Put(a, c.y)
	c.rows.Put(a, uint32(rows))
	c.cols.Put(a, uint32(cols))
	c.parts.Put(a, uint32(parts))
	return ptx.Launch{Entry: c.Entry.Name, Grid: ptx.Dim3{X: (cols + 31) / 32 * parts}}, a, nil
}

// Module is the kernel alone.
func (c *Columns) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{c.Entry}} }
