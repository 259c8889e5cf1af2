package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"heddle/compute/cpu/blas"
)

// shape is one row of the table: C[M,N] = op(A)·op(B), as training and
// generation use it.
type shape struct {
	What       string
	M, N, K    int
	TransA     bool
	TransB     bool
	Accumulate bool
	Packed     bool // B packed before, as generation keeps its weights
}

// result is a measured row.
type result struct {
	shape
	Threads   int
	GFlops    float64 // median
	Best      float64
	Peer      float64 // OpenBLAS, median, same run
	PeerBest  float64
	Ratio     float64 // of the medians
	RatioBest float64
}

// forward is y = x·Wᵀ, dgrad dx = dy·W, wgrad dW += dyᵀ·x.
func linear(tokens, out, in int) []shape {
	name := fmt.Sprintf("%d tokens, %d → %d", tokens, in, out)
	return []shape{
		{What: name + " forward", M: tokens, N: out, K: in, TransB: true},
		{What: name + " dgrad", M: tokens, N: in, K: out},
		{What: name + " wgrad", M: out, N: in, K: tokens, TransA: true, Accumulate: true},
	}
}

func table() []shape {
	s := []shape{{What: "square", M: 1024, N: 1024, K: 1024}}
	for _, n := range []int{64, 256, 512, 2048} {
		s = append(s, shape{What: "square", M: n, N: n, K: n})
	}
	for _, tokens := range []int{256, 1024, 2048} {
		for _, w := range [][2]int{{128, 128}, {64, 128}, {384, 128}, {128, 384}, {1024, 128}, {2048, 128}} {
			s = append(s, linear(tokens, w[0], w[1])...)
		}
	}
	for _, m := range []int{1, 2, 4, 8, 16, 32} {
		for _, packed := range []bool{false, true} {
			s = append(s, shape{What: "generation", M: m, N: 1024, K: 1024, TransB: true, Packed: packed})
		}
		s = append(s, shape{What: "few rows", M: m, N: 1024, K: 1024})
	}
	for mode := range 4 {
		s = append(s, shape{What: "tall", M: 4096, N: 48, K: 320, TransA: mode&1 != 0, TransB: mode&2 != 0})
		s = append(s, shape{What: "wide", M: 48, N: 4096, K: 320, TransA: mode&1 != 0, TransB: mode&2 != 0})
		s = append(s, shape{What: "deep", M: 96, N: 96, K: 4096, TransA: mode&1 != 0, TransB: mode&2 != 0})
		s = append(s, shape{What: "odd", M: 333, N: 251, K: 517, TransA: mode&1 != 0, TransB: mode&2 != 0})
	}
	return s
}

// operands are the matrices of a shape and ways to multiply them.
type operands struct {
	shape
	g    blas.Params[float32]
	peer []float32
}

func newOperands(p *blas.Pool, s shape) *operands {
	r := rand.New(rand.NewPCG(1, 1))
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = r.Float32()*2 - 1
		}
		return x
	}
	o := &operands{shape: s, peer: make([]float32, s.M*s.N)}
	o.g = blas.Params[float32]{M: s.M, N: s.N, K: s.K, A: fill(s.M * s.K), B: fill(s.K * s.N), C: make([]float32, s.M*s.N),
		LDA: s.K, LDB: s.N, LDC: s.N, TransA: s.TransA, TransB: s.TransB, Accumulate: s.Accumulate}
	if s.TransA {
		o.g.LDA = s.M
	}
	if s.TransB {
		o.g.LDB = s.K
	}
	if s.Packed {
		o.g.Packed = &blas.PackedB[float32]{K: s.K, N: s.N}
		blas.PackB(p, o.g.Packed, o.g.B, o.g.LDB, s.TransB)
	}
	return o
}

func (o *operands) runPeer(lib *openblas) {
	beta := float32(0)
	if o.Accumulate {
		beta = 1
	}
	g := &o.g
	lib.sgemm(rowMajor, cblas(g.TransA), cblas(g.TransB), int32(g.M), int32(g.N), int32(g.K), 1, &g.A[0], int32(g.LDA), &g.B[0], int32(g.LDB), beta, &o.peer[0], int32(g.LDC))
}

// measure alternates the two, rounds times, and gives GFLOP/s of each round.
func (o *operands) measure(p *blas.Pool, lib *openblas, rounds int, each time.Duration) (ours, peers []float64) {
	flops := 2 * float64(o.M) * float64(o.N) * float64(o.K)
	timed := func(f func()) float64 {
		f()
		start, used, n := time.Now(), cpuTime(), 0
		for time.Since(start) < each || n == 0 {
			f()
			n++
		}
		took := time.Since(start)
		if p.Threads() == 1 {
			took = cpuTime() - used
		}
		return flops * float64(n) / took.Seconds() / 1e9
	}
	for range rounds {
		ours = append(ours, timed(func() { blas.Gemm(p, &o.g) }))
		if lib != nil {
			peers = append(peers, timed(func() { o.runPeer(lib) }))
		}
	}
	return ours, peers
}

// cpuTime is the processor time this process has used. One thread is measured
// by it, so that a machine shared with others measures both sides alike; more
// are measured by the clock.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // it cannot fail for RUSAGE_SELF
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// agree refuses to compare speeds of different answers: both are within
// (K+2)·u·Σ|a·b| ≤ (K+2)·u·K of the exact sum, inputs being within ±1.
func (o *operands) agree(p *blas.Pool, lib *openblas) error {
	clear(o.g.C)
	clear(o.peer)
	blas.Gemm(p, &o.g)
	o.runPeer(lib)
	bound := 2 * float64(o.K+2) * 0x1p-24 * float64(o.K)
	for i, v := range o.peer {
		if d := math.Abs(float64(o.g.C[i] - v)); !(d <= bound) {
			return fmt.Errorf("bench: %s: C[%d] is %g, openblas has %g", o.What, i, o.g.C[i], v)
		}
	}
	return nil
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	y := slices.Sorted(slices.Values(x))
	return y[len(y)/2]
}

func runTable(threads []int, shapes []shape, lib *openblas, rounds int, each time.Duration) ([]result, error) {
	var out []result
	for _, n := range threads {
		p := blas.NewPool(n)
		if lib != nil {
			lib.threads(int32(n))
		}
		for _, s := range shapes {
			o := newOperands(p, s)
			if lib != nil {
				if err := o.agree(p, lib); err != nil {
					return nil, err
				}
			}
			ours, peers := o.measure(p, lib, rounds, each)
			r := result{shape: s, Threads: n, GFlops: median(ours), Best: slices.Max(ours), Peer: median(peers)}
			if lib != nil {
				r.PeerBest = slices.Max(peers)
				r.Ratio, r.RatioBest = r.GFlops/r.Peer, r.Best/r.PeerBest
			}
			fmt.Fprintf(os.Stderr, "%d thr %4dx%4dx%4d tA %-5t tB %-5t packed %-5t %7.1f vs %7.1f  %.2f (best %.2f)  %s\n",
				n, s.M, s.N, s.K, s.TransA, s.TransB, s.Packed, r.GFlops, r.Peer, r.Ratio, r.RatioBest, s.What)
			out = append(out, r)
		}
		p.Close()
	}
	return out, nil
}
