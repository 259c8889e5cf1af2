package kernel

import "heddle/ptx"

// Reads brings what matrices of the stored type hold at the places of the chunks to be stored into the store buffers, before the chunks are computed.
type Reads struct {
	Loaded ptx.Bar // one for each buffer, 1 arrival + the chunk's bytes
	parity []*ptx.Var[ptx.U32]
}

// NewReads makes the reader of one warpgroup, whose barriers, of so many buffers, have been made.
func NewReads(k *ptx.Builder, loaded ptx.Bar, buffers int) *Reads {
	r := &Reads{Loaded: loaded}
	for range buffers {
		r.parity = append(r.parity, ptx.NewVar(k, k.U32(0)))
	}
	return r
}

// Begin fetches what the first batches of a tile read, as many as there are buffers for. All four warps call it before the products of the tile.
func (s Store) Begin(k *ptx.Builder, batches []Batch) {
	if s.Reads == nil {
		return
	}
	wide := len(batches[0].Chunks)
	k.If(s.Lead(k), func() {
		k.BulkWaitRead(0) // the tile before has left the buffers
		for i := range min(s.Count/wide, len(batches)) {
			s.fetch(k, batches[i], i*wide)
		}
	})
}

// fetch starts, in the leading thread, to load a batch into the buffers from the first-th on.
func (s Store) fetch(k *ptx.Builder, b Batch, first int) {
	for c, at := range b.Chunks {
		full := s.Reads.Loaded.Index(k.U32(first + c))
		full.ArriveExpect(chunkBytes)
		at.From.Load2(s.Buffers.Plus((first+c)*chunkBytes), at.Col.Plus(at.Right), at.Row.Plus(at.Down), full)
	}
}

// wait waits for the buffers from the first-th on.
func (r *Reads) wait(k *ptx.Builder, first, count int) {
	for i := range count {
		p := r.parity[first+i]
		r.Loaded.Index(k.U32(first + i)).Wait(p.Get())
		p.Set(p.Get().Xor(k.U32(1)))
	}
}
