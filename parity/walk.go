package parity

import (
	"fmt"
	"strings"

	"heddle/compute"
	"heddle/mesh"
	"heddle/model"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/train"
)

// Walkthrough is one layer's forward and backward under several schemes, aligned by operation.
type Walkthrough struct {
	Schemes []string     `json:"schemes"`
	Model   model.Config `json:"model"`
	Batch   int          `json:"batch"`
	Seq     int          `json:"seq"`
	DType   string       `json:"dtype"`
	Layer   int          `json:"layer"`
	Rank    int          `json:"rank"`
	Lines   []Line       `json:"lines"`
	Totals  []Total      `json:"totals"` // of the layer, a scheme each
}

// Line is one operation; a scheme that has no such operation has a nil cell.
type Line struct {
	Phase   string  `json:"phase"`
	Name    string  `json:"name"`    // of the operation, or of the place in the program where the schemes' collectives differ
	Letters string  `json:"letters"` // "bsh·grdh → bsgrd"
	Cells   []*Cell `json:"cells"`
}

// Cell is what one scheme does in a line.
type Cell struct {
	Op     string   `json:"op"`
	Axes   string   `json:"axes,omitempty"`
	Before []string `json:"before"` // places of the operands
	After  string   `json:"after"`  // and of the result
	Dims   []int    `json:"dims"`   // of the result on this rank
	Bytes  int64    `json:"bytes"`  // received
	Held   int      `json:"held"`   // memory of the rank, the result included
}

// Total sums a scheme's cells.
type Total struct {
	Calls int   `json:"collectives"`
	Bytes int64 `json:"bytes"`
	Peak  int   `json:"peak"` // of memory held, within the layer
}

// Walk runs each scheme dry and lays the calls of layer 0 on rank 0 side by side.
func Walk(in Input, schemes []Scheme, t tensor.DType) (*Walkthrough, error) {
	w := &Walkthrough{Model: in.Config, Batch: in.B, Seq: in.S, DType: t.String()}
	for i, s := range schemes {
		r, err := Gradient(in, s.Layout, Options{On: train.Machine{Type: t, Dry: true}})
		if err != nil {
			return nil, fmt.Errorf("scheme %s: %w", s.Name, err)
		}
		sc, err := parallel.New(s.Layout, parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
		if err != nil {
			return nil, err
		}
		w.Schemes = append(w.Schemes, s.Name)
		lines, total := layerLines(r.Ranks[w.Rank].Calls, w.Layer, sc.Mesh)
		w.Totals = append(w.Totals, total)
		w.Lines = merge(w.Lines, lines, i)
	}
	return w, nil
}

// layerLines are the calls of one layer as lines of one cell. Copies that pack and unpack the data of collectives are left out.
func layerLines(calls []compute.Call, layer int, m *mesh.Mesh) (lines []Line, t Total) {
	for _, c := range calls {
		if c.Layer != layer {
			continue
		}
		t.Peak = max(t.Peak, c.Held)
		if len(c.Args) == 0 {
			continue
		}
		cell := &Cell{Op: c.Op, Axes: c.Axes, After: places(m, c.Args[0]), Dims: c.Args[0].Dims, Bytes: c.Bytes, Held: c.Held}
		line := Line{Phase: c.Phase, Name: c.Op, Cells: []*Cell{cell}}
		var letters []string
		for _, a := range c.Args[1:] {
			cell.Before, letters = append(cell.Before, places(m, a)), append(letters, a.Letters)
		}
		line.Letters = strings.Join(letters, "·") + " → " + c.Args[0].Letters
		if c.Site != "" {
			line.Name = c.Site
			t.Calls++
			t.Bytes += c.Bytes
		}
		lines = append(lines, line)
	}
	return lines, t
}

// places writes a tensor's places. Factors of one axis are joined: S(g)@tp.kv with S(r)@tp.rep is S(gr), with R it is S(g)R.
// Where there are several axes they are named, and those at which the tensor is R are left out.
func places(m *mesh.Mesh, a compute.Arg) string {
	if len(m.Axes()) == 0 {
		return "whole"
	}
	var names, out []string
	for i, axis := range m.Axes() {
		base, _, _ := strings.Cut(axis.Name, ".")
		p := a.At[i].String()
		if k := len(names) - 1; k >= 0 && names[k] == base {
			out[k] = join(out[k], p)
			continue
		}
		names, out = append(names, base), append(out, p)
	}
	if len(names) == 1 {
		return out[0]
	}
	var named []string
	for k, n := range names {
		if out[k] != "R" {
			named = append(named, out[k]+"@"+n)
		}
	}
	if named == nil {
		return "R"
	}
	return strings.Join(named, " ")
}

func join(a, b string) string {
	switch {
	case a == b:
		return a
	case strings.HasPrefix(a, "S(") && strings.HasPrefix(b, "S("):
		return a[:len(a)-1] + b[2:]
	}
	return a + b
}

// same tells whether two lines are the same operation on the same letters, or collectives of the same place in the program.
func same(a, b Line) bool { return a.Phase == b.Phase && a.Name == b.Name && a.Letters == b.Letters }

// merge lays the lines of the n-th scheme beside those of the schemes before it: a longest common subsequence is aligned,
// what only one side has stands alone.
func merge(all, more []Line, n int) []Line {
	long := make([][]int, len(all)+1) // long[i][j]: of all[i:] and more[j:]
	for i := range long {
		long[i] = make([]int, len(more)+1)
	}
	for i := len(all) - 1; i >= 0; i-- {
		for j := len(more) - 1; j >= 0; j-- {
			if long[i][j] = max(long[i+1][j], long[i][j+1]); same(all[i], more[j]) {
				long[i][j] = max(long[i][j], long[i+1][j+1]+1)
			}
		}
	}
	var out []Line
	i, j := 0, 0
	for i < len(all) || j < len(more) {
		switch {
		case i < len(all) && j < len(more) && same(all[i], more[j]) && long[i][j] == long[i+1][j+1]+1:
			line := all[i]
			line.Cells = append(line.Cells, more[j].Cells[0])
			out = append(out, line)
			i, j = i+1, j+1
		case j == len(more) || i < len(all) && long[i+1][j] >= long[i][j+1]:
			line := all[i]
			line.Cells = append(line.Cells, nil)
			out = append(out, line)
			i++
		default:
			line := more[j]
			line.Cells = append(make([]*Cell, n), line.Cells[0])
			out = append(out, line)
			j++
		}
	}
	return out
}
