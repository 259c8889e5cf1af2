// Package comm is the front of collectives: a Group checks places, packs, meters and logs each call and gives dense data to a
// Leaf: local (goroutine ranks), dry (nothing moves), nccl, mpi.
//
// Every call has a site, the place in the program that made it; it stands in logs, errors and the mutation tests. Start with
// Group.AllReduce; toheads.go has the all-to-all of Ulysses.
package comm

import (
	"fmt"
	"time"

	"heddle/compute"
	"heddle/mesh"
	"heddle/tensor"
)

// Group is one rank's view of all collectives of a mesh. It shares the device's arena and call log.
type Group struct {
	dev   *compute.Device
	leaf  Leaf
	seq   map[mesh.Set]uint64
	pairs map[pairKey]uint64
	alter func(*Op) Alteration
	watch func(*Op)
	Meter *Meter // nil: calls are not metered
	Guard bool   // what this rank sends must be finite: it finds the rank that a NaN comes from
}

// New makes the group of a device's rank.
func New(dev *compute.Device, leaf Leaf) *Group {
	return &Group{dev: dev, leaf: leaf, seq: map[mesh.Set]uint64{}, pairs: map[pairKey]uint64{}}
}

// Aborted is the panic of a rank whose collective failed; train recovers it as compute.Fault.
type Aborted struct{ Err error }

func (a *Aborted) Error() string { return a.Err.Error() }
func (a *Aborted) Unwrap() error { return a.Err }

// Abort ends the run for every rank.
func (g *Group) Abort(cause error) { g.leaf.Abort(cause) }

func (g *Group) failf(site, format string, args ...any) {
	g.dev.Fail(site, fmt.Errorf(site+": "+format, args...))
}

// want checks that t lies at place p on every axis of the set.
func (g *Group) want(kind Kind, site string, t tensor.Tensor, axes mesh.Set, p mesh.Place) {
	for a := range axes.All() {
		if t.At[a] != p {
			g.failf(site, "%s of %s, want %s on axis %s", kind, g.dev.Describe(t), p, g.dev.Mesh.Axes()[a].Name)
		}
	}
}

// Handle is a collective in flight.
type Handle struct {
	g       *Group
	op      *Op
	axes    mesh.Set
	start   time.Time
	finish  func() tensor.Tensor
	staging []tensor.Tensor
}

// Wait ends the collective and returns its result.
func (h *Handle) Wait() tensor.Tensor {
	if h.op != nil {
		h.g.wait(h.op, h.axes, h.start)
	}
	out := h.finish()
	h.g.dev.Free(h.staging...)
	return out
}

// Done is the handle of a result that needs no collective.
func Done(t tensor.Tensor) *Handle {
	return &Handle{finish: func() tensor.Tensor { return t }, g: &Group{}}
}

func (g *Group) start(o *Op, axes mesh.Set, out tensor.Tensor, in ...tensor.Tensor) time.Time {
	m := g.dev.Mesh
	o.Axes, o.Ranks, o.Me = m.Name(axes), m.Group(g.dev.Rank, axes), m.Index(g.dev.Rank, axes)
	g.look(o)
	c := compute.Call{Op: o.Kind.String(), Site: o.Site, Axes: o.Axes, Bytes: o.Wire()}
	g.dev.Collective(c, out, in...)
	o.Seq = g.seq[axes]
	g.seq[axes]++
	began := time.Now()
	g.leaf.Start(o)
	return began
}

func (g *Group) wait(o *Op, axes mesh.Set, began time.Time) {
	waited := time.Now()
	if err := g.leaf.Wait(o); err != nil {
		panic(&Aborted{err})
	}
	end := time.Now()
	phase, layer := g.dev.Here()
	g.Meter.add(o, phase, layer, end.Sub(began))
	if g.dev.Rec != nil {
		g.dev.Rec.Span(compute.Span{Track: "collectives", Name: o.Kind.String() + " " + o.Axes + " " + o.Site, Start: waited, Dur: end.Sub(waited), Bytes: o.Wire(), Group: fmt.Sprint(o.Ranks)})
	}
}

// AllReduce sums partial t over the axes; the result is at place to (I where every rank goes on alike, R where each one's
// gradient is a part).
func (g *Group) AllReduce(site string, t tensor.Tensor, axes mesh.Set, to mesh.Place) tensor.Tensor {
	return g.StartAllReduce(site, t, axes, to).Wait()
}

// StartAllReduce starts AllReduce.
func (g *Group) StartAllReduce(site string, t tensor.Tensor, axes mesh.Set, to mesh.Place) *Handle {
	return g.allReduce(&Op{Kind: AllReduceSum, Site: site}, t, axes, to)
}

// AllReduceInPlace is AllReduce without a second buffer: t's memory holds the result.
func (g *Group) AllReduceInPlace(site string, t tensor.Tensor, axes mesh.Set, to mesh.Place) tensor.Tensor {
	return g.allReduce(&Op{Kind: AllReduceSum, Site: site, Dst: t}, t, axes, to).Wait()
}

// AllReduceUneven is AllReduceInPlace of what other groups of the same axes may have more or less of, or nothing: their calls are
// no measure for it.
func (g *Group) AllReduceUneven(site string, t tensor.Tensor, axes mesh.Set, to mesh.Place) tensor.Tensor {
	return g.allReduce(&Op{Kind: AllReduceSum, Site: site, Dst: t, Uneven: true}, t, axes, to).Wait()
}

// AllReduceMax is the elementwise maximum of a partial maximum; the result is invariant.
func (g *Group) AllReduceMax(site string, t tensor.Tensor, axes mesh.Set) tensor.Tensor {
	return g.allReduce(&Op{Kind: AllReduceMax, Site: site}, t, axes, mesh.I).Wait()
}

func (g *Group) allReduce(o *Op, t tensor.Tensor, axes mesh.Set, to mesh.Place) *Handle {
	if axes == 0 {
		return Done(t)
	}
	fault := g.altered(o, axes)
	switch {
	case fault == Drop:
		return Done(t)
	case fault == Swap && o.Kind == AllReduceMax:
		o.Kind = AllReduceSum
	case fault == Swap:
		o.Kind = AllReduceMax
	}
	from := mesh.P
	if o.Kind == AllReduceMax {
		from = mesh.M
	}
	g.want(o.Kind, o.Site, t, axes, from)
	if to != mesh.I && to != mesh.R {
		g.failf(o.Site, "all-reduce to %s", to)
	}
	out := o.Dst
	if out.Alloc == 0 {
		out = g.dev.New(t.Type, t.Letters, t.Dims, t.At)
	}
	out.At, out.Const = t.At.With(axes, to), t.Const
	o.Dst, o.Src = out, t
	h := &Handle{g: g, op: o, axes: axes, finish: func() tensor.Tensor { return out }}
	h.start = g.start(o, axes, out, t)
	if fault == Double {
		h.finish = func() tensor.Tensor {
			return g.allReduce(&Op{Kind: o.Kind, Site: o.Site, Uneven: o.Uneven, second: true}, out, axes, to).Wait()
		}
	}
	return h
}

// AllGather joins the blocks of the dim of letter, S(letter) on every axis of the set, outer axis first. The result is R.
func (g *Group) AllGather(site string, t tensor.Tensor, axes mesh.Set, letter byte) tensor.Tensor {
	return g.StartAllGather(site, t, axes, letter, compute.Scratch).Wait()
}

// StartAllGather starts AllGather; its result is memory of category c.
func (g *Group) StartAllGather(site string, t tensor.Tensor, axes mesh.Set, letter byte, c compute.Category) *Handle {
	if axes == 0 {
		return Done(t)
	}
	o := &Op{Kind: AllGather, Site: site}
	g.want(o.Kind, site, t, axes, mesh.S(letter))
	p, i := g.dev.Mesh.Count(axes), t.Index(letter)
	out := g.dev.NewIn(c, t.Type, t.Letters, scaled(t.Dims, i, p, 1), t.At.With(axes, mesh.R))
	out.Const = t.Const
	h := &Handle{g: g, op: o, axes: axes, finish: func() tensor.Tensor { return out }}
	o.Src, o.Dst = t, out
	if outer(t.Dims, i) > 1 { // blocks of the wire are not blocks of the result
		wire := g.dev.NewIn(compute.Comm, t.Type, "z"+t.Letters, append([]int{p}, t.Dims...), t.At)
		o.Dst = wire
		h.staging = append(h.staging, wire)
		h.finish = func() tensor.Tensor {
			for k := range p {
				g.dev.CopyBox(out, block(wire, t, k), compute.Box{DstLo: at(t.Dims, i, k*t.Dims[i]), SrcLo: at(t.Dims, i, 0), Dims: t.Dims})
			}
			return out
		}
	}
	h.start = g.start(o, axes, out, t)
	return h
}

// ReduceScatter sums partial t over the axes and leaves each rank its block of the dim of letter.
func (g *Group) ReduceScatter(site string, t tensor.Tensor, axes mesh.Set, letter byte) tensor.Tensor {
	return g.StartReduceScatter(site, t, axes, letter).Wait()
}

// StartReduceScatter starts ReduceScatter.
func (g *Group) StartReduceScatter(site string, t tensor.Tensor, axes mesh.Set, letter byte) *Handle {
	if axes == 0 {
		return Done(t)
	}
	return g.reduceScatter(&Op{Kind: ReduceScatter, Site: site}, t, axes, letter)
}

func (g *Group) reduceScatter(o *Op, t tensor.Tensor, axes mesh.Set, letter byte) *Handle {
	site, fault := o.Site, g.altered(o, axes)
	switch fault {
	case Drop:
		return Done(t)
	case Swap:
		return g.allReduce(&Op{Kind: AllReduceSum, Site: site, second: true}, t, axes, mesh.I)
	}
	g.want(o.Kind, site, t, axes, mesh.P)
	p, i := g.dev.Mesh.Count(axes), t.Index(letter)
	if t.Dims[i]%p != 0 {
		g.failf(site, "reduce-scatter: dim %c of %d is not divisible by %d ranks of %s", letter, t.Dims[i], p, g.dev.Mesh.Name(axes))
	}
	dims := scaled(t.Dims, i, 1, p)
	out := g.dev.New(t.Type, t.Letters, dims, t.At.With(axes, mesh.S(letter)))
	out.Const = t.Const
	h := &Handle{g: g, op: o, axes: axes, finish: func() tensor.Tensor { return out }}
	o.Src, o.Dst = t, out
	if outer(t.Dims, i) > 1 {
		wire := g.dev.NewIn(compute.Comm, t.Type, "z"+t.Letters, append([]int{p}, dims...), t.At)
		for k := range p {
			g.dev.CopyBox(block(wire, out, k), t, compute.Box{DstLo: at(dims, i, 0), SrcLo: at(dims, i, k*dims[i]), Dims: dims})
		}
		o.Src = wire
		h.staging = append(h.staging, wire)
	}
	h.start = g.start(o, axes, out, t)
	if fault == Double {
		h.finish = func() tensor.Tensor {
			return g.reduceScatter(&Op{Kind: ReduceScatter, Site: site, second: true}, out, axes, letter).Wait()
		}
	}
	return h
}

// Replicate sees an invariant tensor as replicated (or the other way for data without a gradient): nothing moves. Its gradient
// is the all-reduce P → I.
func (g *Group) Replicate(site string, t tensor.Tensor, axes mesh.Set) tensor.Tensor {
	for a := range axes.All() {
		if t.At[a] != mesh.I {
			g.failf(site, "replicate %s, want I on axis %s", g.dev.Describe(t), g.dev.Mesh.Axes()[a].Name)
		}
	}
	t.At = t.At.With(axes, mesh.R)
	return t
}

// Barrier waits for every rank of the axes.
func (g *Group) Barrier(site string, axes mesh.Set) {
	if axes == 0 {
		return
	}
	o := &Op{Kind: Barrier, Site: site}
	began := g.start(o, axes, tensor.Tensor{})
	g.wait(o, axes, began)
}

// Broadcast gives every rank of the axes the tensor of the one with coordinate root, in place.
func (g *Group) Broadcast(site string, t tensor.Tensor, axes mesh.Set, root int) {
	if axes == 0 {
		return
	}
	o := &Op{Kind: Broadcast, Site: site, Src: t, Dst: t, Root: root}
	began := g.start(o, axes, t, t)
	g.wait(o, axes, began)
}

// block is the k-th block of a staging tensor, shaped like t.
func block(wire, t tensor.Tensor, k int) tensor.Tensor {
	return wire.As(t.Letters, t.Dims, k*t.Elems())
}

func scaled(dims []int, i, mul, div int) []int {
	out := append([]int(nil), dims...)
	out[i] = out[i] * mul / div
	return out
}

func outer(dims []int, i int) int {
	n := 1
	for _, d := range dims[:i] {
		n *= d
	}
	return n
}

// at is the corner that is lo in dim i and 0 elsewhere.
func at(dims []int, i, lo int) []int {
	c := make([]int, len(dims))
	c[i] = lo
	return c
}

// pair runs a send or a receive between this rank and the one at index peer of the axes' group.
func (g *Group) pair(o *Op, axes mesh.Set, peer int) {
	m := g.dev.Mesh
	ranks := m.Group(g.dev.Rank, axes)
	me := m.Index(g.dev.Rank, axes)
	if peer < 0 || peer >= len(ranks) || peer == me {
		g.failf(o.Site, "send/recv with index %d of %d", peer, len(ranks))
	}
	o.Axes, o.Ranks, o.Me = m.Name(axes), []int{ranks[min(me, peer)], ranks[max(me, peer)]}, 0
	if peer < me {
		o.Me = 1
	}
	g.dev.Collective(compute.Call{Op: o.Kind.String(), Site: o.Site, Axes: o.Axes, Bytes: o.Wire()}, o.Dst, o.Src)
	g.look(o)
	key := pairKey{axes, peer}
	o.Seq = g.pairs[key]
	g.pairs[key]++
	began := time.Now()
	g.leaf.Start(o)
	g.wait(o, axes, began)
}

// pairKey counts the ops of one pair of ranks apart from those of the whole group.
type pairKey struct {
	axes mesh.Set
	peer int
}
