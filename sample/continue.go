package sample

import (
	"heddle/comm"
	"heddle/compute"
	"heddle/compute/cpu/vec"
	"heddle/model"
	"heddle/num"
	"heddle/tensor"
)

// Plain is how Continue samples. Temperature 0 takes the likeliest token.
type Plain struct {
	Tokens      int
	Seed        uint64
	Temperature float64
}

// Continue extends each prompt by Tokens tokens; every rank of the model calls it with the same prompts and returns the same
// text. Their number must be a multiple of the data ranks, and prompt and continuation must fit seq, the window that is
// computed, which the layout must be able to cut. All prompts have the same length.
func Continue(m *model.Model, r *compute.Device, g *comm.Group, prompts [][]int32, seq int, o Plain) [][]int32 {
	var d drawer
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
			ids[i*seq+at] = d.plain(row[:m.Config.Vocab], o, uint64(i), uint64(at))
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

// plain is the Generator's draw, without its measurements.
func (d *drawer) plain(logits []float64, o Plain, sequence, position uint64) int32 {
	x := make([]float32, len(logits))
	for i, v := range logits {
		x[i] = float32(v)
	}
	m := vec.Max(x)
	if o.Temperature == 0 {
		return first(x, m)
	}
	id, _ := d.pick(x, m, choice{temperature: o.Temperature, u: num.Uniform(o.Seed, sequence, position)})
	return id
}
