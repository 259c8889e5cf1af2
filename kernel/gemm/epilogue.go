package gemm

import (
	"heddle/kernel"
	"heddle/ptx"
)

// columns is how far tiles are apart along N: columns of D for SwiGLU, whose tile of the product is half gate, half up.
func (c Config) columns() int {
	if c.Epi.Act == kernel.SwiGLU {
		return c.BN / 2
	}
	return c.BN
}

// initEpilogue makes the epilogue's barriers, in one thread.
func (b *builder) initEpilogue() {
	k, c := b.k, b.c
	if c.Epi.Vectors() > 0 {
		for i := range c.Consumers {
			b.vector.Index(k.U32(i)).Init(1)
		}
	}
	if c.Epi.ReadsC() {
		for i := range c.Consumers * c.Buffers {
			b.loaded.Index(k.U32(i)).Init(1)
		}
	}
}

// ending is a consumer's way from accumulators to D.
type ending struct {
	b      *builder
	accs   []*ptx.Acc
	store  kernel.Store
	finish *kernel.Finish
	group  ptx.U32
	source kernel.Source // of the product; nil: accs as they are
}

func (b *builder) epilogue(accs []*ptx.Acc, group ptx.U32, source kernel.Source) *ending {
	k, c := b.k, b.c
	e := &ending{b: b, accs: accs, group: group, source: source, store: kernel.Store{Type: c.Out, Add: c.Add, Buffers: b.sD.At(group.Times(c.storeBytes())), Count: c.Buffers, Barrier: group.Plus(1)}}
	if c.Epi == (kernel.Epilogue{}) && !c.StreamK && !c.Blocks {
		return e
	}
	e.finish = &kernel.Finish{Epilogue: c.Epi, Operands: b.p.Finish, Height: c.rows(), Width: c.BN}
	if c.Epi.Vectors() > 0 {
		e.finish.Vectors, e.finish.Loaded = b.vectors.At(group.Times(c.Epi.Vectors()*kernel.MaxVector)), b.vector.Index(group)
	}
	if c.Epi.ReadsC() {
		e.store.Reads = kernel.NewReads(k, b.loaded.Index(group.Times(c.Buffers)), c.Buffers)
	}
	e.finish.Start(k)
	return e
}

// begin is before the products of a tile: it starts to load what the epilogue will need. What it returns stores the tile.
func (e *ending) begin(w work) (finish func()) {
	k, row, col := e.b.k, w.row, w.col
	if e.b.c.StreamK {
		return e.streamed(w)
	}
	if e.b.c.Groups != Alone {
		return func() { e.ragged(w) }
	}
	if e.finish == nil {
		return func() { e.store.Tile(k, e.store.Rounded(e.b.p.D.TensorMap, e.accs, row, col)) }
	}
	if e.b.c.Overlap != Serial && (e.store.Reads != nil || e.finish.Epilogue.Vectors() > 0) {
		k.If(e.store.Lead(k), k.GridWait) // C and the vectors may be what the grid in front writes
	}
	source := e.source
	if source == nil {
		source = kernel.Plain(e.accs)
	}
	return e.tile(source, row, col)
}

// tile is begin for a tile whose product comes from a source.
func (e *ending) tile(from kernel.Source, row, col ptx.U32) (finish func()) {
	k := e.b.k
	batches := e.finish.Batches(e.store, e.b.p.D, from, row, col)
	e.finish.Begin(e.store.Lead(k), row, col)
	e.store.Begin(k, batches)
	return func() {
		e.finish.Wait()
		e.store.Tile(k, batches)
	}
}

// end is after the last tile.
func (e *ending) end() {
	if e.finish != nil {
		e.finish.End()
	}
	e.store.Finish(e.b.k)
}
