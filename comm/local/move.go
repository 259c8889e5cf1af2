package local

import (
	"heddle/comm"
	"heddle/tensor"
)

// Mover moves the data of one rank's collectives. On a machine that queues its work, Mark is a point in the rank's queue and After holds the queue back until
// another rank's queue has passed its point; on one that works at once there is nothing to hold back.
type Mover interface {
	Mark() (point uint32, err error)
	After(rank int, point uint32) error
	// Take copies a tensor of another rank, or of this one.
	Take(dst, src tensor.Tensor)
	// Join is the elementwise sum of srcs in their order, or their maximum. dst may be one of them.
	Join(dst tensor.Tensor, srcs []tensor.Tensor, largest bool)
}

// part is which half of an all-reduce to run; other ops have the first only.
type part bool

const (
	first  part = false
	second part = true
)

// mover counts the elements taken from other ranks.
type mover struct {
	Mover
	o     *comm.Op
	ops   []*comm.Op
	moved int
}

// move does o's copying and returns the bytes that came from other ranks, counted as they are copied.
func move(by Mover, o *comm.Op, ops []*comm.Op, half part) int64 {
	m := &mover{Mover: by, o: o, ops: ops}
	n, size := len(ops), o.Dst.Elems()
	switch o.Kind {
	case comm.AllReduceSum, comm.AllReduceMax:
		if half == second {
			for i, p := range ops {
				if i == o.Me { // it is there, and the others read it now
					continue
				}
				lo, hi := comm.Chunk(size, n, i)
				m.take(i, span(o.Dst, lo, hi), span(p.Dst, lo, hi))
			}
			break
		}
		lo, hi := comm.Chunk(size, n, o.Me)
		m.join(span(o.Dst, lo, hi), lo, o.Kind == comm.AllReduceMax)
	case comm.ReduceScatter:
		m.join(span(o.Dst, 0, size), o.Me*size, false)
	case comm.AllGather:
		for i, p := range ops {
			k := p.Src.Elems()
			m.take(i, span(o.Dst, i*k, (i+1)*k), span(p.Src, 0, k))
		}
	case comm.AllToAll:
		m.exchange()
	case comm.Broadcast:
		if src := ops[o.Root].Src; src.Mem != o.Dst.Mem { // the root in place has it already, and the others read it
			m.take(o.Root, span(o.Dst, 0, size), span(src, 0, size))
		}
	case comm.SendRecv:
		if p := 1 - o.Me; size > 0 {
			m.take(p, span(o.Dst, 0, size), span(ops[p].Src, 0, size))
		}
	}
	return int64(m.moved * o.Src.Type.Size())
}

// span is the elements lo … hi−1 of t.
func span(t tensor.Tensor, lo, hi int) tensor.Tensor { return t.As("x", []int{hi - lo}, lo) }

func (m *mover) take(from int, dst, src tensor.Tensor) {
	m.Take(dst, src)
	if from != m.o.Me {
		m.moved += src.Elems()
	}
}

// join reduces the elements from lo on of every rank's source, in rank order.
func (m *mover) join(dst tensor.Tensor, lo int, largest bool) {
	n := dst.Elems()
	if n == 0 {
		return
	}
	srcs := make([]tensor.Tensor, len(m.ops))
	for i, p := range m.ops {
		srcs[i] = span(p.Src, lo, lo+n)
	}
	m.Join(dst, srcs, largest)
	m.moved += n * (len(m.ops) - 1)
}

func (m *mover) exchange() {
	n, at := len(m.ops), 0
	for i, p := range m.ops {
		lo, c := m.o.Me*p.Src.Elems()/n, p.Src.Elems()/n
		if p.SendCounts != nil {
			lo, c = sum(p.SendCounts[:m.o.Me]), p.SendCounts[m.o.Me]
		}
		m.take(i, span(m.o.Dst, at, at+c), span(p.Src, lo, lo+c))
		at += c
	}
}

func sum(x []int) (s int) {
	for _, v := range x {
		s += v
	}
	return s
}
