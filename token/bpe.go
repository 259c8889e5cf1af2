package token

import "slices"

// How one word becomes ids. The rule: of all neighbouring pairs that have a merge, apply the one of lowest rank, leftmost first, until none is left.
// Short words do exactly that; long ones need a queue, so that time stays linear.
const (
	longWord   = 48      // symbols from which the queue is used
	cachedWord = 64      // bytes up to which a word's ids are remembered
	cacheWords = 1 << 17 // words after which the memory starts afresh
)

// pairTable maps a pair of ids to the index of its merge: open addressing with linear probing, about twice as fast as a map.
type pairTable struct {
	keys  []uint64 // pair + 1; 0 is empty
	ranks []int32
	shift uint
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func newPairTable(merges []merge) pairTable {
	bits := uint(4)
	for 1<<bits < 2*len(merges) {
		bits++
	}
	p := pairTable{keys: make([]uint64, 1<<bits), ranks: make([]int32, 1<<bits), shift: 64 - bits}
	for rank, m := range merges {
		if i, found := p.slot(pairKey(m.left, m.right)); !found {
			p.keys[i], p.ranks[i] = pairKey(m.left, m.right)+1, int32(rank)
		}
	}
	return p
}

func (p *pairTable) slot(key uint64) (int, bool) {
	i := key * 0x9E3779B97F4A7C15 >> p.shift
	for {
		switch p.keys[i] {
		case key + 1:
			return int(i), true
		case 0:
			return int(i), false
		}
		i = (i + 1) & uint64(len(p.keys)-1)
	}
}

// rank returns the rank of the merge of left and right, or noMerge.
func (p *pairTable) rank(left, right int32) int32 {
	if i, found := p.slot(pairKey(left, right)); found {
		return p.ranks[i]
	}
	return noMerge
}

const noMerge = 1<<31 - 1

// scratch is what encoding needs besides the tokenizer: a memory of words and buffers. One goroutine uses it at a time.
type scratch struct {
	cache map[string]uint64 // word → offset<<32 | count in arena
	arena []int32
	ids   []int32
	ranks []int32
	list  []node
	queue pairQueue
}

func newScratch() *scratch { return &scratch{cache: make(map[string]uint64)} }

// word appends the ids of one word.
func (s *scratch) word(t *Tokenizer, dst []int32, w []byte) []int32 {
	if len(w) > cachedWord {
		return s.merged(t, dst, w)
	}
	if at, ok := s.cache[string(w)]; ok {
		return append(dst, s.arena[at>>32:at>>32+at&0xFFFFFFFF]...)
	}
	if len(s.cache) >= cacheWords {
		clear(s.cache)
		s.arena = s.arena[:0]
	}
	from := len(dst)
	dst = s.merged(t, dst, w)
	s.cache[string(w)] = uint64(len(s.arena))<<32 | uint64(len(dst)-from)
	s.arena = append(s.arena, dst[from:]...)
	return dst
}

// byteID is the symbol that a byte starts as, -1 where it is left out.
func (t *Tokenizer) byteID(c byte) int32 {
	if id := t.bytes[c]; id >= 0 {
		return id
	}
	return t.unknown
}

func (s *scratch) merged(t *Tokenizer, dst []int32, w []byte) []int32 {
	if t.ignoreMerges {
		if id, ok := t.ids[string(w)]; ok {
			return append(dst, id)
		}
	}
	if len(w) >= longWord {
		return s.mergeLong(t, dst, w)
	}
	ids, ranks := s.ids[:0], s.ranks[:0]
	for _, c := range w {
		id := t.byteID(c)
		if id < 0 {
			continue
		}
		if ids = append(ids, id); len(ids) > 1 {
			ranks = append(ranks, t.ranks.rank(ids[len(ids)-2], id)) // ranks[i] is of ids[i], ids[i+1]
		}
	}
	s.ids, s.ranks = ids, ranks
	for {
		best, at := int32(noMerge), -1
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			return append(dst, ids...)
		}
		ids[at] = t.merges[best].id
		ids = append(ids[:at+1], ids[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at > 0 {
			ranks[at-1] = t.ranks.rank(ids[at-1], ids[at])
		}
		if at < len(ranks) {
			ranks[at] = t.ranks.rank(ids[at], ids[at+1])
		}
	}
}

// node is one symbol of a long word in a doubly linked list; a merged-away right half has id -1.
type node struct{ id, prev, next int32 }

// mergeLong merges a word of any length with a queue of pairs.
func (s *scratch) mergeLong(t *Tokenizer, dst []int32, w []byte) []int32 {
	list := slices.Grow(s.list[:0], len(w))
	for _, c := range w {
		if id := t.byteID(c); id >= 0 {
			i := int32(len(list))
			list = append(list, node{id, i - 1, i + 1})
		}
	}
	if len(list) == 0 {
		return dst
	}
	list[len(list)-1].next = -1
	q := &s.queue
	q.reset(len(t.merges))
	q.links = slices.Grow(q.links, len(w))
	for i := range len(list) - 1 {
		q.push(t.ranks.rank(list[i].id, list[i+1].id), int32(i))
	}
	for {
		rank, i, ok := q.pop()
		if !ok {
			break
		}
		n := &list[i]
		m := t.merges[rank]
		if n.id != m.left || n.next < 0 || list[n.next].id != m.right {
			continue // one of the two has been merged meanwhile
		}
		n.id = m.id
		list[n.next].id = -1
		if n.next = list[n.next].next; n.next >= 0 {
			list[n.next].prev = i
			q.push(t.ranks.rank(n.id, list[n.next].id), i)
		}
		if n.prev >= 0 {
			q.push(t.ranks.rank(list[n.prev].id, n.id), n.prev)
		}
	}
	for i := int32(0); i >= 0; i = list[i].next {
		dst = append(dst, list[i].id)
	}
	if s.list = list; cap(list) > 1<<16 { // one giant word must not hold its memory for ever
		s.list, s.queue = nil, pairQueue{}
	}
	return dst
}

// pairQueue yields pairs by rank, equal ranks from left to right.
//
// Each rank has a bucket: first in, first out as long as places come from left to right, which costs O(1), and a heap of places once one does not. In the
// vocabularies that training makes, a merge pushes only higher ranks and every bucket is filled from left to right; others, such as Llama 3's with several
// merges a token, need the heap for few pairs.
type pairQueue struct {
	head  []int32 // per rank: first entry of its bucket in links, or -1
	tail  []int32
	links []link
	spare int32                    // first entry of links not in use, chained like a bucket, or -1
	used  minHeap[int32]           // ranks whose bucket is not empty
	mixed map[int32]minHeap[int32] // places of the buckets that are heaps
}

type link struct{ at, next int32 }

func less(a, b int32) bool { return a < b }

// reset makes an empty queue for n ranks; the last word has left it empty.
func (q *pairQueue) reset(n int) {
	q.links, q.spare = q.links[:0], -1
	if len(q.head) == n {
		return
	}
	q.head, q.tail, q.mixed = make([]int32, n), make([]int32, n), make(map[int32]minHeap[int32])
	for i := range q.head {
		q.head[i] = -1
	}
}

func (q *pairQueue) push(rank, at int32) {
	if rank == noMerge {
		return
	}
	if len(q.mixed) > 0 {
		if h, ok := q.mixed[rank]; ok {
			h.push(at, less)
			q.mixed[rank] = h
			return
		}
	}
	if q.head[rank] >= 0 && q.links[q.tail[rank]].at > at {
		h := q.take(rank)
		h.push(at, less)
		q.mixed[rank] = h
		return
	}
	entry := q.spare
	if entry >= 0 {
		q.spare = q.links[entry].next
		q.links[entry] = link{at, -1}
	} else {
		entry = int32(len(q.links))
		q.links = append(q.links, link{at, -1})
	}
	if q.head[rank] < 0 {
		q.head[rank] = entry
		q.used.push(rank, less)
	} else {
		q.links[q.tail[rank]].next = entry
	}
	q.tail[rank] = entry
}

// take empties a bucket into a slice, which is a heap because it ascends.
func (q *pairQueue) take(rank int32) (places minHeap[int32]) {
	for q.head[rank] >= 0 {
		places = append(places, q.first(rank))
	}
	return places
}

// first takes the first place out of a bucket.
func (q *pairQueue) first(rank int32) int32 {
	entry := q.head[rank]
	l := q.links[entry]
	q.links[entry].next, q.spare = q.spare, entry
	q.head[rank] = l.next
	return l.at
}

func (q *pairQueue) pop() (rank, at int32, ok bool) {
	if len(q.used) == 0 {
		return 0, 0, false
	}
	rank = q.used[0]
	if len(q.mixed) > 0 {
		if h, ok := q.mixed[rank]; ok {
			at = h.pop(less)
			if q.mixed[rank] = h; len(h) == 0 {
				delete(q.mixed, rank)
				q.used.pop(less)
			}
			return rank, at, true
		}
	}
	if at = q.first(rank); q.head[rank] < 0 {
		q.used.pop(less)
	}
	return rank, at, true
}
