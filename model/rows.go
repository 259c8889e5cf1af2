package model

import (
	"fmt"
	"math"
	"strings"

	"heddle/model/hf"
	"heddle/parallel"
	"heddle/param"
	"heddle/tensor"
)

// The slots of a layer's parameters. A family has some of them; where it has not, a block sees the zero Tensor.
const (
	rowNorm1 = iota
	rowNorm1Bias
	rowQ
	rowQBias
	rowK
	rowKBias
	rowV
	rowVBias
	rowQNorm
	rowKNorm
	rowO
	rowOBias
	rowNorm2
	rowNorm2Bias
	rowGate
	rowGateBias
	rowUp
	rowUpBias
	rowDown
	rowDownBias
	layerSlots
)

// The slots of the root unit, what is outside the layers. The head is absent where it is tied.
const (
	rowEmbed = iota
	rowPositions
	rowFinal
	rowFinalBias
	rowHead
	rootSlots
)

// slot is one parameter that some family has. Letters give its shape (Config.size).
type slot struct {
	at      int
	role    hf.Role
	letters string
	use     parallel.Role
	has     bool
}

// layer lists a layer's slots in order.
func (c Config) layer() []slot {
	ln, qkv, mlp := c.LayerNorm(), c.QKVBiased(), c.MLPBiased()
	return []slot{
		{rowNorm1, hf.AttnNorm, "h", parallel.Vector, true},
		{rowNorm1Bias, hf.AttnNormBias, "h", parallel.Vector, ln},
		{rowQ, hf.Q, "grdh", parallel.Query, true},
		{rowQBias, hf.QBias, "grd", parallel.Query, qkv},
		{rowK, hf.K, "gdh", parallel.KeyValue, true},
		{rowKBias, hf.KBias, "gd", parallel.KeyValue, qkv},
		{rowV, hf.V, "gdh", parallel.KeyValue, true},
		{rowVBias, hf.VBias, "gd", parallel.KeyValue, qkv},
		{rowQNorm, hf.QNorm, "d", parallel.HeadNorm, c.QKNorm()},
		{rowKNorm, hf.KNorm, "d", parallel.HeadNorm, c.QKNorm()},
		{rowO, hf.O, "hgrd", parallel.Query, true},
		{rowOBias, hf.OBias, "h", parallel.Vector, c.OBiased()},
		{rowNorm2, hf.MLPNorm, "h", parallel.Vector, true},
		{rowNorm2Bias, hf.MLPNormBias, "h", parallel.Vector, ln},
		{rowGate, hf.Gate, "fh", parallel.MLP, c.Gated()},
		{rowGateBias, hf.GateBias, "f", parallel.MLP, mlp && c.Gated()},
		{rowUp, hf.Up, "fh", parallel.MLP, true},
		{rowUpBias, hf.UpBias, "f", parallel.MLP, mlp},
		{rowDown, hf.Down, "hf", parallel.MLP, true},
		{rowDownBias, hf.DownBias, "h", parallel.Vector, mlp},
	}
}

// root lists the root unit's slots in order.
func (c Config) root() []slot {
	return []slot{
		{rowEmbed, hf.Embed, "vh", parallel.Vocab, true},
		{rowPositions, hf.Position, "ph", parallel.Vector, c.Learned()},
		{rowFinal, hf.FinalNorm, "h", parallel.Vector, true},
		{rowFinalBias, hf.FinalNormBias, "h", parallel.Vector, c.LayerNorm()},
		{rowHead, hf.Head, "vh", parallel.Vocab, !c.Tied},
	}
}

// size is the global size of a letter.
func (c Config) size(letter rune, s *parallel.Scheme) int {
	return map[rune]int{'h': c.Hidden, 'g': c.KV, 'r': c.Rep(), 'd': c.Head, 'f': c.MLP, 'v': s.VocabPad(c.Vocab), 'p': c.Positions}[letter]
}

// Table is the parameter table of the model under a scheme. Names are those of package hf (hf.Param.Ours), which knows where
// transformers keeps each.
func (c Config) Table(s *parallel.Scheme) param.Table {
	var t param.Table
	for _, sl := range c.root() {
		if sl.has {
			t = append(t, c.row(sl, string(sl.role), 0, s))
		}
	}
	for l := range c.Layers {
		for _, sl := range c.layer() {
			if sl.has {
				t = append(t, c.row(sl, fmt.Sprintf("layers.%d.%s", l, sl.role), l+1, s))
			}
		}
	}
	return t
}

// row is a slot's row: matrices start normal and decay, the gains of norms start at 1, biases at 0.
func (c Config) row(sl slot, name string, unit int, s *parallel.Scheme) param.Row {
	r := param.Row{Name: name, Letters: sl.letters, Use: s.Use(sl.use), Unit: unit, Train: true}
	for _, l := range sl.letters {
		r.Dims = append(r.Dims, c.size(l, s))
	}
	if r.Valid = r.Dims[0]; sl.use == parallel.Vocab {
		r.Valid = c.Vocab
	}
	switch {
	case strings.HasSuffix(name, "_bias"):
	case len(sl.letters) == 1:
		r.Start = 1
	default:
		r.Std, r.Decay = c.Std, true
		if c.Family == hf.GPT2 && (sl.role == hf.O || sl.role == hf.Down) { // what adds to the stream, 2L times (Radford et al. 2019, 2.3)
			r.Std /= math.Sqrt(2 * float64(c.Layers))
		}
	}
	return r
}

// spread puts a unit's rows, in the order of its table, into their slots.
func spread(slots []slot, rows []tensor.Tensor) []tensor.Tensor {
	out := make([]tensor.Tensor, len(slots))
	for _, sl := range slots {
		if sl.has {
			out[sl.at], rows = rows[0], rows[1:]
		}
	}
	return out
}
