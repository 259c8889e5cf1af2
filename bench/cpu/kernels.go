package main

import (
	"math"
	"math/rand/v2"
	"time"

	"heddle/compute/cpu/attention"
	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
)

// rowResult is one function of package vec on rows of 1024 in cache, beside the
// plain Go loop with package math's functions (float64's path, on as many
// elements), in ns of processor time an element.
type rowResult struct {
	Name       string
	NsPer      float64
	NsPerPlain float64
}

// attentionResult is one shape of attention on one thread.
type attentionResult struct {
	B, S, G, R, D  int
	ForwardGFlops  float64 // of the products the mask leaves, 2·D·S·(S+1)/2 each, two of them
	BackwardGFlops float64 // five of them
	ScratchBytes   int     // of a thread, forward and backward
	AllScoresBytes int     // what B·A·S·S float32 scores would take
}

// rowFuncs are measured in both types from one body.
func rowFuncs[T vec.Float](r *rand.Rand) map[string]func() {
	const n = 1024
	x := make([][]T, 6)
	for i := range x {
		x[i] = make([]T, n)
		for j := range x[i] {
			x[i][j] = T(r.NormFloat64())
		}
	}
	pos, w, rstd := make([]T, n), x[4][:128], make([]T, n/128)
	for i, v := range x[1] {
		pos[i] = v*v + 1e-3
	}
	moment := make([]T, n)
	return map[string]func(){
		"exp":             func() { vec.Exp(x[0], x[1]) },
		"tanh":            func() { vec.Tanh(x[0], x[1]) },
		"sigmoid":         func() { vec.Sigmoid(x[0], x[1]) },
		"log":             func() { vec.Log(x[0], pos) },
		"add":             func() { vec.Add(x[0], x[1], x[2]) },
		"dot":             func() { vec.Dot(x[1], x[2]) },
		"sum of squares":  func() { vec.SumSquares(x[1]) },
		"softmax":         func() { vec.Softmax(x[0], x[1]) },
		"swiglu":          func() { vec.SwiGLU(x[0], x[1], x[2]) },
		"swiglu backward": func() { vec.SwiGLUBackward(x[0], x[5], x[1], x[2], x[3]) },
		"rmsnorm 128":     func() { vec.RMSNorm(x[0], x[1], w, rstd, 1e-6) },
		"rmsnorm 128 dx":  func() { vec.RMSNormBackward(x[0], x[2], x[1], w, rstd, false) },
		"gelu":            func() { vec.GELU(x[0], x[1]) },
		"adamw": func() {
			vec.Update(vec.AdamW{LR: 1e-9, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Step: 100}, x[5], moment, pos, x[1])
		},
	}
}

// perElement is the best of rounds, in ns of processor time.
func perElement(f func(), elements, rounds int, each time.Duration) float64 {
	best := math.Inf(1)
	for range rounds {
		start, used, n := time.Now(), cpuTime(), 0
		for time.Since(start) < each {
			for range 16 {
				f()
			}
			n += 16
		}
		best = min(best, float64((cpuTime()-used).Nanoseconds())/float64(n*elements))
	}
	return best
}

func runRows(rounds int, each time.Duration) []rowResult {
	r := rand.New(rand.NewPCG(1, 1))
	fast, plain := rowFuncs[float32](r), rowFuncs[float64](r)
	var out []rowResult
	for _, name := range []string{"exp", "tanh", "sigmoid", "log", "add", "dot", "sum of squares", "softmax", "swiglu", "swiglu backward",
		"gelu", "rmsnorm 128", "rmsnorm 128 dx", "adamw"} {
		out = append(out, rowResult{name, perElement(fast[name], 1024, rounds, each), perElement(plain[name], 1024, rounds, each)})
	}
	return out
}

func runAttention(rounds int, each time.Duration) []attentionResult {
	var out []attentionResult
	for _, s := range []attention.Shape{
		{B: 8, Sq: 256, G: 2, R: 2, D: 32}, {B: 8, Sq: 256, G: 2, R: 1, D: 64}, {B: 8, Sq: 256, G: 4, R: 2, D: 64},
		{B: 1, Sq: 1024, G: 1, R: 2, D: 64}, {B: 1, Sq: 4096, G: 1, R: 1, D: 64}, {B: 1, Sq: 16384, G: 1, R: 1, D: 64},
	} {
		s.Sk = s.Sq
		out = append(out, oneAttention(s, rounds, each))
	}
	return out
}

func oneAttention(s attention.Shape, rounds int, each time.Duration) attentionResult {
	r := rand.New(rand.NewPCG(1, 1))
	normal := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	p := blas.NewPool(1)
	heads := s.G * s.R
	q, kv := s.B*s.Sq*heads*s.D, s.B*s.Sk*s.G*s.D
	t := attention.Tensors[float32]{Q: normal(q), K: normal(kv), V: normal(kv), O: make([]float32, q), LSE: make([]float32, s.B*s.Sq*heads)}
	d := attention.Grads[float32]{DO: normal(q), DQ: make([]float32, q), DK: make([]float32, kv), DV: make([]float32, kv)}
	scratch := make([]float32, attention.ScratchLen[float32](p, s))
	product := float64(q) * float64(s.Sq+1) // 2·D·S·(S+1)/2 a head
	speed := func(products float64, f func()) float64 {
		best := 0.0
		f()
		for range rounds {
			start, used, n := time.Now(), cpuTime(), 0
			for time.Since(start) < each || n == 0 {
				f()
				n++
			}
			best = max(best, products*product*float64(n)/(cpuTime()-used).Seconds()/1e9)
		}
		return best
	}
	return attentionResult{
		B: s.B, S: s.Sq, G: s.G, R: s.R, D: s.D,
		ForwardGFlops:  speed(2, func() { attention.Forward(p, s, t, scratch) }),
		BackwardGFlops: speed(5, func() { attention.Backward(p, s, t, d, scratch) }),
		ScratchBytes:   4 * len(scratch), AllScoresBytes: 4 * s.B * heads * s.Sq * s.Sq,
	}
}
