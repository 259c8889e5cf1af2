package local

import (
	"fmt"
	"unsafe"

	"heddle/comm"
	"heddle/tensor"
)

// Fault is one thing that goes wrong in a seeded world: in the n-th call of a rank, counted from 0.
type Fault struct {
	Kind FaultKind
	Rank int
	Call int
	Next comm.Signature // Reorder: the call over the same ranks that is made first
}

// FaultKind is what goes wrong.
type FaultKind uint8

const (
	NoFault   FaultKind = iota
	Panic               // the rank panics instead of making the call
	Stall               // it comes after all deadlines
	Skip                // it goes on without the call
	Twice               // it makes the call twice
	Reorder             // it makes a later call in its place
	OtherSize           // it sends one element more
	OtherType           // it sends another type
	OtherOp             // it makes another operation
	FaultKinds
)

func (k FaultKind) String() string {
	return [...]string{"none", "panic", "stall", "skipped", "doubled", "reordered", "wrong size", "wrong dtype", "wrong operation"}[k]
}

// Planted is what a rank with the fault Panic panics with.
type Planted struct{ Call comm.Signature }

func (p Planted) Error() string { return fmt.Sprintf("planted in %s", p.Call) }

// seeded is what a leaf of a seeded world knows of its own faults.
type seeded struct {
	made    int              // calls
	shift   map[string]int64 // by ranks: calls made more often than the program did
	skipped map[*comm.Op]bool
	twice   *comm.Op // is made a second time at once
	second  *comm.Op // the same with the next number
}

// start takes turns, then starts o, with the fault that is planted there. It returns nil where o is not to be made.
func (l *Leaf) start(o *comm.Op) *comm.Op {
	t := l.world.turns
	t.tardy(l.rank)
	t.calls[l.rank] = append(t.calls[l.rank], Called{o.Signature(), o.Ranks})
	f, hit := t.sim.Fault, false
	if hit = f.Kind != NoFault && f.Rank == l.rank && f.Call == l.own.made; hit {
		switch f.Kind {
		case Panic:
			panic(Planted{o.Signature()})
		case Stall:
			t.sleep(l.rank, 100*l.world.deadline)
		case Skip:
			keep(o)
			l.shifted(o, -1)
			l.own.skipped[o] = true
			l.own.made++
			return nil
		}
	}
	l.own.made++
	o.Seq = uint64(int64(o.Seq) + l.own.shift[ranksOf(o)])
	if !hit {
		return o
	}
	bad := *o
	switch f.Kind {
	case Twice:
		second := *o
		second.Seq++
		l.shifted(o, 1)
		l.own.twice, l.own.second = o, &second
		return o
	case Reorder:
		n := f.Next
		bad.Kind, bad.Site, bad.Phase, bad.Layer = n.Kind, n.Site, n.Phase, n.Layer
		bad.Src = tensor.Tensor{Letters: "x", Dims: []int{n.Elems}, Type: n.Type}
	case OtherSize:
		bad.Src = tensor.Tensor{Letters: "x", Dims: []int{o.Src.Elems() + 1}, Type: o.Src.Type}
	case OtherType:
		bad.Src = tensor.Tensor{Letters: "x", Dims: []int{o.Src.Elems()}, Type: tensor.I32}
	case OtherOp:
		if bad.Kind = comm.AllReduceMax; o.Kind == comm.AllReduceMax {
			bad.Kind = comm.AllReduceSum
		}
	}
	*o = bad // ranks find out before they look at data
	return o
}

func (l *Leaf) shifted(o *comm.Op, by int64) { l.own.shift[ranksOf(o)] += by }

// keep leaves in Dst what a program without the call would go on with: its own part.
func keep(o *comm.Op) {
	n, m := o.Dst.Bytes(), o.Src.Bytes()
	if o.Dst.Mem.Ptr == nil || o.Dst.Mem == o.Src.Mem {
		return
	}
	dst, src := unsafe.Slice((*byte)(o.Dst.Mem.Ptr), n), unsafe.Slice((*byte)(o.Src.Mem.Ptr), m)
	for at := 0; at < n; at += max(1, m) {
		copy(dst[at:], src)
	}
}
