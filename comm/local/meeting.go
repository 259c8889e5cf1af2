package local

import (
	"fmt"
	"strings"
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
	gone   int
	last   int // index of the rank that posted last
	stages [stages]struct {
		arrived int
		done    chan struct{}
		points  []uint32 // of each rank's queue, when it reached the stage
	}
}

func (w *World) key(o *comm.Op) key {
	var b strings.Builder
	for _, r := range o.Ranks {
		fmt.Fprintf(&b, "%d,", r)
	}
	return key{b.String(), o.Kind == comm.SendRecv, o.Seq}
}

func (w *World) meeting(o *comm.Op) *meeting {
	k := w.key(o)
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.meetings[k]
	if m == nil {
		m = &meeting{ops: make([]*comm.Op, len(o.Ranks))}
		for s := range m.stages {
			m.stages[s].done, m.stages[s].points = make(chan struct{}), make([]uint32, len(o.Ranks))
		}
		w.meetings[k] = m
	}
	return m
}

// post adds o; the last rank to post checks that all made the same call.
func (m *meeting) post(l *Leaf, o *comm.Op) {
	w := l.world
	w.mu.Lock()
	m.ops[o.Me] = o
	w.mu.Unlock()
	if !m.count(posted) {
		return
	}
	if err := agree(m.ops); err != nil {
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

// leave forgets the meeting when its last rank has left.
func (w *World) leave(m *meeting, o *comm.Op) {
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

// agree refuses ops that are not the same call, showing both sides.
func agree(ops []*comm.Op) error {
	for _, o := range ops[1:] {
		if a, b := ops[0].Signature(), o.Signature(); a != b {
			return fmt.Errorf("comm: rank %d calls %s, but rank %d calls %s, both as call %d over %s", ops[0].Ranks[0], a, o.Ranks[o.Me], b, o.Seq, o.Axes)
		}
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
