package blas

import (
	"runtime"
	"sync"
)

// Pool is a fixed set of threads with the packing scratch they need. It serves
// one caller at a time: a rank owns one pool of max(1, cores ÷ ranks) threads.
// A pool of one thread runs everything on the caller's goroutine.
//
// Results never depend on the number of threads.
type Pool struct {
	threads int
	set     Set
	work    chan task // nil when threads == 1
	wait    sync.WaitGroup
	f32     scratch[float32]
	f64     scratch[float64]
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
	p := &Pool{threads: max(1, threads), set: set}
	if p.threads > 1 {
		p.work = make(chan task, p.threads-1)
		for range p.threads - 1 {
			go worker(p.work, &p.wait)
		}
	}
	return p
}

func worker(work chan task, wait *sync.WaitGroup) {
	for t := range work {
		for i := t.from; i < t.end; i += t.step {
			t.f(t.worker, i)
		}
		wait.Done()
	}
}

// Threads is the number of threads Run spreads over.
func (p *Pool) Threads() int { return p.threads }

// Set is the instruction set the pool's kernels use.
func (p *Pool) Set() Set { return p.set }

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	if p.work != nil {
		close(p.work)
	}
}

// Run calls f(worker, i) for i = 0 … n−1 and returns when all are done. Worker
// w takes i = w, w+threads, …; 0 ≤ worker < Threads() names the scratch f may
// use. f must not call Run.
func (p *Pool) Run(n int, f func(worker, i int)) {
	helpers := min(p.threads, n) - 1
	if helpers <= 0 {
		for i := range n {
			f(0, i)
		}
		return
	}
	p.wait.Add(helpers)
	for w := 1; w <= helpers; w++ {
		p.work <- task{f: f, worker: w, from: w, step: p.threads, end: n}
	}
	for i := 0; i < n; i += p.threads {
		f(0, i)
	}
	p.wait.Wait()
	runtime.KeepAlive(p)
}
