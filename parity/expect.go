package parity

import (
	"heddle/comm"
	"heddle/model"
	"heddle/parallel"
	"heddle/parity/formula"
	"heddle/tensor"
)

// shape is what the closed forms know of a model and a batch.
func shape(c model.Config, b, s int, t tensor.DType) formula.Shape {
	m := formula.Shape{B: b, S: s, H: c.Hidden, A: c.Heads, G: c.KV, D: c.Head, F: c.MLP, V: c.Vocab, L: c.Layers, Tied: c.Tied, Elem: t.Size(),
		LayerNorm: c.LayerNorm(), QKNorm: c.QKNorm(), Gated: c.Gated(), QKVBias: c.QKVBiased(), OutBias: c.OBiased(), MLPBias: c.MLPBiased()}
	if c.Learned() {
		m.Positions = c.Positions
	}
	return m
}

func layout(l parallel.Layout) formula.Layout {
	return formula.Layout{DP: l.DP, FSDP: l.FSDP, CP: l.CP, TP: l.TP, Megatron: l.SP == "megatron"}
}

// bytes is what was received, by axis and operation, on the rank that received most.
func (r *Result) bytes() formula.Table {
	out := formula.Table{}
	for _, rank := range r.Ranks {
		mine := formula.Table{}
		for k, row := range rank.Meter.Rows {
			if k.Kind != comm.Barrier {
				mine[k.Axes+"/"+k.Kind.String()] += row.Wire
			}
		}
		for k, n := range mine {
			out[k] = max(out[k], n)
		}
	}
	return out
}
