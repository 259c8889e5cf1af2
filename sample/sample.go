// Package sample continues text. This is the plain way: the whole window is computed again for every token.
package sample

import (
	"math"

	"heddle/comm"
	"heddle/compute"
	"heddle/model"
	"heddle/num"
	"heddle/tensor"
)

// Options of sampling. Temperature 0 takes the likeliest token.
type Options struct {
	Tokens      int
	Seed        uint64
	Temperature float64
}

// Continue extends each prompt by Tokens tokens; every rank of the model calls it with the same prompts and returns the same
// text. Their number must be a multiple of the data ranks, and prompt and continuation must fit seq, the window that is
// computed, which the layout must be able to cut. All prompts have the same length.
func Continue(m *model.Model, r *compute.Device, g *comm.Group, prompts [][]int32, seq int, o Options) [][]int32 {
	b, at := len(prompts), len(prompts[0])
	ids, labels, mask := make([]int32, b*seq), make([]int32, b*seq), make([]float32, b*seq)
	for i, p := range prompts {
		copy(ids[i*seq:], p)
	}
	for ; at < len(prompts[0])+o.Tokens; at++ {
		sc := r.Open()
		batch := m.NewBatch(b, seq, ids, labels, mask)
		rows := lastLogits(m, r, g, m.Logits(batch), at-1)
		r.Close(sc)
		for i, row := range rows {
			ids[i*seq+at] = pick(row[:m.Config.Vocab], o, uint64(i), uint64(at))
		}
	}
	out := make([][]int32, b)
	for i := range out {
		out[i] = ids[i*seq : i*seq+at]
	}
	return out
}

// lastLogits brings the logits of one position of every sequence to every rank: [B][V].
func lastLogits(m *model.Model, r *compute.Device, g *comm.Group, logits tensor.Tensor, at int) [][]float64 {
	s := m.Scheme
	tp, cp := s.TP.KV|s.TP.Rep, s.CP.KV|s.CP.Rep
	if cp != 0 {
		logits = g.AllGather("sample tokens", logits, cp, 's')
	}
	n := []int{logits.Dims[0], 1, logits.Dims[2]}
	row := r.New(logits.Type, logits.Letters, n, logits.At)
	r.CopyBox(row, logits, compute.Box{DstLo: []int{0, 0, 0}, SrcLo: []int{0, at, 0}, Dims: n})
	if tp != 0 {
		row = g.AllGather("sample vocabulary", row, tp, 'v')
	}
	if s.Data != 0 {
		row = g.AllGather("sample batch", row, s.Data, 'b')
	}
	host, v := r.Download(row), row.Dims[2]
	out := make([][]float64, row.Dims[0])
	for i := range out {
		out[i] = host[i*v : i*v+v]
	}
	return out
}

// pick draws a token from softmax(logits/temperature). The random number belongs to the sequence and position, not to the
// batch or the layout.
func pick(logits []float64, o Options, sequence, position uint64) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	if o.Temperature == 0 {
		return int32(best)
	}
	p, sum := make([]float64, len(logits)), 0.0
	for i, v := range logits {
		p[i] = math.Exp((v - logits[best]) / o.Temperature)
		sum += p[i]
	}
	u := num.Uniform(o.Seed, sequence, position) * sum
	for i := range p {
		if u -= p[i]; u < 0 {
			return int32(i)
		}
	}
	return int32(best)
}
