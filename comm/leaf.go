package comm

import (
	"fmt"

	"heddle/tensor"
)

// Kind is a collective operation.
type Kind uint8

const (
	AllReduceSum Kind = iota
	AllReduceMax
	AllGather
	ReduceScatter
	AllToAll
	Broadcast
	SendRecv
	Barrier
)

func (k Kind) String() string {
	return [...]string{"all-reduce", "all-reduce max", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send/recv", "barrier"}[k]
}

// Op is one collective of one rank, on dense data: blocks lie one after the other in the order of Ranks.
//
//	all-reduce      Dst, Src [n]: Dst = Σ (or max) over ranks, in rank order; Dst may be Src
//	all-gather      Src [n], Dst [P·n]
//	reduce-scatter  Src [P·n], Dst [n]: block Me, summed in rank order
//	all-to-all      Src, Dst: block j of Src goes to Ranks[j]; sizes SendCounts, RecvCounts (nil: equal)
//	broadcast       Dst of every rank = Src of Ranks[Root]
//	send/recv       Src to rank Peer or Dst from it, the other one empty; Ranks are the two
type Op struct {
	Kind       Kind
	Site       string // where in the program: "attention exit"
	Axes       string // mesh axes, as people call them
	Phase      string // and Layer: where the rank was, as set by Device.At
	Layer      int
	Seq        uint64 // number of this op among those of the same ranks
	Ranks      []int
	Me         int
	Dst, Src   tensor.Tensor
	SendCounts []int
	RecvCounts []int
	Root       int
	Uneven     bool // its size, or whether there is anything to send at all, depends on where the ranks lie on other axes
	second     bool // the second call of a planted Double

	// Received is set by the leaf: the bytes that this rank took from other ranks.
	Received int64
}

// Leaf moves the data. Start and Wait are called by the rank's own goroutine, in the same order on every rank of the op.
type Leaf interface {
	// Start gives the op to the machine; Src must not change and Dst must not be read before Wait returns.
	Start(*Op)
	// Wait returns when Dst holds the result and Src may change. An error ends the run: it names what is missing.
	Wait(*Op) error
	// Abort tells every rank that waits, now or later, why the run ends. The first cause wins.
	Abort(cause error)
}

// Signature is what must be equal on every rank of an op. Phase and layer are part of it: a call that is left out shows at the
// next one, even where every layer makes the same.
type Signature struct {
	Kind  Kind
	Elems int
	Type  tensor.DType
	Site  string
	Phase string
	Layer int
}

// Signature is o's.
func (o *Op) Signature() Signature {
	s := Signature{o.Kind, o.Src.Elems(), o.Src.Type, o.Site, o.Phase, o.Layer}
	switch {
	case o.Kind == SendRecv: // the two sides differ in size and may stand in different layers; counts are matched pairwise
		s.Elems, s.Phase, s.Layer = 0, "", 0
	case o.Kind == AllToAll && o.SendCounts != nil:
		s.Elems = 0
	}
	return s
}

func (s Signature) String() string {
	out := fmt.Sprintf("%s of %d %s at %q", s.Kind, s.Elems, s.Type, s.Site)
	switch {
	case s.Phase == "":
	case s.Layer < 0:
		out += " in " + s.Phase
	default:
		out += fmt.Sprintf(" in %s of layer %d", s.Phase, s.Layer)
	}
	return out
}

// Wire is the bytes that rank Me receives by op's definition: an all-reduce is a reduce-scatter and an all-gather of chunks
// (Chunk), 2(P−1)/P of the tensor where P divides it.
func (o *Op) Wire() int64 {
	p, size := len(o.Ranks), o.Src.Type.Size()
	n := 0
	switch o.Kind {
	case AllReduceSum, AllReduceMax:
		lo, hi := Chunk(o.Src.Elems(), p, o.Me)
		n = (p-1)*(hi-lo) + o.Src.Elems() - (hi - lo)
	case AllGather:
		n = (p - 1) * o.Src.Elems()
	case ReduceScatter:
		n = (p - 1) * o.Dst.Elems()
	case AllToAll:
		if o.RecvCounts == nil {
			n = o.Dst.Elems() / p * (p - 1)
			break
		}
		for j, c := range o.RecvCounts {
			if j != o.Me {
				n += c
			}
		}
	case Broadcast:
		if o.Me != o.Root {
			n = o.Dst.Elems()
		}
	case SendRecv:
		n = o.Dst.Elems()
	}
	return int64(n * size)
}

// Chunk is the part [lo, hi) of n elements that rank i of p reduces in an all-reduce: equal parts, rounded up, the last ones
// short or empty.
func Chunk(n, p, i int) (lo, hi int) {
	c := (n + p - 1) / p
	return min(i*c, n), min((i+1)*c, n)
}
