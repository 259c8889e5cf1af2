// Package row holds kernels that reduce the rows of a matrix.
//
// Start with NewSum.
package row

import (
	"fmt"

	"heddle/ptx"
)

// Sum adds up the rows of a float32 matrix.
type Sum struct {
	Entry *ptx.Entry
	X     ptx.ParamPtr // [Rows, Cols] f32, rows Pitch elements apart
	Y     ptx.ParamPtr // [Rows] f32
	Rows  ptx.ParamU32
	Cols  ptx.ParamU32
	Pitch ptx.ParamU32 // a multiple of 4
}

const (
	threads = 256
	warps   = threads / 32
)

// NewSum builds the kernel. For each row that falls to the CTA it computes
//
//	y[row] = Σ x[row, col]
//
// Each thread adds four neighbouring columns of every 1,024, the lanes of a warp add by butterfly, warp 0 adds the warps' sums from shared memory. The order is
// fixed, so the result is the same on every run.
//
// Barriers: named barrier 0 twice a row, all 256 threads: the warps' sums are written; they have been read. Shared memory: 8 words.
func NewSum() (*Sum, error) {
	k := ptx.New("row_sum", threads, 1)
	s := &Sum{X: k.ParamPtr("x"), Y: k.ParamPtr("y"), Rows: k.ParamU32("rows"), Cols: k.ParamU32("cols"), Pitch: k.ParamU32("pitch")}
	partial := k.Shared("partial", 4*warps, 16).Addr()
	warp, lane := k.WarpIndex(), k.Lane()
	k.For(k.CTAIndex(), s.Rows.U32, k.NumCTAs(), func(row ptx.U32) {
		line := s.X.At(row.MulWide(s.Pitch.Times(4)))
		total := butterfly(s.strip(k, line), 16)
		k.If(lane.Eq(k.U32(0)), func() { partial.At(warp.Shl(2)).StoreF32(total) })
		k.SyncCTA()
		k.If(warp.Eq(k.U32(0)), func() {
			mine := ptx.NewVarAt(k, ptx.Lane, k.F32(0))
			k.If(lane.Lt(k.U32(warps)), func() { mine.Set(partial.At(lane.Shl(2)).LoadF32()) })
			all := butterfly(mine.Get(), warps/2)
			k.If(lane.Eq(k.U32(0)), func() { s.Y.At(row.MulWide(k.U32(4))).StoreF32(all) })
		})
		k.SyncCTA()
	})
	var err error
	s.Entry, err = k.Build()
	return s, err
}

// strip is the sum of this thread's columns of a row.
func (s *Sum) strip(k *ptx.Builder, line ptx.GAddr) ptx.F32 {
	sum := ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	whole := s.Cols.And(k.U32(-4))
	k.For(k.U32(0), whole, k.U32(4*threads), func(base ptx.U32) {
		col := base.Add(k.Tid().Shl(2))
		k.If(col.Lt(whole), func() {
			x := line.At(col.MulWide(k.U32(4))).LoadF32x4()
			sum.Set(sum.Get().Add(x[0].Add(x[1]).Add(x[2].Add(x[3]))))
		})
	})
	last := whole.Add(k.Tid())
	k.If(last.Lt(s.Cols.U32), func() { sum.Set(sum.Get().Add(line.At(last.MulWide(k.U32(4))).LoadF32())) })
	return sum.Get()
}

// butterfly adds over the lanes that differ in the bits below 2·from.
func butterfly(x ptx.F32, from int) ptx.F32 {
	for d := from; d > 0; d /= 2 {
		x = x.Add(x.ShuffleXor(d))
	}
	return x
}

// Launch describes the launch for a matrix of rows × cols, rows pitch elements apart, on a device of so many SMs.
func (s *Sum) Launch(x, y *ptx.Buffer, rows, cols, pitch, sms int) (ptx.Launch, *ptx.Args, error) {
	if rows < 1 || cols < 0 || pitch < cols || pitch%4 != 0 || pitch >= 1<<30 {
		return ptx.Launch{}, nil, fmt.Errorf("row: sum of %d × %d, pitch %d, want rows, cols ≤ pitch, pitch a multiple of 4 below 2³⁰", rows, cols, pitch)
	}
	if need := 4 * rows * pitch; x.Size() < need || y.Size() < 4*rows {
		return ptx.Launch{}, nil, fmt.Errorf("row: sum: buffers of %d and %d bytes, want %d and %d", x.Size(), y.Size(), need, 4*rows)
	}
	a := s.Entry.NewArgs()
	s.X.Put(a, x, 0)
	s.Y.Put(a, y, 0)
	s.Rows.Put(a, uint32(rows))
	s.Cols.Put(a, uint32(cols))
	s.Pitch.Put(a, uint32(pitch))
	return ptx.Launch{Entry: s.Entry.Name, Grid: ptx.Dim3{X: min(rows, 4*sms)}}, a, nil
}

// Module is the kernel alone.
func (s *Sum) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{s.Entry}} }
