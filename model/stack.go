package model

import (
	"heddle/comm"
	"heddle/compute"
	"heddle/mesh"
	"heddle/parallel"
	"heddle/tensor"
)

// Model is one rank's transformer: blocks without state, and the shards that hold the parameters.
type Model struct {
	Config Config
	Scheme *parallel.Scheme
	Shards *parallel.Shards

	dev       *compute.Device
	grp       *comm.Group
	embedding embedding
	attention attention
	mlp       mlp
	head      head
	policy    Policy
}

// Use sets what Forward keeps. It is for before the first step.
func (m *Model) Use(p Policy) {
	m.policy = p
	m.attention.keep, m.mlp.keep = p.Mode == All, p.Mode == All
}

// New builds the model of one rank. The weights have no values until Shards.Load.
func New(c Config, s *parallel.Scheme, dev *compute.Device, grp *comm.Group) (*Model, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	table := c.Table(s)
	shards, err := parallel.NewShards(dev, grp, s, table)
	if err != nil {
		return nil, err
	}
	b := block{cfg: c, dev: dev, grp: grp, residual: s.Residual, attend: s.Attend}
	return &Model{Config: c, Scheme: s, Shards: shards, dev: dev, grp: grp, attention: attention{b}, mlp: mlp{b},
		embedding: embedding{b, table[rowEmbed].Box(s.Mesh, dev.Rank).Lo[0]}, head: newHead(b, s, &table[rowEmbed])}, nil
}

// tokenAxes are the axes that cut tokens: a sum over tokens is partial on them.
func (m *Model) tokenAxes() mesh.Set { return m.Scheme.Data | m.Scheme.CP.KV | m.Scheme.CP.Rep }

// Count is the global number of unmasked tokens of the batches, a constant that every rank holds.
func (m *Model) Count(batches ...Batch) tensor.Tensor {
	m.dev.At("forward", -1)
	n := m.dev.NewIn(compute.Constant, m.dev.Type.Wide(), "", nil, m.dev.Mesh.Uniform(mesh.R).With(m.tokenAxes(), mesh.P))
	sc := m.dev.Open()
	m.dev.Zero(n)
	for _, b := range batches {
		m.dev.AddInto(n, m.dev.SumAll(b.Mask))
	}
	m.dev.Close(sc)
	n.Const = true
	return m.grp.AllReduceInPlace("token count", n, m.tokenAxes(), mesh.R)
}

// saved is what one layer keeps for Backward: its halves' saved tensors, or its input x alone.
type saved struct {
	x         tensor.Tensor
	attention *savedAttention
	mlp       *savedMLP
}

func (s *saved) tensors() []tensor.Tensor {
	if s.attention == nil {
		return []tensor.Tensor{s.x}
	}
	return append(s.attention.tensors(), s.mlp.tensors()...)
}

// Gradients runs one micro-batch forward and backward: it adds its gradients to the shards and returns its part of the loss
// sum, a scalar that is partial over tokenAxes. count is Count over all micro-batches of the step.
func (m *Model) Gradients(b Batch, count tensor.Tensor) tensor.Tensor {
	return m.gradients(b, count, nil)
}

// gradients is Gradients, or PolicyGradients where there is a weigh.
func (m *Model) gradients(b Batch, count tensor.Tensor, weigh Weigh) tensor.Tensor {
	d := m.dev
	d.At("forward", -1)
	step := d.Open()
	x := m.embed(b)
	kept := make([]*saved, m.Config.Layers)
	for l := range kept {
		x, kept[l] = m.forwardLayer(l, x, b.Pos)
	}
	root := m.Shards.Gather(0)
	grads := m.Shards.OpenGrads(0)
	gr := spread(m.Config.root(), grads.Rows)
	loss, dx := m.lossAndGrad(spread(m.Config.root(), root.Rows), gr, b, count, x, weigh)
	m.Shards.Release(root)
	for l := m.Config.Layers - 1; l >= 0; l-- {
		dx = m.backwardLayer(l, dx, b.Pos, kept[l])
	}
	d.At("backward", -1)
	m.embedding.Backward(gr, b, dx)
	m.Shards.Reduce(0, grads)
	m.Shards.Drain()
	d.Close(step, loss)
	return loss
}

// embed puts tokens on the stream. Under fsdp the root unit is whole here and for the head, not between.
func (m *Model) embed(b Batch) tensor.Tensor {
	root := m.Shards.Gather(0)
	m.Shards.Fetch(1)
	sc := m.dev.Open()
	x := m.embedding.Forward(spread(m.Config.root(), root.Rows), b)
	m.dev.Close(sc, x)
	m.Shards.Release(root)
	return x
}

// after is the unit that is used after layer l's in Forward: the next layer's, or the root for the head.
func (m *Model) after(l int) int { return (l + 2) % (m.Config.Layers + 1) }

// layerRows are the slots of a layer's unit.
func (m *Model) layerRows(g parallel.Gathered) []tensor.Tensor {
	return spread(m.Config.layer(), g.Rows)
}

// forwardLayer runs layer l; its weights are whole only within, but for the last layer's: Backward begins with them. The next
// unit's are on their way meanwhile. It owns x.
func (m *Model) forwardLayer(l int, x, pos tensor.Tensor) (tensor.Tensor, *saved) {
	d := m.dev
	d.At("forward", l)
	g := m.Shards.Gather(l + 1)
	m.Shards.Fetch(m.after(l))
	release := m.Shards.Release
	if l == m.Config.Layers-1 {
		release = m.Shards.Hold
	}
	w := m.layerRows(g)
	s := &saved{x: x}
	sc := d.Open()
	y, sa := m.attention.Forward(w, x, pos)
	if m.policy.full(l) {
		d.Close(sc, y)
		sc = d.Open()
		z, _ := m.mlp.Forward(w, y)
		d.Close(sc, z)
		d.Free(y)
		release(g)
		d.Retag(compute.Saved, x)
		return z, s
	}
	d.Close(sc, append(sa.tensors(), y)...)
	m.drop(x, sa.x)
	sc = d.Open()
	z, sm := m.mlp.Forward(w, y)
	d.Close(sc, append(sm.tensors(), z)...)
	m.drop(y, sm.x)
	release(g)
	s.attention, s.mlp = sa, sm
	d.Retag(compute.Saved, s.tensors()...)
	return z, s
}

// drop frees the stream's x unless it is what the sub-block keeps of it; LayerNorm keeps x less its mean.
func (m *Model) drop(x, kept tensor.Tensor) {
	if x.Alloc != kept.Alloc {
		m.dev.Free(x)
	}
}

// again runs layer l forward once more, up to what Backward reads.
func (m *Model) again(w []tensor.Tensor, pos tensor.Tensor, s *saved) {
	d := m.dev
	sc := d.Open()
	y, sa := m.attention.Forward(w, s.x, pos)
	d.Close(sc, append(sa.tensors(), y)...)
	m.drop(s.x, sa.x)
	sc = d.Open()
	sm := m.mlp.Save(w, y)
	d.Close(sc, sm.tensors()...)
	m.drop(y, sm.x)
	s.attention, s.mlp = sa, sm
	d.Retag(compute.Saved, s.tensors()...)
}

// backwardLayer takes the gradient through layer l and frees what the layer kept.
func (m *Model) backwardLayer(l int, dy, pos tensor.Tensor, s *saved) tensor.Tensor {
	d := m.dev
	d.At("backward", l)
	g := m.Shards.Gather(l + 1)
	if l > 0 {
		m.Shards.Fetch(l)
	}
	w := m.layerRows(g)
	if s.attention == nil {
		m.again(w, pos, s)
	}
	grads := m.Shards.OpenGrads(l + 1)
	gr := m.layerRows(grads)
	sc := d.Open()
	dx := m.mlp.Backward(w, gr, dy, s.mlp)
	d.Close(sc, dx)
	d.Free(dy)
	d.Free(s.mlp.tensors()...)
	dy = dx
	sc = d.Open()
	dx = m.attention.Backward(w, gr, dy, pos, s.attention)
	d.Close(sc, dx)
	d.Free(dy)
	d.Free(s.attention.tensors()...)
	m.Shards.Release(g)
	m.Shards.Reduce(l+1, grads)
	return dx
}

// lossAndGrad runs the head both ways, with the root's slots. x, the head's input, is freed.
func (m *Model) lossAndGrad(w, gr []tensor.Tensor, b Batch, count, x tensor.Tensor, weigh Weigh) (loss, dx tensor.Tensor) {
	d := m.dev
	d.At("forward", -1)
	sc := d.Open()
	t := compute.Targets{Labels: b.Labels, Mask: b.Mask, Count: count}
	loss, kept := m.head.Forward(w, x, t)
	if weigh != nil {
		t.Mask = m.weights(weigh, kept.sp, b.Mask)
	}
	d.At("backward", -1)
	dx = m.head.Backward(w, gr, t, kept)
	d.Close(sc, loss, dx)
	d.Free(x)
	return loss, dx
}

// Loss is the summed loss of a batch without gradients, partial over the axes that cut tokens.
func (m *Model) Loss(b Batch) tensor.Tensor {
	d := m.dev
	step := d.Open()
	root, x := m.run(b)
	loss, _ := m.head.Forward(spread(m.Config.root(), root.Rows), x, compute.Targets{Labels: b.Labels, Mask: b.Mask})
	m.Shards.Release(root)
	d.Close(step, loss)
	return loss
}

// Logits are the logits of a batch, [B, S, V] cut as the scheme cuts tokens and vocabulary.
func (m *Model) Logits(b Batch) tensor.Tensor {
	step := m.dev.Open()
	root, x := m.run(b)
	k := m.head.Logits(spread(m.Config.root(), root.Rows), x)
	m.Shards.Release(root)
	m.dev.Close(step, k.logits)
	return k.logits
}

// run is the stack without keeping anything.
func (m *Model) run(b Batch) (parallel.Gathered, tensor.Tensor) {
	d := m.dev
	d.At("evaluation", -1)
	x := m.embed(b)
	for l := range m.Config.Layers {
		d.At("evaluation", l)
		g := m.Shards.Gather(l + 1)
		m.Shards.Fetch(m.after(l))
		w := m.layerRows(g)
		sc := d.Open()
		y, _ := m.attention.Forward(w, x, b.Pos)
		z, _ := m.mlp.Forward(w, y)
		d.Close(sc, z)
		d.Free(x)
		m.Shards.Release(g)
		x = z
	}
	d.At("evaluation", -1)
	return m.Shards.Gather(0), x
}

// Total sums a loss over the axes that cut tokens.
func (m *Model) Total(loss tensor.Tensor) tensor.Tensor {
	return m.grp.AllReduce("loss total", loss, m.tokenAxes(), mesh.I)
}
