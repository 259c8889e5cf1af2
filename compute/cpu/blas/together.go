package blas

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Member is one thread of those that go through the same steps together.
type Member struct {
	Index, Of int
	Pool      *Pool // of this thread alone
	team      *team
	turn      uint32
}

// team is where members meet: the last one to arrive opens the next turn. Who
// comes first looks for it a while, then sleeps.
type team struct {
	turn    atomic.Uint32
	arrived atomic.Int32
	next    atomic.Int64 // of Each
	failed  atomic.Bool
	cause   atomic.Pointer[fault]
	asleep  atomic.Int32
	mutex   sync.Mutex
	wake    *sync.Cond
}

// news wakes those who sleep. What they wait for has been stored before.
func (t *team) news() {
	if t.asleep.Load() > 0 {
		t.mutex.Lock()
		t.wake.Broadcast()
		t.mutex.Unlock()
	}
}

// Together calls f on every thread at once. Members that need what others have
// computed Wait for them, which costs far less than a Run: generation meets
// some 150 times a token. f must make the same calls of Wait and Each on every
// member.
// The first panic of a member ends the others at their next Wait and reaches
// the caller.
func (p *Pool) Together(f func(m *Member)) {
	t := &team{}
	t.wake = sync.NewCond(&t.mutex)
	n := len(p.workers)
	p.Run(n, func(worker, i int) {
		defer func() {
			if v := recover(); v != nil {
				if v != errAbandoned {
					t.cause.CompareAndSwap(nil, &fault{v})
				}
				t.failed.Store(true)
				t.news()
			}
		}()
		f(&Member{Index: i, Of: n, Pool: p.workers[worker], team: t})
	})
	if c := t.cause.Load(); c != nil {
		panic(c.value)
	}
}

// errAbandoned is what members panic with when another one has.
var errAbandoned any = &Error{"another thread has failed"}

// spins is how often a member looks before it sleeps, some 20 µs: less than
// waking costs, and little lost where the processors are busy with others.
const spins = 1 << 14

// Wait returns when all members have called it.
func (m *Member) Wait() {
	t := m.team
	m.turn++
	if t.arrived.Add(1) == int32(m.Of) {
		t.arrived.Store(0)
		t.next.Store(0)
		t.turn.Store(m.turn)
		t.news()
		return
	}
	for range spins {
		if m.open() {
			return
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.asleep.Add(1)
	defer t.asleep.Add(-1)
	for !m.open() {
		t.wake.Wait()
	}
}

// open tells whether the member's turn has come.
func (m *Member) open() bool {
	if m.team.failed.Load() {
		panic(errAbandoned)
	}
	return m.team.turn.Load() == m.turn
}

// Each calls f(i) for i = 0 … n−1, each on the member that comes to it first,
// and waits for all. Equal shares would be slower: how fast a core reads memory
// varies from moment to moment (two cores of an EPYC reading 1.3 MB of weights
// each waited 60 % of the time for the other).
func (m *Member) Each(n int, f func(i int)) {
	for i := int(m.team.next.Add(1)) - 1; i < n; i = int(m.team.next.Add(1)) - 1 {
		f(i)
	}
	m.Wait()
}

// Window is Gemm for the columns from … to−1 of C, on the caller's goroutine.
// from must be a multiple of 64.
func Window[T Float](p *Pool, g *Params[T], from, to int) {
	check(p, g)
	if from < 0 || from%64 != 0 || to > g.N {
		panic(&Error{fmt.Sprintf("gemm: window of columns %d to %d of %d, want it to begin at a multiple of 64", from, to, g.N)})
	}
	l := loops[T]{g: g, kern: &localOf[T](p).kern}
	for b := range max(1, g.Batch) {
		l.window(&localOf[T](p.Worker(0)).scratch, block{b, 0, g.M, from, to})
	}
}
