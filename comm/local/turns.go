package local

import (
	"math/rand/v2"
	"sync"
	"time"

	"heddle/comm"
)

// Sim makes the ranks of a world take turns: one runs at a time, and at every start, wait and stage of a collective a random
// choice says who goes on. Time is virtual: it passes only while every rank waits or sleeps. So a seed gives one interleaving,
// whatever the machine does, and a hang is an error at once.
type Sim struct {
	Seed  uint64
	Delay time.Duration // a rank comes to some of its calls late, by up to this
	Fault Fault

	turns *turns
}

// state is what a rank does in a seeded world.
type state uint8

const (
	absent state = iota
	ready
	waiting
	sleeping
	ended
)

// turns decides whose turn it is.
type turns struct {
	world *World
	sim   *Sim

	mu    sync.Mutex
	rng   *rand.Rand
	now   time.Duration
	seats []seat
	order []uint8 // the ranks in the order of their turns
	calls [][]Called
}

// seat is a rank's place among the turns.
type seat struct {
	state state
	wake  chan struct{}
	done  func() bool   // waiting: whether it may go on
	until time.Duration // waiting: its deadline; sleeping: the end
	late  bool          // woken by the deadline
}

// Called is one call that a rank made.
type Called struct {
	comm.Signature
	Ranks []int
}

func newTurns(w *World, s *Sim) *turns {
	t := &turns{world: w, sim: s, rng: rand.New(rand.NewPCG(s.Seed, 0)), seats: make([]seat, w.size), calls: make([][]Called, w.size)}
	for r := range t.seats {
		t.seats[r].wake = make(chan struct{}, 1)
	}
	s.turns = t
	return t
}

// Calls are those that each rank made, in its order. They are for after the run.
func (s *Sim) Calls() [][]Called { return s.turns.calls }

// Order is the ranks in the order in which they had their turns. It is for after the run.
func (s *Sim) Order() []uint8 { return s.turns.order }

// Took is the virtual time of the run.
func (s *Sim) Took() time.Duration { return s.turns.now }

// enter waits until all ranks are here and it is this one's turn.
func (t *turns) enter(rank int) {
	t.mu.Lock()
	t.seats[rank].state = ready
	for i := range t.seats {
		if t.seats[i].state == absent {
			t.mu.Unlock()
			<-t.seats[rank].wake
			return
		}
	}
	t.next()
	t.mu.Unlock()
	<-t.seats[rank].wake
}

// leave gives the turn away for ever.
func (t *turns) leave(rank int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seats[rank].state = ended
	t.next()
}

// give gives the turn away until seat may go on, and tells whether its deadline has passed.
func (t *turns) give(rank int, s seat) (late bool) {
	t.mu.Lock()
	s.wake = t.seats[rank].wake
	t.seats[rank] = s
	t.next()
	t.mu.Unlock()
	<-s.wake
	return t.seats[rank].late
}

func (t *turns) yield(rank int) { t.give(rank, seat{state: ready}) }

func (t *turns) sleep(rank int, d time.Duration) {
	t.give(rank, seat{state: sleeping, until: t.now + d})
}

func (t *turns) wait(rank int, done func() bool) (late bool) {
	return t.give(rank, seat{state: waiting, done: done, until: t.now + t.world.deadline})
}

// next wakes a rank that can go on, any with equal chance. Where none can, time passes to the next end of a sleep or deadline;
// without a sleeper nothing will ever come, and the world ends.
func (t *turns) next() {
	for {
		var can []int
		sleepers, waiters := 0, 0
		soonest := -1
		for r := range t.seats {
			s := &t.seats[r]
			over := t.world.Cause() != nil
			switch {
			case s.state == ready, s.state == sleeping && (over || s.until <= t.now), s.state == waiting && (over || s.done()):
				can = append(can, r)
				continue
			case s.state == sleeping:
				sleepers++
			case s.state == waiting:
				waiters++
			default:
				continue
			}
			if soonest < 0 || s.until < t.seats[soonest].until {
				soonest = r
			}
		}
		switch {
		case len(can) > 0:
			r := can[t.rng.IntN(len(can))]
			t.order = append(t.order, uint8(r))
			t.seats[r].state = ready
			t.seats[r].wake <- struct{}{}
			return
		case sleepers+waiters == 0:
			return
		case sleepers == 0:
			t.world.Abort(t.world.stuck(t.now))
		default:
			s := &t.seats[soonest]
			if t.now = s.until; s.state == waiting {
				s.state, s.late = ready, true
			}
		}
	}
}

// tardy makes a rank late for some of its calls.
func (t *turns) tardy(rank int) {
	if d := t.sim.Delay; d > 0 && t.rng.IntN(8) == 0 {
		t.sleep(rank, time.Duration(t.rng.Int64N(int64(d))+1))
		return
	}
	t.yield(rank)
}
