package kernel

import "heddle/ptx"

// Ring is a queue of stages in shared memory between one producer and its consumers. Each stage has two barriers: full completes when the stage's bytes have
// landed, empty when every consumer has let go of it.
type Ring struct {
	Stages      int
	Full, Empty ptx.Bar // the first of Stages barriers each
	k           *ptx.Builder
}

// NewRing reserves the barriers.
func NewRing(k *ptx.Builder, stages int) Ring {
	return Ring{stages, k.Bars("full", stages), k.Bars("empty", stages), k}
}

// Init makes the barriers, in one thread: full takes the producer's one arrival with its bytes, empty takes one arrival of each consumer of the cluster.
func (r Ring) Init(consumers int) {
	for i := range r.Stages {
		r.Full.Index(r.k.U32(i)).Init(1)
		r.Empty.Index(r.k.U32(i)).Init(consumers)
	}
}

// Cursor is one side's place in a ring: the stage it comes to next and the parity to wait for there.
type Cursor struct {
	ring        Ring
	slot, phase *ptx.Var[ptx.U32]
}

// Producer starts at stage 0 with parity 1, which a new barrier lets pass: every stage begins empty. One thread produces, so its place may depend on what it has read.
func (r Ring) Producer() Cursor { return r.cursor(ptx.Lane, 1) }

// Consumer starts at stage 0 and waits for its first filling.
func (r Ring) Consumer() Cursor { return r.cursor(ptx.Warpgroup, 0) }

func (r Ring) cursor(level ptx.Level, phase int) Cursor {
	return Cursor{r, ptx.NewVarAt(r.k, level, r.k.U32(0)), ptx.NewVarAt(r.k, level, r.k.U32(phase))}
}

// Slot is the current stage.
func (c Cursor) Slot() ptx.U32 { return c.slot.Get() }

// WaitFull waits for the current stage's bytes.
func (c Cursor) WaitFull() { c.ring.Full.Index(c.slot.Get()).Wait(c.phase.Get()) }

// Peek looks whether the current stage's bytes have come, for a whole warp, and does not wait for them. It may say no for a while after they have.
func (c Cursor) Peek() ptx.Pred { return c.ring.Full.Index(c.slot.Get()).TryWait(c.phase.Get()).All() }

// WaitEmpty waits until the current stage is free.
func (c Cursor) WaitEmpty() { c.ring.Empty.Index(c.slot.Get()).Wait(c.phase.Get()) }

// Advance goes to the next stage; past the last one the parity flips.
func (c Cursor) Advance() {
	k := c.ring.k
	next, flipped := c.slot.Get().Plus(1), c.phase.Get().Xor(k.U32(1))
	wrap := next.Eq(k.U32(c.ring.Stages))
	c.slot.Set(next)
	k.When(wrap, func() {
		c.slot.Set(k.U32(0))
		c.phase.Set(flipped)
	})
}

// Drain waits until every stage is empty: before a producer ends, so that no consumer arrives at the barriers of a CTA that has gone.
func (c Cursor) Drain() {
	k := c.ring.k
	k.For(k.U32(0), k.U32(c.ring.Stages), k.U32(1), func(ptx.U32) {
		c.WaitEmpty()
		c.Advance()
	})
}

// Skip passes over n stages that another consumer works on.
func (c Cursor) Skip(n ptx.U32) {
	k := c.ring.k
	far := c.slot.Get().Add(n)
	rounds := far.Div(k.U32(c.ring.Stages))
	c.slot.Set(far.Sub(rounds.Times(c.ring.Stages)))
	c.phase.Set(c.phase.Get().Xor(rounds.And(k.U32(1))))
}
