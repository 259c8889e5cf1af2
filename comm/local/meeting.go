package local

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"heddle/comm"
)

// stage is a point that every rank of a meeting reaches before any goes on.
type stage int

const (
	posted  stage = iota // every rank's op is there
	reduced              // all-reduce: every chunk is summed
	read                 // nobody reads another's memory any more
	stages
)

// meeting is one collective on its way: the ops of its ranks, by index, and how many have reached each stage.
type meeting struct {
	mu     sync.Mutex
	ops    []*comm.Op
	next   []stage // the stage that each has not reached yet
	gone   int
	last   int // index of the rank that posted last
	stages [stages]struct {
		arrived int
		done    chan struct{}
		points  []uint32 // of each rank's queue, when it reached the stage
	}
}

func (w *World) key(o *comm.Op) key { return key{ranksOf(o), o.Kind == comm.SendRecv, o.Seq} }

// ranksOf is o's ranks as the key of a map.
func ranksOf(o *comm.Op) string {
	b := make([]byte, 0, 4*len(o.Ranks))
	for _, r := range o.Ranks {
		b = append(strconv.AppendInt(b, int64(r), 10), ',')
	}
	return string(b)
}

func (w *World) meeting(o *comm.Op) *meeting {
	k := w.key(o)
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.meetings[k]
	if m == nil {
		m = &meeting{ops: make([]*comm.Op, len(o.Ranks)), next: make([]stage, len(o.Ranks))}
		for s := range m.stages {
			m.stages[s].done, m.stages[s].points = make(chan struct{}), make([]uint32, len(o.Ranks))
		}
		w.meetings[k] = m
	}
	return m
}

// post adds o to its meeting; the last rank to post checks that all made the same call.
func (l *Leaf) post(o *comm.Op) {
	w := l.world
	m := w.meeting(o)
	if err := l.mark(m, o, posted); err != nil {
		w.Abort(err)
		return
	}
	w.mu.Lock()
	m.ops[o.Me], m.next[o.Me] = o, posted+1
	w.past[o.Ranks[o.Me]].add(call{Signature: o.Signature(), axes: o.Axes}, o.Uneven)
	w.mu.Unlock()
	if !m.count(posted) {
		return
	}
	if err := w.agree(m.ops); err != nil {
		w.Abort(err)
		return
	}
	m.last = o.Me
	if o.Kind == comm.SendRecv { // whoever comes last copies, so that ranks may wait for sends and receives in any order
		if err := m.copyPair(l, o); err != nil {
			w.Abort(err)
			return
		}
	}
	close(m.stages[posted].done)
}

// copyPair moves what the two ranks send each other, in the queue of the one that came last.
func (m *meeting) copyPair(l *Leaf, o *comm.Op) error {
	if err := l.follow(m, o, posted); err != nil {
		return err
	}
	for _, p := range m.ops {
		p.Received = move(l.by, p, m.ops, first)
	}
	return l.mark(m, o, read)
}

// reached notes that o's rank has come to a stage, and waits for the others to.
func (w *World) reached(m *meeting, o *comm.Op, s stage) {
	w.mu.Lock()
	m.next[o.Me], w.past[o.Ranks[o.Me]].stage = s+1, s
	w.mu.Unlock()
}

// absent tells whether the i-th rank of o has not come to a stage. It needs w.mu.
func (w *World) absent(o *comm.Op, s stage, i int) bool {
	m := w.meetings[w.key(o)]
	return m != nil && m.next[i] <= s
}

func (m *meeting) arrive(s stage) {
	if m.count(s) {
		close(m.stages[s].done)
	}
}

// count notes an arrival and tells whether it was the last.
func (m *meeting) count(s stage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stages[s].arrived++
	return m.stages[s].arrived == len(m.ops)
}

// complete tells whether every rank has reached a stage.
func (m *meeting) complete(s stage) bool {
	select {
	case <-m.stages[s].done:
		return true
	default:
		return false
	}
}

// leave forgets the meeting when its last rank has left.
func (w *World) leave(m *meeting, o *comm.Op) {
	if len(o.Ranks) == w.size && w.size > 2 && o.Kind != comm.SendRecv { // of two ranks none is the odd one
		w.mu.Lock()
		w.past[o.Ranks[o.Me]].pass()
		w.mu.Unlock()
	}
	m.mu.Lock()
	m.gone++
	last := m.gone == len(m.ops)
	m.mu.Unlock()
	if last {
		w.mu.Lock()
		delete(w.meetings, w.key(o))
		w.mu.Unlock()
	}
}

// agree refuses ops that are not the same call, showing every side.
func (w *World) agree(ops []*comm.Op) error {
	m := &Mismatch{Axes: ops[0].Axes, Seq: ops[0].Seq, Odd: -1}
	for _, o := range ops {
		sig, rank := o.Signature(), o.Ranks[o.Me]
		i := slices.IndexFunc(m.Sides, func(s Side) bool { return s.Call == sig })
		if i < 0 {
			i = len(m.Sides)
			m.Sides = append(m.Sides, Side{Call: sig})
		}
		m.Sides[i].Ranks = append(m.Sides[i].Ranks, rank)
	}
	if len(m.Sides) > 1 {
		w.mu.Lock()
		defer w.mu.Unlock()
		if rank, its, theirs, others := w.odd(); rank >= 0 {
			m.Odd, m.why = rank, fmt.Sprintf("; rank %d is the odd one: %s where %s: %s", rank, its, names(others), theirs)
		} else if a, b := m.Sides[0].Ranks, m.Sides[1].Ranks; len(m.Sides) == 2 && len(a) != len(b) && min(len(a), len(b)) == 1 {
			if m.Odd = a[0]; len(b) == 1 {
				m.Odd = b[0]
			}
		}
		return m
	}
	for i, a := range ops {
		for j, b := range ops {
			send, recv := pairCounts(a, b, i, j)
			if send != recv {
				return fmt.Errorf("comm: %s: rank %d sends %d elements to rank %d, which expects %d", a.Signature(), a.Ranks[i], send, b.Ranks[j], recv)
			}
		}
	}
	return nil
}

// pairCounts are what i sends to j and what j expects from i, where sizes may differ by pair.
func pairCounts(a, b *comm.Op, i, j int) (send, recv int) {
	switch {
	case a.Kind == comm.AllToAll && a.SendCounts != nil:
		return a.SendCounts[j], b.RecvCounts[i]
	case a.Kind == comm.SendRecv && i != j:
		return a.Src.Elems(), b.Dst.Elems()
	}
	return 0, 0
}
