package view

import (
	"fmt"
	"strconv"

	"heddle/tile"
	"heddle/tile/draw"
)

// DepthRequest is a choice in the user's terms.
type DepthRequest struct {
	Choice  tile.Choice // sizes, warpgroups, buffers, stages
	In, Out string      // types
	Cluster string      // "2x1"
	Chip    tile.Chip
}

// DepthResult is what the choice takes, the nearest that works, and how many stages others would have.
type DepthResult struct {
	Chip    string        `json:"chip"`
	Fit     tile.Fit      `json:"fit"`
	OK      bool          `json:"ok"`
	Nearest *tile.Fit     `json:"nearest,omitempty"` // only if the choice is refused
	A       *tile.Operand `json:"a,omitempty"`       // as wgmma's descriptor says it; only if the choice is not refused
	B       *tile.Operand `json:"b,omitempty"`
	Tables  []StagesTable `json:"stages"`
	in, out string
}

// StagesTable is how many stages fit at one BK, by BM (rows) and BN; -1 where the tile is refused for another reason.
type StagesTable struct {
	BK     int     `json:"bk"`
	BM     []int   `json:"bm"`
	BN     []int   `json:"bn"`
	Stages [][]int `json:"stages"`
}

// Depth works out a request.
func Depth(r DepthRequest) (DepthResult, error) {
	x := r.Choice
	var err error
	if x.In, err = ElemBytes(r.In); err != nil {
		return DepthResult{}, err
	}
	if x.Out, err = ElemBytes(r.Out); err != nil {
		return DepthResult{}, err
	}
	if x.ClusterM, x.ClusterN, err = pair("cluster", r.Cluster); err != nil {
		return DepthResult{}, err
	}
	if x.ClusterM < 1 || x.ClusterN < 1 {
		return DepthResult{}, fmt.Errorf("tile: cluster %q, want at least 1x1", r.Cluster)
	}
	res := DepthResult{Chip: r.Chip.Name, Fit: r.Chip.Fit(x), in: r.In, out: r.Out}
	res.OK = res.Fit.OK()
	if res.OK {
		if res.A, err = described(x.BM, x, res.Fit.Swizzle); err != nil {
			return DepthResult{}, err
		}
		if res.B, err = described(x.BN, x, res.Fit.Swizzle); err != nil {
			return DepthResult{}, err
		}
	} else {
		if near, ok := r.Chip.Nearest(x); ok {
			f := r.Chip.Fit(near)
			res.Nearest = &f
		}
	}
	for _, rowBytes := range []int{64, 128, 256} {
		t := StagesTable{BK: rowBytes / x.In, BM: []int{64, 128, 192, 256, 320}, BN: []int{64, 96, 128, 160, 192, 224, 256}}
		y := x
		y.BK = t.BK
		t.Stages = r.Chip.StagesTable(y, t.BM, t.BN)
		res.Tables = append(res.Tables, t)
	}
	return res, nil
}

// described is a K-major operand tile of the choice as TMA leaves it.
func described(rows int, x tile.Choice, mode tile.SwizzleMode) (*tile.Operand, error) {
	l, err := tile.OperandLayout(rows, x.BK, x.In, mode, false)
	if err != nil {
		return nil, err
	}
	o, err := tile.Describe(l, x.In, mode)
	return &o, err
}

// Picture draws the shared memory and the registers as bars, the rates, and the tables.
func (r DepthResult) Picture() (draw.Picture, error) {
	x := r.Fit.Choice
	p := draw.Picture{
		Title: fmt.Sprintf("%s: %d × %d × %d, %s → %s", r.Chip, x.BM, x.BN, x.BK, r.in, r.out),
		Notes: []string{fmt.Sprintf("cluster %d × %d, %d MMA warpgroups%s, %d epilogue buffers a warpgroup", x.ClusterM, x.ClusterN, x.Warpgroups,
			map[bool]string{true: " in ping-pong", false: ""}[x.PingPong], x.Buffers)},
	}
	for _, f := range r.Fit.Refusals {
		p.Notes = append(p.Notes, fmt.Sprintf("refused (%s): %s", f.Rule, f.Why))
	}
	shown := r.Fit
	if r.Nearest != nil {
		shown = *r.Nearest
		y := shown.Choice
		p.Notes = append(p.Notes, fmt.Sprintf("nearest that works, shown below: %d × %d × %d, cluster %d × %d, %d warpgroups, %d buffers, %d stages",
			y.BM, y.BN, y.BK, y.ClusterM, y.ClusterN, y.Warpgroups, y.Buffers, y.Stages))
	}
	if shown.SharedBytes > 0 {
		shared := sharedBar(shown)
		if r.A != nil {
			shared.Notes = append(shared.Notes, fmt.Sprintf("descriptors without address %#x; k steps at bytes %v of A and %v of B", r.A.Fields(), r.A.Steps, r.B.Steps))
		}
		p.Rows = append(p.Rows, []draw.Panel{shared}, []draw.Panel{registerBar(shown)}, []draw.Panel{rates(shown)})
	}
	var tables []draw.Panel
	for _, t := range r.Tables {
		tables = append(tables, t.panel(x))
	}
	p.Rows = append(p.Rows, tables)
	return p, nil
}

func sharedBar(f tile.Fit) draw.Panel {
	b := &draw.Bar{Unit: "bytes", Limit: float64(f.SharedLimit)}
	for i := range f.Choice.Stages {
		b.Segments = append(b.Segments, draw.Segment{Label: fmt.Sprintf("stage %d", i), Value: float64(f.StageBytes), Shade: i % 2 * 5})
	}
	b.Segments = append(b.Segments, draw.Segment{Label: "epilogue buffers", Value: float64(f.EpilogueBytes), Shade: 3},
		draw.Segment{Label: "barriers", Value: float64(f.BarrierBytes), Shade: 4})
	return draw.Panel{Title: "shared memory of a CTA", Bar: b, Notes: []string{
		fmt.Sprintf("%d stages of at most %d; operand rows of %d bytes, swizzle %v; a stage is %d + %d TMA boxes from this CTA",
			f.Choice.Stages, f.MaxStages, f.Choice.BK*f.Choice.In, f.Swizzle, f.BoxesA, f.BoxesB)}}
}

func registerBar(f tile.Fit) draw.Panel {
	groups := f.Choice.Warpgroups
	b := &draw.Bar{Unit: "registers", Limit: float64(f.Threads * f.Launch), Segments: []draw.Segment{
		{Label: fmt.Sprintf("producer warpgroup, %d a thread", f.Producer), Value: float64(128 * f.Producer), Shade: 7}}}
	for i := range groups {
		b.Segments = append(b.Segments,
			draw.Segment{Label: fmt.Sprintf("MMA warpgroup %d, %d accumulators a thread", i, f.Accumulators), Value: float64(128 * f.Accumulators), Shade: 0},
			draw.Segment{Label: fmt.Sprintf("MMA warpgroup %d, the other %d of its %d", i, f.Consumer-f.Accumulators, f.Consumer), Value: float64(128 * (f.Consumer - f.Accumulators)), Shade: 6})
	}
	return draw.Panel{Title: "registers of a CTA", Bar: b, Notes: []string{
		fmt.Sprintf("launched with %d threads × %d; setmaxnreg %d for the producer, %d for the MMA warpgroups; each computes %d × %d by m64n%d",
			f.Threads, f.Launch, f.Producer, f.Consumer, f.Rows, f.Cols, f.WgmmaN)}}
}

func rates(f tile.Fit) draw.Panel {
	g := &draw.Grid{Table: true, RowAxis: "at full tensor speed", ColNames: []string{"asked", "given", "share"}}
	add := func(name string, asked, given float64, unit string) {
		c := draw.Cell{Text: percent(asked / given), Shade: draw.Good}
		if asked > given {
			c.Shade, c.Mark = draw.Poor, true
		}
		g.RowNames = append(g.RowNames, name)
		g.Cells = append(g.Cells, []draw.Cell{{Text: fmt.Sprintf("%.1f %s", asked, unit), Shade: draw.None}, {Text: fmt.Sprintf("%.0f %s", given, unit), Shade: draw.None}, c})
	}
	add("L2 → SM, a clock", f.L2Asked, f.L2Given, "B")
	add("shared memory read by wgmma", f.SharedRead, f.SharedGiven, "B")
	add("shared memory written by TMA", f.SharedWrite, f.SharedGiven, "B")
	add("both, if they share the banks' cycles", f.SharedRead+f.SharedWrite, f.SharedGiven, "B")
	return draw.Panel{Title: "bytes a clock and SM", Grid: g, Notes: []string{
		fmt.Sprintf("a stage is multiplied in %.0f clocks; the other %d stages cover %.0f clocks of latency (an idle HBM read takes about %d)",
			f.Clocks, f.Choice.Stages-1, f.Covered, tile.HBMLatency),
		"Framed: asks for more than is given, and so runs below full speed; it is not refused."}}
}

func (t StagesTable) panel(x tile.Choice) draw.Panel {
	g := &draw.Grid{RowAxis: "BM", ColAxis: "BN"}
	for _, bn := range t.BN {
		g.ColNames = append(g.ColNames, strconv.Itoa(bn))
	}
	for i, bm := range t.BM {
		g.RowNames = append(g.RowNames, strconv.Itoa(bm))
		var row []draw.Cell
		for j, n := range t.Stages[i] {
			c := draw.Cell{Text: strconv.Itoa(n), Shade: draw.Good, Mark: bm == x.BM && t.BN[j] == x.BN && t.BK == x.BK}
			switch {
			case n < 0:
				c.Text, c.Shade = "–", draw.None
			case n < 2:
				c.Shade = draw.Poor
			case n < 4:
				c.Shade = draw.Fair
			}
			row = append(row, c)
		}
		g.Cells = append(g.Cells, row)
	}
	return draw.Panel{Title: fmt.Sprintf("stages at BK %d", t.BK), Grid: g, Notes: []string{"– refused; below 2 nothing overlaps"}}
}
