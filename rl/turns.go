package rl

import (
	"math/rand/v2"
	"sync"
)

// actor is one of the two sides of asynchronous training.
type actor int

const (
	learning actor = iota
	generating
	actors
)

// turns is the lock over what the two sides share, and the rule of who runs. Without a seed both run as they like. With one, one runs at a time, from wait to
// wait, and who is next is drawn where neither need wait: the same seed gives the same run, which can then be stopped and resumed bit for bit.
type turns struct {
	mu      sync.Mutex
	changed *sync.Cond
	draw    *rand.PCG // nil: no turns
	present [actors]bool
	wants   [actors]func() bool // what a side waits for; nil: it runs, or is on its way
	running actor               // -1: nobody, until somebody's wait is over
	last    actor               // that ran
}

// stretch is for how many waits a side goes on, on average, while the other could: a round has several tokens, and queues should fill at times.
const stretch = 6

// newTurns begins with the learning side running.
func newTurns(draw *rand.PCG) *turns {
	t := &turns{draw: draw, present: [actors]bool{true, true}, running: learning}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// wait returns when until holds and it is me's turn; then, if not nil, runs under the lock.
func (t *turns) wait(me actor, until func() bool, then func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draw == nil {
		for !until() {
			t.changed.Wait()
		}
	} else {
		t.wants[me] = until
		if t.running == me {
			t.running = -1
		}
		t.next()
		for t.running != me {
			t.changed.Wait()
		}
		t.wants[me] = nil
	}
	if then != nil {
		then()
		t.changed.Broadcast()
	}
}

// yield lets the other side run.
func (t *turns) yield(me actor) {
	if t.draw != nil {
		t.wait(me, func() bool { return true }, nil)
	}
}

// change alters what is shared.
func (t *turns) change(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
	t.next()
	t.changed.Broadcast()
}

// leave ends a side.
func (t *turns) leave(me actor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.present[me] = false
	if t.running == me {
		t.running = -1
	}
	t.next()
	t.changed.Broadcast()
}

// next draws who runs, once everybody present has said what it waits for.
func (t *turns) next() {
	if t.draw == nil || t.running >= 0 {
		return
	}
	var can []actor
	for a := range actors {
		switch {
		case !t.present[a]:
		case t.wants[a] == nil:
			return
		case t.wants[a]():
			can = append(can, a)
		}
	}
	if len(can) > 0 {
		t.running = can[0]
		if len(can) > 1 {
			t.running = t.last
			if rand.New(t.draw).IntN(stretch) == 0 {
				t.running = 1 - t.last
			}
		}
		t.last = t.running
		t.changed.Broadcast()
	}
}
