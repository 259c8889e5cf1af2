package train

import (
	"fmt"
	"testing"

	"heddle/data"
	"heddle/parallel"
)

// BenchmarkStep times one step of the main job: 8 sequences of 256 tokens, under its layout and on one rank.
func BenchmarkStep(b *testing.B) {
	for _, l := range []parallel.Layout{{}, {FSDP: 2, TP: 2, SP: "megatron"}} {
		b.Run(fmt.Sprintf("%d ranks", l.World()), func(b *testing.B) {
			c := Default()
			c.Parallel = l
			s, err := c.Check()
			if err != nil {
				b.Fatal(err)
			}
			n := c.Batch * c.Seq
			batch := &data.Batch{B: c.Batch, S: c.Seq, IDs: make([]int32, n), Labels: make([]int32, n), Mask: make([]float32, n)}
			for i := range n {
				batch.IDs[i], batch.Labels[i], batch.Mask[i] = int32(i*7%c.Model.Vocab), int32(i*11%c.Model.Vocab), 1
			}
			err = Ranks(s.Mesh, Machine{Type: c.dtype()}, func(r *Rank) error {
				t, err := newTrainer(r, c, s)
				if err != nil {
					return err
				}
				for i := range b.N + 1 {
					if i == 1 && r.Index == 0 {
						b.ResetTimer()
					}
					if _, _, err := t.step(batch, 1, 1e-3); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
