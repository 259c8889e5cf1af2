package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// strip is how the columns of a row lie on the threads that work on it: access c of thread t takes the width columns from (c·team + t)·width on. Rows are
// short enough for a thread to keep its columns in registers.
type strip struct {
	cols  int
	width int // neighbouring columns of an access: kernel.Wide or 1
	team  int // threads of a row, a power of two
	each  int // accesses of a thread
}

const (
	most    = 32   // columns that a thread keeps
	MaxCols = 8192 // of a row that is wide; narrow ones have an eighth
)

// lay spreads cols columns over as few threads as can keep them, at most the CTA.
func lay(cols int, wide bool) (strip, error) {
	s := strip{cols: cols, width: 1, team: 1}
	if wide {
		s.width = kernel.Wide
	}
	if cols < 1 || cols%s.width != 0 {
		return s, fmt.Errorf("row: %d columns, want a positive multiple of %d", cols, s.width)
	}
	for s.team < 32 && s.team*s.width < cols || s.team*most < cols {
		s.team *= 2
	}
	if s.each = (cols + s.team*s.width - 1) / (s.team * s.width); s.team > threads {
		return s, fmt.Errorf("row: %d columns, want at most %d, or %d where rows do not start at multiples of 16 bytes", cols, MaxCols, threads*most)
	}
	return s, nil
}

// perCTA is the rows that a CTA works on at once.
func (s strip) perCTA() int { return threads / s.team }

// ragged tells whether access c of some thread is outside the row.
func (s strip) ragged(c int) bool { return (c+1)*s.team*s.width > s.cols }

// rows is a kernel's way through the rows: each team takes one row at a time.
type rows struct {
	strip
	k      *ptx.Builder
	slot   ptx.U32 // the team's index in the CTA
	member ptx.U32 // the thread's index in its team
	sums   ptx.SAddr
}

func newRows(k *ptx.Builder, s strip) *rows {
	r := &rows{strip: s, k: k}
	shift := log2(s.team)
	r.slot, r.member = k.Tid().Shr(shift), k.Tid().And(k.U32(s.team-1))
	if s.team > 32 {
		r.sums = k.Shared("sums", 4*warps, 16).Addr()
	}
	return r
}

func log2(n int) int {
	bits := 0
	for ; n > 1; n >>= 1 {
		bits++
	}
	return bits
}

// visit runs f for every row that falls to the team. All threads of the CTA run f together: where there is no row left for a team, here is false, and row is the
// last one, which may be read.
func (r *rows) visit(n ptx.U32, f func(row ptx.U32, here ptx.Pred)) {
	k := r.k
	k.For(k.CTAIndex().Times(r.perCTA()), n, k.NumCTAs().Times(r.perCTA()), func(first ptx.U32) {
		row := first.Add(r.slot)
		f(row.Min(n.Sub(k.U32(1))), row.Lt(n))
	})
}

// column is the first column of access c, and whether it is inside the row; where it is not, the column is 0.
func (r *rows) column(c int) (ptx.U32, ptx.Pred) {
	col := r.member.Plus(c * r.team).Times(r.width)
	if !r.ragged(c) {
		return col, r.k.Bool(true)
	}
	in := col.Lt(r.k.U32(r.cols))
	return in.SelectU32(col, r.k.U32(0)), in
}

// load reads the thread's columns of the row that starts at line; those outside the row are 0.
func (r *rows) load(t num.DType, line ptx.GAddr) []ptx.F32 {
	var x []ptx.F32
	for c := range r.each {
		col, in := r.column(c)
		for _, v := range kernel.LoadSpan(r.k, t, kernel.At(r.k, t, line, col), r.width) {
			if r.ragged(c) {
				v = in.SelectF32(v, r.k.F32(0))
			}
			x = append(x, v)
		}
	}
	return x
}

// store writes the thread's columns of a row, where here holds.
func (r *rows) store(t num.DType, line ptx.GAddr, x []ptx.F32, here ptx.Pred) {
	for c := range r.each {
		col, in := r.column(c)
		if r.ragged(c) {
			in = in.And(here)
		} else {
			in = here
		}
		r.k.If(in, func() { kernel.StoreSpan(r.k, t, kernel.At(r.k, t, line, col), x[c*r.width:(c+1)*r.width]) })
	}
}

// line is the start of a row of a packed matrix.
func (r *rows) line(t num.DType, base ptx.GAddr, row ptx.U32) ptx.GAddr {
	return base.At(row.MulWide(r.k.U32(r.cols * t.Size())))
}

// sum adds up over the team, in the same order for every row: lanes by butterfly, then warps one after the other. All threads of the CTA call it.
func (r *rows) sum(x ptx.F32) ptx.F32 {
	k := r.k
	x = butterfly(x, min(r.team, 32)/2)
	if r.team <= 32 {
		return x
	}
	k.If(k.Lane().Eq(k.U32(0)), func() { r.sums.At(k.WarpIndex().Shl(2)).StoreF32(x) })
	k.SyncCTA()
	first := r.slot.Times(4 * r.team / 32)
	total := r.sums.At(first).LoadF32()
	for i := 1; i < r.team/32; i++ {
		total = total.Add(r.sums.At(first).Plus(4 * i).LoadF32())
	}
	k.SyncCTA()
	return total
}

// total is the sum of the thread's own values, pairwise.
func total(x []ptx.F32) ptx.F32 {
	for len(x) > 1 {
		var y []ptx.F32
		for i := 0; i+1 < len(x); i += 2 {
			y = append(y, x[i].Add(x[i+1]))
		}
		if len(x)%2 == 1 {
			y = append(y, x[len(x)-1])
		}
		x = y
	}
	return x[0]
}

// grid is the CTAs for n rows on a device of so many SMs, each with at most perSM at once.
func (s strip) grid(n, sms, perSM int) ptx.Dim3 {
	return ptx.Dim3{X: min((n+s.perCTA()-1)/s.perCTA(), perSM*sms)}
}
