package local

import (
	"heddle/comm"
	"heddle/tensor"
)

// part is which half of an all-reduce to run; other ops have the first only.
type part bool

const (
	first  part = false
	second part = true
)

// move does o's copying and returns the bytes that came from other ranks, counted as they are copied.
func move(o *comm.Op, ops []*comm.Op, half part) int64 {
	switch o.Src.Type {
	case tensor.F64:
		return int64(moveOf[float64](o, ops, half)) * 8
	case tensor.I32:
		return int64(moveOf[int32](o, ops, half)) * 4
	}
	return int64(moveOf[float32](o, ops, half)) * 4
}

// mover counts the elements taken from other ranks.
type mover[T float32 | float64 | int32] struct {
	me, moved int
}

func moveOf[T float32 | float64 | int32](o *comm.Op, ops []*comm.Op, half part) int {
	m := &mover[T]{me: o.Me}
	dst := tensor.View[T](o.Dst)
	n := len(ops)
	switch o.Kind {
	case comm.AllReduceSum, comm.AllReduceMax:
		if half == second {
			for i, p := range ops {
				if i == o.Me { // it is there, and the others read it now
					continue
				}
				lo, hi := comm.Chunk(len(dst), n, i)
				m.take(i, dst[lo:hi], tensor.View[T](p.Dst)[lo:hi])
			}
			break
		}
		lo, hi := comm.Chunk(len(dst), n, o.Me)
		m.reduce(dst[lo:hi], ops, lo, o.Kind == comm.AllReduceMax)
	case comm.ReduceScatter:
		m.reduce(dst, ops, o.Me*len(dst), false)
	case comm.AllGather:
		for i, p := range ops {
			src := tensor.View[T](p.Src)
			m.take(i, dst[i*len(src):(i+1)*len(src)], src)
		}
	case comm.AllToAll:
		m.exchange(o, ops, dst)
	case comm.Broadcast:
		if src := ops[o.Root].Src; src.Mem != o.Dst.Mem { // the root in place has it already, and the others read it
			m.take(o.Root, dst, tensor.View[T](src))
		}
	case comm.SendRecv:
		if p := 1 - o.Me; len(dst) > 0 {
			m.take(p, dst, tensor.View[T](ops[p].Src))
		}
	}
	return m.moved
}

func (m *mover[T]) take(from int, dst, src []T) {
	copy(dst, src)
	if from != m.me {
		m.moved += len(src)
	}
}

// reduce sums (or maximises) the elements from lo on of every rank's source, in rank order. dst may be this rank's source: a
// stretch is finished aside before it is stored.
func (m *mover[T]) reduce(dst []T, ops []*comm.Op, lo int, maximum bool) {
	var stretch [1024]T
	for at := 0; at < len(dst); at += len(stretch) {
		acc := stretch[:min(len(stretch), len(dst)-at)]
		for i, p := range ops {
			src := tensor.View[T](p.Src)[lo+at:][:len(acc)]
			switch {
			case i == 0:
				copy(acc, src)
			case maximum:
				for k, v := range src {
					acc[k] = max(acc[k], v)
				}
			default:
				for k, v := range src {
					acc[k] += v
				}
			}
			if i != m.me {
				m.moved += len(acc)
			}
		}
		copy(dst[at:], acc)
	}
}

func (m *mover[T]) exchange(o *comm.Op, ops []*comm.Op, dst []T) {
	n := len(ops)
	at := 0
	for i, p := range ops {
		src := tensor.View[T](p.Src)
		lo, c := o.Me*len(src)/n, len(src)/n
		if p.SendCounts != nil {
			lo, c = sum(p.SendCounts[:o.Me]), p.SendCounts[o.Me]
		}
		m.take(i, dst[at:at+c], src[lo:lo+c])
		at += c
	}
}

func sum(x []int) (s int) {
	for _, v := range x {
		s += v
	}
	return s
}
