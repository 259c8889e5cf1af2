package blas

import (
	"sync"
	"sync/atomic"
)

// Pool is a fixed set of threads with the packing scratch they need. It serves
// one caller at a time: a rank owns one pool of max(1, cores ÷ ranks) threads.
// A pool of one thread runs everything on the caller's goroutine.
//
// Results never depend on the number of threads.
type Pool struct {
	set     Set
	workers []*Pool   // a pool of one thread for each thread; the pool itself when it has one
	work    chan task // nil when there is one thread
	wait    sync.WaitGroup
	fault   atomic.Pointer[fault]
	f32     local[float32]
	f64     local[float64]
}

// fault is what a worker panicked with.
type fault struct{ value any }

// local is what a thread has for one element type.
type local[T Float] struct {
	kern    kernel[T]
	scratch scratch[T]
}

// localOf is p's part for T.
func localOf[T Float](p *Pool) *local[T] {
	if l, ok := any(&p.f32).(*local[T]); ok {
		return l
	}
	return any(&p.f64).(*local[T])
}

// task is a share of Run: indices from, from+step, … below n.
type task struct {
	f                       func(worker, i int)
	worker, from, step, end int
}

// NewPool starts threads−1 workers (threads < 1 counts as 1) that use the best
// instruction set of this machine.
func NewPool(threads int) *Pool { return NewPoolFor(BestSet(), threads) }

// NewPoolFor is NewPool with a chosen instruction set, for comparing them. A
// set this machine lacks falls back to Portable.
func NewPoolFor(set Set, threads int) *Pool {
	if !set.Runs() {
		set = Portable
	}
	if threads <= 1 {
		return solo(set)
	}
	p := newPool(set)
	p.work = make(chan task, threads-1)
	for i := range threads {
		p.workers = append(p.workers, solo(set))
		if i > 0 {
			go p.worker()
		}
	}
	return p
}

func solo(set Set) *Pool {
	p := newPool(set)
	p.workers = []*Pool{p}
	return p
}

func newPool(set Set) *Pool {
	p := &Pool{set: set}
	p.f32.kern, p.f64.kern = kernelFor[float32](set), kernelFor[float64](set)
	return p
}

func (p *Pool) worker() {
	for t := range p.work {
		p.share(t)
	}
}

// share does a worker's share; a panic is kept for the caller of Run.
func (p *Pool) share(t task) {
	defer p.wait.Done()
	defer func() {
		if v := recover(); v != nil {
			p.fault.CompareAndSwap(nil, &fault{v})
		}
	}()
	for i := t.from; i < t.end; i += t.step {
		t.f(t.worker, i)
	}
}

// Threads is the number of threads Run spreads over.
func (p *Pool) Threads() int { return len(p.workers) }

// Worker is a pool of one thread for what f computes inside Run.
func (p *Pool) Worker(i int) *Pool { return p.workers[i] }

// Set is the instruction set the pool's kernels use.
func (p *Pool) Set() Set { return p.set }

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	if p.work != nil {
		close(p.work)
	}
}

// Run calls f(worker, i) for i = 0 … n−1 and returns when all are done. Worker
// w takes i = w, w+threads, …. f must not use p itself, but may use
// p.Worker(worker). A panic of f reaches the caller of Run, once all have ended.
func (p *Pool) Run(n int, f func(worker, i int)) {
	helpers := min(len(p.workers), n) - 1
	if helpers <= 0 {
		for i := range n {
			f(0, i)
		}
		return
	}
	p.fault.Store(nil) // one may be left from a Run whose caller's own share panicked
	p.wait.Add(helpers)
	for w := 1; w <= helpers; w++ {
		p.work <- task{f: f, worker: w, from: w, step: len(p.workers), end: n}
	}
	p.own(n, f)
	if v := p.fault.Swap(nil); v != nil {
		panic(v.value)
	}
}

// own does the caller's share and waits for the others, also when f panics.
func (p *Pool) own(n int, f func(worker, i int)) {
	defer p.wait.Wait()
	for i := 0; i < n; i += len(p.workers) {
		f(0, i)
	}
}
