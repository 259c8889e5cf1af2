// Package local runs ranks as goroutines of one process: collectives copy straight from one rank's memory to another's, in
// rank order, so that results depend on nothing but the data.
//
// A World joins the ranks; Leaf is one rank's end. Every wait has a deadline and ends when any rank aborts: nobody waits for
// ever, and the error names the call and who is missing. Start with World, then meet in meeting.go.
package local

import (
	"fmt"
	"sync"
	"time"

	"heddle/comm"
)

// World is what the ranks of one run share.
type World struct {
	size     int
	deadline time.Duration

	mu       sync.Mutex
	meetings map[key]*meeting
	past     []history // of each rank

	turns *turns // nil: ranks run as they like

	abort sync.Once
	ended chan struct{}
	cause error
}

// key names one collective: its ranks and its number among theirs. Pairs (send/recv) count apart from groups.
type key struct {
	ranks string
	pair  bool
	seq   uint64
}

// NewWorld makes a world of size ranks whose waits end after deadline.
func NewWorld(size int, deadline time.Duration) *World {
	return &World{size: size, deadline: deadline, meetings: map[key]*meeting{}, past: make([]history, size), ended: make(chan struct{})}
}

// NewSeeded makes a world whose ranks take turns as s says. Every rank must Enter before its first call and Exit after its last.
func NewSeeded(size int, deadline time.Duration, s *Sim) *World {
	w := NewWorld(size, deadline)
	w.turns = newTurns(w, s)
	return w
}

// Enter begins a rank. In a seeded world it waits for the rank's turn.
func (w *World) Enter(rank int) {
	if w.turns != nil {
		w.turns.enter(rank)
	}
}

// Exit ends a rank: it makes no more calls.
func (w *World) Exit(rank int) {
	w.mu.Lock()
	w.past[rank].ended = true
	w.past[rank].add(call{ended: true}, false)
	w.mu.Unlock()
	if w.turns != nil {
		w.turns.leave(rank)
	}
}

// Abort ends every wait, now and later, with the first cause given.
func (w *World) Abort(cause error) {
	w.abort.Do(func() {
		w.cause = cause
		close(w.ended)
	})
}

// Cause is the first cause of Abort, nil while the run goes on.
func (w *World) Cause() error {
	select {
	case <-w.ended:
		return w.cause
	default:
		return nil
	}
}

// Leaf is rank's end of the world, for data in the memory of the process.
func (w *World) Leaf(rank int) *Leaf { return w.LeafOn(rank, host{}) }

// LeafOn is rank's end of the world for data that by moves.
func (w *World) LeafOn(rank int, by Mover) *Leaf {
	l := &Leaf{world: w, rank: rank, by: by}
	if w.turns != nil {
		l.own = &seeded{shift: map[string]int64{}, skipped: map[*comm.Op]bool{}}
	}
	return l
}

// Leaf implements comm.Leaf for one rank.
type Leaf struct {
	world *World
	rank  int
	by    Mover
	timer *time.Timer
	own   *seeded // nil where the world is not
}

// Abort ends the run for every rank.
func (l *Leaf) Abort(cause error) { l.world.Abort(cause) }

// Start posts the op where its peers find it.
func (l *Leaf) Start(o *comm.Op) {
	if l.own != nil {
		if o = l.start(o); o == nil {
			return
		}
	}
	l.post(o)
	if l.own != nil && l.own.twice == o {
		l.post(l.own.second)
	}
}

// mark notes the point that this rank's queue has when it reaches a stage.
func (l *Leaf) mark(m *meeting, o *comm.Op, s stage) error {
	p, err := l.by.Mark()
	if err != nil {
		return fmt.Errorf("comm: rank %d, %s: %w", l.rank, o.Signature(), err)
	}
	m.stages[s].points[o.Me] = p
	return nil
}

// follow holds this rank's queue back until all others have done what they queued up to a stage.
func (l *Leaf) follow(m *meeting, o *comm.Op, s stage) error {
	for i, r := range o.Ranks {
		if i == o.Me {
			continue
		}
		if err := l.by.After(r, m.stages[s].points[i]); err != nil {
			return fmt.Errorf("comm: rank %d, %s: %w", l.rank, o.Signature(), err)
		}
	}
	return nil
}

// reach ends this rank's part of a stage and goes on when all have.
func (l *Leaf) reach(m *meeting, o *comm.Op, s stage) error {
	if err := l.mark(m, o, s); err != nil {
		return err
	}
	l.world.reached(m, o, s)
	m.arrive(s)
	if err := l.pass(m, o, s); err != nil {
		return err
	}
	return l.follow(m, o, s)
}

// Wait moves the data once every rank has posted.
func (l *Leaf) Wait(o *comm.Op) error {
	if l.own != nil && l.own.skipped[o] {
		return nil
	}
	err := l.finish(o)
	if err == nil && l.own != nil && l.own.twice == o {
		err = l.finish(l.own.second)
	}
	return err
}

func (l *Leaf) finish(o *comm.Op) error {
	w := l.world
	w.waits(l.rank, o)
	defer w.waits(l.rank, nil)
	m := w.meeting(o)
	if err := l.pass(m, o, posted); err != nil {
		return err
	}
	err := l.run(m, o)
	if err == nil {
		w.leave(m, o)
	}
	return err
}

// run moves the data, once every rank has posted.
func (l *Leaf) run(m *meeting, o *comm.Op) error {
	switch o.Kind {
	case comm.Barrier:
		return nil
	case comm.SendRecv: // whoever came last has moved the data
		if m.last == o.Me {
			return nil
		}
		return l.by.After(o.Ranks[m.last], m.stages[read].points[m.last])
	}
	if err := l.follow(m, o, posted); err != nil {
		return err
	}
	o.Received = move(l.by, o, m.ops, first)
	if o.Kind == comm.AllReduceSum || o.Kind == comm.AllReduceMax { // each chunk is reduced; now gather the others'
		if err := l.reach(m, o, reduced); err != nil {
			return err
		}
		o.Received += move(l.by, o, m.ops, second)
	}
	return l.reach(m, o, read) // nobody reads this rank's memory any more
}

// pass waits for a stage of the meeting to be complete.
func (l *Leaf) pass(m *meeting, o *comm.Op, s stage) error {
	if l.own != nil {
		return l.take(m, o, s)
	}
	done := m.stages[s].done
	select {
	case <-done: // without a timer where nothing is to be waited for
		return nil
	case <-l.world.ended:
		return l.world.cause
	default:
	}
	if l.timer == nil {
		l.timer = time.NewTimer(l.world.deadline / ticks)
	}
	defer l.timer.Stop()
	for range ticks {
		l.timer.Reset(l.world.deadline / ticks)
		select {
		case <-done:
			return nil
		case <-l.world.ended:
			return l.world.cause
		case <-l.timer.C:
		}
	}
	err := l.world.late(m, o)
	l.world.Abort(err)
	return l.world.cause
}

// ticks are the parts of a deadline. However long a stopped process (Ctrl-Z, a debugger) sleeps, that is one tick for those who wait, and those who
// are waited for have the others.
const ticks = 10

// take is pass where ranks take turns.
func (l *Leaf) take(m *meeting, o *comm.Op, s stage) error {
	w := l.world
	late := w.turns.wait(l.rank, func() bool { return m.complete(s) })
	switch {
	case m.complete(s):
		return nil
	case late:
		w.Abort(w.late(m, o))
	}
	return w.cause
}

// waits notes what a rank waits for, nil when it goes on: first that all have started it.
func (w *World) waits(rank int, o *comm.Op) {
	w.mu.Lock()
	if w.past[rank].op, w.past[rank].stage = o, posted; o != nil {
		w.past[rank].add(call{Signature: o.Signature(), axes: o.Axes, waits: true}, o.Uneven)
	}
	w.mu.Unlock()
}
