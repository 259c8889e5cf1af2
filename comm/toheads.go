package comm

import (
	"heddle/compute"
	"heddle/mesh"
	"heddle/tensor"
)

// Heads says how the heads of an all-to-all are cut: letter g over the axes KV, letter r over the axes Rep. Tokens are
// cut over both, KV outer.
type Heads struct{ KV, Rep mesh.Set }

func (h Heads) all() mesh.Set { return h.KV | h.Rep }

// ToHeads turns token shards into head shards, all tensors in one all-to-all (Jacobs et al. 2023, DeepSpeed-Ulysses):
// [b, s/P, g, r, ...] at S(s) → [b, s, g/kv, r/rep, ...] at S(g)@KV S(r)@Rep. A tensor without r (keys, values) is copied to
// every rank of Rep: R there.
func (g *Group) ToHeads(site string, h Heads, ts ...tensor.Tensor) []tensor.Tensor {
	axes := h.all()
	if axes == 0 {
		return ts
	}
	m := g.dev.Mesh
	nKV, nRep := m.Count(h.KV), m.Count(h.Rep)
	p := nKV * nRep
	out := make([]tensor.Tensor, len(ts))
	for i, t := range ts {
		g.want(AllToAll, site, t, axes, mesh.S('s'))
		dims := scaled(t.Dims, t.Index('s'), p, 1)
		at := t.At.With(h.KV, mesh.S('g')).With(h.Rep, mesh.R)
		dims = g.cut(site, dims, t, 'g', nKV)
		if t.Has('r') {
			dims, at = g.cut(site, dims, t, 'r', nRep), at.With(h.Rep, mesh.S('r'))
		}
		out[i] = g.dev.New(t.Type, t.Letters, dims, at)
	}
	for _, same := range byType(ts) {
		g.toHeads(site, axes, nRep, pick(ts, same), pick(out, same))
	}
	return out
}

// toHeads moves tensors of one type.
func (g *Group) toHeads(site string, axes mesh.Set, nRep int, ts, out []tensor.Tensor) {
	p := g.dev.Mesh.Count(axes)
	x := g.openExchange(site, p, blocks(out, 's', p), ts[0].Type)
	for j := range p {
		for i, t := range ts {
			box := x.shapes[i]
			g.dev.CopyBox(x.send(j, i), t, compute.Box{DstLo: make([]int, len(box)), SrcLo: headCorner(t, box, j/nRep, j%nRep), Dims: box})
		}
	}
	g.exchange(x, axes, ts, out[0])
	for j := range p {
		for i, t := range out {
			box := x.shapes[i]
			g.dev.CopyBox(t, x.recv(j, i), compute.Box{DstLo: at(box, t.Index('s'), j*box[t.Index('s')]), SrcLo: make([]int, len(box)), Dims: box})
		}
	}
	g.dev.Free(x.out, x.in)
}

// byType lists the indices of the tensors of each type, in order of first appearance: data of one type travel together.
func byType(ts []tensor.Tensor) (lists [][]int) {
	at := map[tensor.DType]int{}
	for i, t := range ts {
		k, ok := at[t.Type]
		if !ok {
			k = len(lists)
			at[t.Type], lists = k, append(lists, nil)
		}
		lists[k] = append(lists[k], i)
	}
	return lists
}

func pick(ts []tensor.Tensor, which []int) (out []tensor.Tensor) {
	for _, i := range which {
		out = append(out, ts[i])
	}
	return out
}

// ToTokens is the transpose of ToHeads: head shards become token shards. Where ToHeads copied (no r), the parts must be
// partial over Rep and are summed in rank order.
func (g *Group) ToTokens(site string, h Heads, ts ...tensor.Tensor) []tensor.Tensor {
	axes := h.all()
	if axes == 0 {
		return ts
	}
	m := g.dev.Mesh
	nKV, nRep := m.Count(h.KV), m.Count(h.Rep)
	p := nKV * nRep
	out := make([]tensor.Tensor, len(ts))
	for i, t := range ts {
		g.want(AllToAll, site, t, h.KV, mesh.S('g'))
		dims := g.cut(site, t.Dims, t, 's', p)
		dims = scaled(dims, t.Index('g'), nKV, 1)
		if t.Has('r') {
			g.want(AllToAll, site, t, h.Rep, mesh.S('r'))
			dims = scaled(dims, t.Index('r'), nRep, 1)
		} else {
			g.want(AllToAll, site, t, h.Rep, mesh.P)
		}
		out[i] = g.dev.New(t.Type, t.Letters, dims, t.At.With(axes, mesh.S('s')))
	}
	for _, same := range byType(ts) {
		g.toTokens(site, h, nRep, pick(ts, same), pick(out, same))
	}
	return out
}

// toTokens moves tensors of one type.
func (g *Group) toTokens(site string, h Heads, nRep int, ts, out []tensor.Tensor) {
	p := g.dev.Mesh.Count(h.all())
	x := g.openExchange(site, p, blocks(ts, 's', p), ts[0].Type)
	for j := range p {
		for i, t := range ts {
			box := x.shapes[i]
			g.dev.CopyBox(x.send(j, i), t, compute.Box{DstLo: make([]int, len(box)), SrcLo: at(box, t.Index('s'), j*box[t.Index('s')]), Dims: box})
		}
	}
	g.exchange(x, h.all(), ts, out[0])
	fault := None
	if nRep > 1 && summed(out) {
		fault = g.altered(&Op{Kind: AllToAll, Site: site}, h.Rep)
	}
	g.collect(out, x, nRep, fault)
	g.dev.Free(x.out, x.in)
}

// summed tells whether a tensor is there of which each rank of Rep has a part.
func summed(ts []tensor.Tensor) bool {
	for _, t := range ts {
		if !t.Has('r') {
			return true
		}
	}
	return false
}

// collect takes what every rank sent to its place among the heads and sums the parts of copied heads in rank order.
func (g *Group) collect(out []tensor.Tensor, x *exchange, nRep int, fault Alteration) {
	p := x.out.Dims[0]
	for j := range p {
		for i, t := range out {
			box := x.shapes[i]
			copied := !t.Has('r') && j%nRep > 0
			b := compute.Box{DstLo: headCorner(t, box, j/nRep, j%nRep), SrcLo: make([]int, len(box)), Dims: box, Add: copied && fault != Swap}
			if copied && fault == Drop {
				continue
			}
			g.dev.CopyBox(t, x.recv(j, i), b)
			if b.Add = true; !t.Has('r') && fault == Double {
				g.dev.CopyBox(t, x.recv(j, i), b)
			}
		}
	}
}

// cut divides dims at t's letter by n.
func (g *Group) cut(site string, dims []int, t tensor.Tensor, letter byte, n int) []int {
	i := t.Index(letter)
	if dims[i]%n != 0 {
		g.failf(site, "all-to-all: dim %c of %d is not divisible by %d", letter, dims[i], n)
	}
	return scaled(dims, i, 1, n)
}

// blocks are the shapes that one rank sends to another: head shards cut along letter into p.
func blocks(heads []tensor.Tensor, letter byte, p int) (shapes [][]int) {
	for _, t := range heads {
		shapes = append(shapes, scaled(t.Dims, t.Index(letter), 1, p))
	}
	return shapes
}

// headCorner is where the block of the rank (kv, rep) starts in a tensor that has all heads.
func headCorner(t tensor.Tensor, box []int, kv, rep int) []int {
	c := at(box, t.Index('g'), kv*box[t.Index('g')])
	if t.Has('r') {
		c[t.Index('r')] = rep * box[t.Index('r')]
	}
	return c
}

// exchange is one packed all-to-all: for each peer, one block of each tensor.
type exchange struct {
	site    string
	shapes  [][]int // of one block of each tensor
	letters []string
	offset  []int // of a tensor's block within a peer's part
	part    int   // elements for one peer
	out, in tensor.Tensor
}

func (g *Group) openExchange(site string, p int, shapes [][]int, t tensor.DType) *exchange {
	x := &exchange{site: site, shapes: shapes}
	for _, s := range shapes {
		x.offset = append(x.offset, x.part)
		x.letters = append(x.letters, "tuvwxyz"[:len(s)])
		x.part += outer(s, len(s))
	}
	dims := []int{p, x.part}
	x.out = g.dev.NewIn(compute.Comm, t, "zx", dims, mesh.Places{})
	x.in = g.dev.NewIn(compute.Comm, t, "zx", dims, mesh.Places{})
	return x
}

func (x *exchange) send(peer, i int) tensor.Tensor {
	return x.out.As(x.letters[i], x.shapes[i], peer*x.part+x.offset[i])
}

func (x *exchange) recv(peer, i int) tensor.Tensor {
	return x.in.As(x.letters[i], x.shapes[i], peer*x.part+x.offset[i])
}

func (g *Group) exchange(x *exchange, axes mesh.Set, from []tensor.Tensor, to tensor.Tensor) {
	o := &Op{Kind: AllToAll, Site: x.site, Src: x.out, Dst: x.in}
	began := g.start(o, axes, to, from...)
	g.wait(o, axes, began)
}

// AllToAllV sends counts[j] rows of t (its first dim) to the j-th rank of the axes and receives as many as recv says from
// each: both lists are known to the caller. The result's places are t's.
func (g *Group) AllToAllV(site string, t tensor.Tensor, axes mesh.Set, send, recv []int) tensor.Tensor {
	p := g.dev.Mesh.Count(axes)
	row, rows, got := 1, 0, 0
	for _, d := range t.Dims[1:] {
		row *= d
	}
	if len(send) != p || len(recv) != p {
		g.failf(site, "all-to-all: %d and %d counts for %d ranks", len(send), len(recv), p)
	}
	o := &Op{Kind: AllToAll, Site: site, SendCounts: make([]int, p), RecvCounts: make([]int, p)}
	for j := range p {
		if send[j] < 0 || recv[j] < 0 {
			g.failf(site, "all-to-all: negative count")
		}
		o.SendCounts[j], o.RecvCounts[j] = send[j]*row, recv[j]*row
		rows, got = rows+send[j], got+recv[j]
	}
	if rows != t.Dims[0] {
		g.failf(site, "all-to-all: counts sum to %d, %s has %d rows", rows, t.Letters, t.Dims[0])
	}
	dims := append([]int{got}, t.Dims[1:]...)
	out := g.dev.New(t.Type, t.Letters, dims, t.At)
	if axes == 0 {
		g.dev.Copy(out, t)
		return out
	}
	o.Src, o.Dst = t, out
	began := g.start(o, axes, out, t)
	g.wait(o, axes, began)
	return out
}

// Send sends t to, and Recv receives into t from, the rank at index peer of the axes' group. Both sides must call.
func (g *Group) Send(site string, t tensor.Tensor, axes mesh.Set, peer int) {
	g.pair(&Op{Kind: SendRecv, Site: site, Src: t, Dst: tensor.Tensor{Dims: []int{0}, Letters: "x", Type: t.Type}}, axes, peer)
}

// Recv is the other half of Send.
func (g *Group) Recv(site string, t tensor.Tensor, axes mesh.Set, peer int) {
	g.pair(&Op{Kind: SendRecv, Site: site, Dst: t, Src: tensor.Tensor{Dims: []int{0}, Letters: "x", Type: t.Type}}, axes, peer)
}
