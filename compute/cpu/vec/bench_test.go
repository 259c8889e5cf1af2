package vec

import (
	"math/rand/v2"
	"testing"
)

// One row of 1024 elements, in cache: ns/op is ns per 1024.
func BenchmarkRow(b *testing.B) {
	const n = 1024
	r := rand.New(rand.NewPCG(1, 1))
	_, x, _ := rows32(r, 5, n)
	w, rstd := make([]float32, 128), make([]float32, n/128)
	for i := range x[2] {
		x[2][i] *= x[2][i]
	}
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(4 * n)
			for range b.N {
				f()
			}
		})
	}
	run("exp", func() { Exp(x[0], x[1]) })
	run("tanh", func() { Tanh(x[0], x[1]) })
	run("sigmoid", func() { Sigmoid(x[0], x[1]) })
	run("log", func() { Log(x[0], x[2]) })
	run("add", func() { Add(x[0], x[1], x[3]) })
	run("dot", func() { Dot(x[0], x[1]) })
	run("sumsquares", func() { SumSquares(x[1]) })
	run("max", func() { Max(x[1]) })
	run("sumexp", func() { SumExp(x[1], 4) })
	run("softmax", func() { Softmax(x[0], x[1]) })
	run("swiglu", func() { SwiGLU(x[0], x[1], x[3]) })
	run("swigluBackward", func() { SwiGLUBackward(x[0], x[4], x[1], x[3], x[1]) })
	run("rmsnorm128", func() { RMSNorm(x[0], x[1], w, rstd, 1e-6) })
	run("rmsnorm128backward", func() { RMSNormBackward(x[0], x[1], x[3], w, rstd, false) })
	run("rmsnorm128weights", func() { RMSNormWeights(w, x[1], x[3], rstd, 128) })
	run("rope32", func() { RoPE(x[0], w[:32], w[32:64]) })
	run("adamw", func() { Update(AdamW{LR: 1e-3, Step: 10, Beta1: .9, Beta2: .95, Eps: 1e-8}, x[0], x[1], x[2], x[3]) })
}
