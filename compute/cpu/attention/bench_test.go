package attention

import (
	"fmt"
	"testing"

	"heddle/compute/cpu/blas"
)

// GFLOP/s counts the products a causal mask leaves: 2 of them forward, 5
// backward, 2·D·S·(S+1)/2 each.
func BenchmarkAttention(b *testing.B) {
	for _, s := range []Shape{{B: 8, Sq: 256, Sk: 256, G: 2, R: 1, D: 64}, {B: 8, Sq: 256, Sk: 256, G: 1, R: 4, D: 32}, {B: 1, Sq: 2048, Sk: 2048, G: 2, R: 2, D: 64}} {
		p := blas.NewPool(1)
		x := newData[float32](s, 1)
		scratch := make([]float32, ScratchLen[float32](p, s))
		flops := float64(s.B*s.G*s.R*s.D) * float64(s.Sq) * float64(s.Sq+1)
		name := fmt.Sprintf("B%d S%d G%d R%d D%d", s.B, s.Sq, s.G, s.R, s.D)
		b.Run(name+"/forward", func(b *testing.B) {
			for range b.N {
				Forward(p, s, x.t, scratch)
			}
			b.ReportMetric(2*flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
		b.Run(name+"/backward", func(b *testing.B) {
			for range b.N {
				Backward(p, s, x.t, x.d, scratch)
			}
			b.ReportMetric(5*flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
