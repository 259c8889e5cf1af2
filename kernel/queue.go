package kernel

import "heddle/ptx"

// Queue tells all CTAs of a cluster which tile comes next: one thread of its first CTA draws the numbers from a counter in global memory, so that a cluster that is
// done early takes more, and sends them to every CTA's shared memory. The cluster's own index is its first tile.
//
// The counter counts 0 … tiles−1 and starts again: every cluster draws once for each tile it does, with the draw that ends it, so a launch whose clusters are no
// more than its tiles draws exactly as often as it has tiles, and the next launch finds 0 again.
type Queue struct {
	Counter     ptx.GAddr
	Tiles       ptx.U32 // of the launch
	slots       ptx.SAddr
	full, empty ptx.Bar
	cluster     int
	k           *ptx.Builder
}

const (
	queueDepth = 2
	slotBytes  = 16
)

// QueueBytes is the shared memory of a Queue.
const QueueBytes = queueDepth * (slotBytes + 16)

// NewQueue reserves slots and barriers, for clusters of so many CTAs.
func NewQueue(k *ptx.Builder, counter ptx.GAddr, tiles ptx.U32, cluster int) Queue {
	return Queue{counter, tiles, k.Shared("next", queueDepth*slotBytes, 16).Addr(), k.Bars("announced", queueDepth), k.Bars("noted", queueDepth), cluster, k}
}

// Init makes the barriers, in one thread: announced takes the drawer's arrival and its four bytes; noted, in the first CTA, takes one arrival of each reading warp of
// the cluster: the consumers' and, in the other CTAs, the producer's.
func (q Queue) Init(consumerWarps int) {
	for i := range queueDepth {
		q.full.Index(q.k.U32(i)).Init(1)
		q.empty.Index(q.k.U32(i)).Init(q.cluster*consumerWarps + q.cluster - 1)
	}
}

// Drawer is the side of the thread that draws.
func (q Queue) Drawer() Cursor { return q.ring().Producer() }

// Reader is the side of a warp that learns.
func (q Queue) Reader(level ptx.Level) Cursor { return q.ring().cursor(level, 0) }

func (q Queue) ring() Ring { return Ring{queueDepth, q.full, q.empty, q.k} }

// Draw takes the next tile from the counter. It may be one past the last or further: then there is none.
func (q Queue) Draw() ptx.U32 {
	return q.Counter.AtomicIncU32(q.Tiles.Sub(q.k.U32(1))).Add(q.k.NumClusters())
}

// Announce sends a tile to all CTAs of the cluster.
func (q Queue) Announce(at Cursor, tile ptx.U32) {
	k := q.k
	at.WaitEmpty()
	s := at.Slot()
	if q.cluster == 1 { // outside a cluster an H200 takes a remote arrival for an illegal instruction
		q.slots.At(s.Times(slotBytes)).StoreU32(tile)
		q.full.Index(s).Arrive()
		at.Advance()
		return
	}
	for rank := range q.cluster {
		to := q.full.Index(s).Map(k.U32(rank))
		to.ArriveExpect(4)
		q.slots.At(s.Times(slotBytes)).Map(k.U32(rank)).StoreAsyncU32(tile, to)
	}
	at.Advance()
}

// Next waits for the next tile; whole warps call it, or one thread alone (level Lane).
func (q Queue) Next(at Cursor, level ptx.Level) ptx.U32 {
	k := q.k
	at.WaitFull()
	s := at.Slot()
	tile := q.slots.At(s.Times(slotBytes)).LoadU32()
	note := func() { q.empty.Index(s).Arrive() }
	if q.cluster > 1 {
		noted := q.empty.Index(s).Map(k.U32(0))
		note = noted.Arrive
	}
	if level == ptx.Lane {
		note()
	} else {
		tile = tile.Same(level)
		k.When(k.Lane().Eq(k.U32(0)), note)
	}
	at.Advance()
	return tile
}
