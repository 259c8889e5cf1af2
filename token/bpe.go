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

// mergeLong merges a word of any length: in O(n) steps of a bucket queue when the merges are ordered, else with a heap.
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
	q.reset(len(t.merges), t.ordered)
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
// Ordered merges (see isOrdered) only ever push ranks above the one just popped: a first-in first-out bucket for each rank does then, and pushing and
// popping cost O(1). Within a bucket the order matters only where occurrences can overlap, which takes a merge of a token with itself (aaa holds aa twice).
// Where such a token is made by several merges its pairs can arrive out of order, and the bucket is sorted when its turn comes.
type pairQueue struct {
	ordered bool
	head    []int32 // per rank: first entry of its bucket in links, or -1
	tail    []int32
	links   []link
	spare   int32          // first entry of links not in use, chained like a bucket, or -1
	used    minHeap[int32] // ranks whose bucket is not empty
	mixed   []bool         // per rank: its bucket is out of order
	heap    minHeap[pairAt]
}

type link struct{ at, next int32 }

type pairAt struct{ rank, at int32 }

func lessRank(a, b int32) bool { return a < b }

func lessPair(a, b pairAt) bool { return a.rank < b.rank || a.rank == b.rank && a.at < b.at }

func (q *pairQueue) reset(ranks int, ordered bool) {
	q.ordered, q.spare = ordered, -1
	q.links, q.heap, q.used = q.links[:0], q.heap[:0], q.used[:0]
	if ordered && len(q.head) != ranks {
		q.head, q.tail, q.mixed = make([]int32, ranks), make([]int32, ranks), make([]bool, ranks)
		for i := range q.head {
			q.head[i] = -1
		}
	}
}

func (q *pairQueue) push(rank, at int32) {
	switch {
	case rank == noMerge:
	case !q.ordered:
		q.heap.push(pairAt{rank, at}, lessPair)
	default:
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
			q.used.push(rank, lessRank)
		} else {
			last := &q.links[q.tail[rank]]
			last.next = entry
			q.mixed[rank] = q.mixed[rank] || last.at > at
		}
		q.tail[rank] = entry
	}
}

func (q *pairQueue) pop() (rank, at int32, ok bool) {
	if !q.ordered {
		if len(q.heap) == 0 {
			return 0, 0, false
		}
		x := q.heap.pop(lessPair)
		return x.rank, x.at, true
	}
	if len(q.used) == 0 {
		return 0, 0, false
	}
	rank = q.used[0]
	if q.mixed[rank] {
		q.sort(rank)
	}
	entry := q.head[rank]
	l := q.links[entry]
	q.links[entry].next, q.spare = q.spare, entry
	if q.head[rank] = l.next; l.next < 0 {
		q.used.pop(lessRank)
	}
	return rank, l.at, true
}

// sort brings the bucket of a rank into order.
func (q *pairQueue) sort(rank int32) {
	q.mixed[rank] = false
	var entries []int32
	for e := q.head[rank]; e >= 0; e = q.links[e].next {
		entries = append(entries, e)
	}
	at := make([]int32, len(entries))
	for i, e := range entries {
		at[i] = q.links[e].at
	}
	slices.Sort(at)
	for i, e := range entries { // the entries stay chained as they are, their places are dealt out anew
		q.links[e].at = at[i]
	}
}

// isOrdered tells whether a token is part only of merges that come after all merges that make it. Then a merge of rank r can only be followed by merges
// of higher rank. Trained vocabularies are like that, Llama 3's with its several merges a token included; a file may say otherwise.
func isOrdered(merges []merge, tokens int) bool {
	made := make([]int32, tokens) // 1 + rank of the last merge that makes it, 0: none
	for rank, m := range merges {
		made[m.id] = int32(rank) + 1
	}
	for rank, m := range merges {
		if made[m.left] > int32(rank) || made[m.right] > int32(rank) {
			return false
		}
	}
	return true
}
