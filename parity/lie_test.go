package parity

import (
	"unsafe"

	"heddle/comm"
	"heddle/tensor"
)

// site is a reduction's place in the program: what a mutation is planted in. Ranks tells sets of factors of one axis apart.
type site struct {
	Name, Axes string
	Ranks      int
	Kind       comm.Kind
}

func siteOf(o *comm.Op) site { return site{o.Site, o.Axes, len(o.Ranks), o.Kind} }

// liar is a collective machine that does not do at one site what the program and its places say. float64 only.
//
//	Drop    the rank keeps its own part; of what others only move to it, nothing comes
//	Double  the result is twice as large
//	Swap    a sum is a maximum, a maximum a sum; what others move comes in another order
type liar struct {
	comm.Leaf
	at    site
	fault comm.Alteration
	own   map[*comm.Op][]float64 // a rank's part, before an op in place overwrites it
	other map[*comm.Op]*comm.Op  // what runs in place of a swapped reduce-scatter
}

func (l *liar) hit(o *comm.Op) bool {
	s := siteOf(o)
	if l.at.Kind == comm.AllToAll { // the sum of copied heads: its site's ranks are the copies, the op's all ranks of the axis
		return s.Name == l.at.Name && s.Kind == l.at.Kind && s.Axes == l.at.Axes
	}
	return s == l.at
}

func (l *liar) Start(o *comm.Op) {
	if !l.hit(o) {
		l.Leaf.Start(o)
		return
	}
	l.own[o] = append([]float64(nil), tensor.View[float64](o.Src)...)
	if l.fault == comm.Swap {
		switch o.Kind {
		case comm.AllReduceSum, comm.AllReduceMax:
			o.Kind = comm.AllReduceSum + comm.AllReduceMax - o.Kind
		case comm.ReduceScatter:
			o = l.insteadOf(o)
		}
	}
	l.Leaf.Start(o)
}

// insteadOf is an all-reduce max of what o scatters.
func (l *liar) insteadOf(o *comm.Op) *comm.Op {
	x := *o
	x.Kind = comm.AllReduceMax
	x.Dst = o.Src
	x.Dst.Mem.Ptr = unsafe.Pointer(&make([]float64, o.Src.Elems())[0])
	l.other[o] = &x
	return &x
}

func (l *liar) Wait(o *comm.Op) error {
	own, ok := l.own[o]
	if !ok {
		return l.Leaf.Wait(o)
	}
	delete(l.own, o)
	dst := tensor.View[float64](o.Dst)
	if x := l.other[o]; x != nil {
		delete(l.other, o)
		err := l.Leaf.Wait(x)
		copy(dst, tensor.View[float64](x.Dst)[o.Me*len(dst):])
		return err
	}
	err := l.Leaf.Wait(o)
	if l.fault == comm.Swap && o.Kind <= comm.AllReduceMax { // as the program called it
		o.Kind = comm.AllReduceSum + comm.AllReduceMax - o.Kind
		return err
	}
	l.falsify(o, dst, own)
	return err
}

// moves tells whether a collective brings blocks without reducing them.
func moves(k comm.Kind) bool { return k == comm.AllToAll || k == comm.AllGather }

func (l *liar) falsify(o *comm.Op, dst, own []float64) {
	p := len(o.Ranks)
	switch {
	case l.fault == comm.Double:
		for i := range dst {
			dst[i] *= 2
		}
	case l.fault == comm.Drop && moves(o.Kind):
		for j := range p {
			if j != o.Me {
				clear(dst[j*len(dst)/p : (j+1)*len(dst)/p])
			}
		}
	case l.fault == comm.Drop && o.Kind == comm.ReduceScatter:
		copy(dst, own[o.Me*len(dst):])
	case l.fault == comm.Drop:
		copy(dst, own)
	case l.fault == comm.Swap && moves(o.Kind):
		old := append([]float64(nil), dst...)
		n := len(dst) / p
		for j := range p {
			copy(dst[j*n:(j+1)*n], old[(j+1)%p*n:])
		}
	}
}

// noting tells of every op that starts.
type noting struct {
	comm.Leaf
	tell func(*comm.Op)
}

func (n noting) Start(o *comm.Op) {
	n.tell(o)
	n.Leaf.Start(o)
}
