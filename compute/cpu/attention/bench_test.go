//go:build unix

package attention

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"heddle/compute/cpu/blas"
)

// GFLOP/s counts the products a causal mask leaves: 2 of them forward, 5
// backward, 2·D·S·(S+1)/2 each. The time is the processor's, not the clock's,
// so that a shared machine measures alike.
func BenchmarkAttention(b *testing.B) {
	for _, s := range []Shape{{B: 8, Sq: 256, Sk: 256, G: 2, R: 1, D: 64}, {B: 8, Sq: 256, Sk: 256, G: 1, R: 4, D: 32}, {B: 1, Sq: 2048, Sk: 2048, G: 2, R: 2, D: 64}} {
		p := blas.NewPool(1)
		x := newData[float32](s, 1)
		scratch := make([]float32, ScratchLen[float32](p, s))
		flops := float64(s.B*s.G*s.R*s.D) * float64(s.Sq) * float64(s.Sq+1)
		name := fmt.Sprintf("B%d S%d G%d R%d D%d", s.B, s.Sq, s.G, s.R, s.D)
		b.Run(name+"/forward", func(b *testing.B) {
			start := used()
			for range b.N {
				Forward(p, s, x.t, scratch)
			}
			b.ReportMetric(2*flops*float64(b.N)/since(start)/1e9, "GFLOP/s")
		})
		b.Run(name+"/backward", func(b *testing.B) {
			start := used()
			for range b.N {
				Backward(p, s, x.t, x.d, scratch)
			}
			b.ReportMetric(5*flops*float64(b.N)/since(start)/1e9, "GFLOP/s")
		})
	}
}

// used is the processor time of this process in seconds.
func used() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // it cannot fail for RUSAGE_SELF
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

func since(start float64) float64 { return used() - start }
