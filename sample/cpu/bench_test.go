package cpu_test

import (
	"context"
	"fmt"
	"testing"

	"heddle/compute/cpu/blas"
	"heddle/model/hf"
	"heddle/sample"
	"heddle/sample/cpu"
)

// BenchmarkForward is one token a sequence in a model of SmolLM2-135M's size, 200 tokens in. GB/s counts the weights once.
func BenchmarkForward(b *testing.B) {
	c := hf.Config{Family: hf.Llama, Layers: 30, Hidden: 576, Heads: 9, KVHeads: 3, HeadDim: 64, MLP: 1536, Vocab: 49152, Positions: 8192,
		Eps: 1e-5, Activation: hf.SiLU, Rope: hf.Rope{Theta: 1e5}, Tied: true, BOS: -1}
	pool := blas.NewPool(2)
	defer pool.Close()
	d, err := cpu.New(c, pool)
	if err != nil {
		b.Fatal(err)
	}
	err = d.Load(func(p hf.Param) ([]float32, error) {
		n := 1
		for _, k := range p.Shape {
			n *= k
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(i*2654435761%1000-500) * 1e-4
		}
		return v, nil
	}, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, batch := range []int{1, 2, 4, 8, 16, 32} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			var feeds []sample.Feed
			for range batch {
				feeds = append(feeds, sample.Feed{Seq: d.Fork(sample.None, 0), Tokens: make([]int32, 200), Logits: make([]float32, c.Vocab)})
			}
			step := func() {
				if err := d.Forward(feeds); err != nil {
					b.Fatal(err)
				}
				for i := range feeds {
					feeds[i].Tokens = []int32{7}
				}
			}
			step()
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(d.WeightBytes())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
			b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "tok/s")
			for _, f := range feeds {
				d.Close(f.Seq)
			}
		})
	}
}

// BenchmarkGenerate is 64 sequences of 48 tokens in a model of the size that reinforcement learning on small tasks has, one thread.
func BenchmarkGenerate(b *testing.B) {
	c := hf.Config{Family: hf.Qwen3, Layers: 4, Hidden: 128, Heads: 4, KVHeads: 2, HeadDim: 32, MLP: 384, Vocab: 64, Positions: 96,
		Eps: 1e-6, Activation: hf.SiLU, QKNorm: true, Rope: hf.Rope{Theta: 1e4}, Tied: true, BOS: -1}
	d, err := cpu.New(c, blas.NewPool(1))
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Load(values, 0); err != nil {
		b.Fatal(err)
	}
	p := sample.Prompt{IDs: make([]int32, 12), Streams: make([]uint64, 8)}
	tokens := 0
	for b.Loop() {
		_, bill, err := sample.Generate(context.Background(), d, sample.Options{MaxTokens: 48, Temperature: 1, Batch: 64}, p, p, p, p, p, p, p, p)
		if err != nil {
			b.Fatal(err)
		}
		tokens += bill.Sampled
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
}
