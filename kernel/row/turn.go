package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// turn rotates a row that is a head by the angles of its token: column j with column j + cols/2, which another thread of the team has.
type turn struct {
	pos, table ptx.ParamPtr
	seq, heads ptx.ParamU32
	back       bool
}

// Angles says where a head's angles are: row i is of token i ÷ Heads, whose position is Pos[token mod Seq]; Table[position] holds cols/2 cosines, then as many sines.
type Angles struct {
	Pos, Table kernel.Place
	Seq, Heads int
}

// newTurn adds the parameters. It refuses rows of which a thread has not one access, and the thread half a team further the one that belongs to it.
func newTurn(k *ptx.Builder, s strip, back bool) (turn, error) {
	if s.each != 1 || s.team < 2 || s.team > 32 || s.team*s.width != s.cols {
		return turn{}, fmt.Errorf("row: heads of %d cannot be turned in one access of %d threads", s.cols, s.team)
	}
	return turn{k.ParamPtr("pos"), k.ParamPtr("table"), k.ParamU32("seq"), k.ParamU32("heads"), back}, nil
}

// Turns tells whether heads of so many columns can be turned by wide kernels.
func Turns(cols int) bool {
	s, err := lay(cols, true)
	return err == nil && s.each == 1 && s.team >= 2 && s.team <= 32 && s.team*s.width == cols
}

func (t turn) put(a *ptx.Args, at Angles) {
	at.Pos.Put(a, t.pos)
	at.Table.Put(a, t.table)
	t.seq.Put(a, uint32(at.Seq))
	t.heads.Put(a, uint32(at.Heads))
}

// visit is rows.visit over tokens, whose heads follow each other: their angles, four times the bytes of a head, are loaded once.
func (t turn) visit(r *rows, n ptx.U32, f func(row ptx.U32, here ptx.Pred, by func([]ptx.F32) []ptx.F32)) {
	k := r.k
	r.visit(n.Div(t.heads.U32), func(token ptx.U32, here ptx.Pred) {
		at := kernel.At(k, num.F32, t.pos.GAddr, token.Rem(t.seq.U32)).LoadF32().TruncU32()
		j := r.member.And(k.U32(r.team/2 - 1)).Times(r.width)
		line := kernel.At(k, num.F32, t.table.GAddr, at.Times(r.cols).Add(j))
		cos, sin := kernel.LoadSpan(k, num.F32, line, r.width), kernel.LoadSpan(k, num.F32, line.Plus(2*r.cols), r.width)
		lower := r.member.Lt(k.U32(r.team / 2))
		for i, s := range sin { // of the other column: the lower half loses, the upper gains; back it is the other way
			if t.back {
				sin[i] = lower.SelectF32(s, s.Neg())
			} else {
				sin[i] = lower.SelectF32(s.Neg(), s)
			}
		}
		first := token.Mul(t.heads.U32)
		k.For(k.U32(0), t.heads.U32, k.U32(1), func(head ptx.U32) {
			f(first.Add(head), here, func(x []ptx.F32) []ptx.F32 {
				y := make([]ptx.F32, len(x))
				for i := range x {
					y[i] = x[i].ShuffleXor(r.team/2).FMA(sin[i], x[i].Mul(cos[i]))
				}
				return y
			})
		})
	})
}
