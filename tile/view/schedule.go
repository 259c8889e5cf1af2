package view

import (
	"fmt"
	"strconv"

	"heddle/tile"
	"heddle/tile/draw"
)

// ScheduleRequest is a GEMM, its tile, and the order in which clusters take the tiles.
type ScheduleRequest struct {
	M, N, K int
	Work    tile.Work // K is taken from the line above
	Cluster string    // "2x1"
	Order   tile.Order
	Group   int
	Fast    tile.Axis
	Chip    tile.Chip
	SMs     int // 0 takes the chip's
	L2      int // effective bytes; 0 estimates at 30 and 60 MB
}

// L2Guess is a hit rate for a cache of Bytes. It is a model's estimate.
type L2Guess struct {
	Bytes int `json:"l2_bytes"`
	tile.L2Estimate
}

// OrderTraffic is what one order reads.
type OrderTraffic struct {
	Order   tile.Order `json:"order"`
	Group   int        `json:"group,omitempty"`
	L2      []L2Guess  `json:"l2_estimates"`
	PerWave float64    `json:"stripe_bytes_per_wave"`
	NewWave float64    `json:"new_stripe_bytes_per_wave"`
}

// ScheduleResult is the path, cut into waves, and what it reads, beside the other orders.
type ScheduleResult struct {
	TilesM   int            `json:"tiles_m"`
	TilesN   int            `json:"tiles_n"`
	ClusterM int            `json:"cluster_m"`
	ClusterN int            `json:"cluster_n"`
	Order    tile.Order     `json:"order"`
	Group    int            `json:"group,omitempty"`
	SMs      int            `json:"sms"`
	Waves    []tile.Wave    `json:"waves"`
	LastWave float64        `json:"last_wave_full"` // share of the SMs at work in the last wave
	Chosen   OrderTraffic   `json:"chosen"`
	Others   []OrderTraffic `json:"others"`
	Path     []tile.Pos     `json:"path"`
	schedule tile.Schedule
	perWave  int
}

// Schedule works out a request.
func Schedule(r ScheduleRequest) (ScheduleResult, error) {
	cm, cn, err := pair("cluster", r.Cluster)
	if err != nil {
		return ScheduleResult{}, err
	}
	w := r.Work
	w.K = r.K
	if r.M < 1 || r.N < 1 || r.K < 1 || w.BM < 1 || w.BN < 1 || cm < 1 || cn < 1 || cm > 16 || cn > 16 {
		return ScheduleResult{}, fmt.Errorf("tile: GEMM of %d × %d × %d by %d × %d tiles in clusters of %d × %d: want sizes of at least 1, clusters up to 16", r.M, r.N, r.K, w.BM, w.BN, cm, cn)
	}
	if r.SMs == 0 {
		r.SMs = r.Chip.SMs
	}
	r.Chip.SMs = r.SMs
	s := tile.Schedule{TilesM: (r.M-1)/w.BM + 1, TilesN: (r.N-1)/w.BN + 1, ClusterM: cm, ClusterN: cn, Order: r.Order, Group: r.Group, Fast: r.Fast}
	res := ScheduleResult{TilesM: s.TilesM, TilesN: s.TilesN, ClusterM: cm, ClusterN: cn, Order: r.Order, SMs: r.SMs, schedule: s, perWave: r.SMs / (cm * cn)}
	if r.Order == tile.Grouped || r.Order == tile.Serpentine {
		res.Group = r.Group
	}
	if res.Path, err = s.Path(); err != nil {
		return res, err
	}
	if res.Waves, err = s.Waves(res.Path, r.SMs, w); err != nil {
		return res, err
	}
	res.LastWave = float64(res.Waves[len(res.Waves)-1].Clusters) / float64(res.perWave)
	if res.Chosen, err = r.traffic(s, w); err != nil {
		return res, err
	}
	for _, o := range tile.Orders() {
		if o == r.Order {
			continue
		}
		s.Order, s.Group = o, max(r.Group, 1)
		t, err := r.traffic(s, w)
		if err != nil {
			return res, err
		}
		res.Others = append(res.Others, t)
	}
	return res, nil
}

// traffic estimates what one order reads.
func (r ScheduleRequest) traffic(s tile.Schedule, w tile.Work) (OrderTraffic, error) {
	t := OrderTraffic{Order: s.Order}
	if s.Order == tile.Grouped || s.Order == tile.Serpentine {
		t.Group = s.Group
	}
	path, err := s.Path()
	if err != nil {
		return t, err
	}
	waves, err := s.Waves(path, r.SMs, w)
	if err != nil {
		return t, err
	}
	for _, v := range waves {
		t.PerWave += float64(v.Bytes) / float64(len(waves))
		t.NewWave += float64(v.NewBytes) / float64(len(waves))
	}
	sizes := []int{r.L2}
	if r.L2 == 0 {
		sizes = []int{30 << 20, 60 << 20}
	}
	for _, bytes := range sizes {
		e, err := s.EstimateL2(path, r.Chip, bytes, w)
		if err != nil {
			return t, err
		}
		t.L2 = append(t.L2, L2Guess{bytes, e})
	}
	return t, nil
}

// Picture draws the waves over the output, the path through it, and what each order reads.
func (r ScheduleResult) Picture() (draw.Picture, error) {
	p := draw.Picture{
		Title: fmt.Sprintf("%s order over %d × %d tiles", r.Chosen.name(), r.TilesM, r.TilesN),
		Notes: []string{
			fmt.Sprintf("clusters of %d × %d on %d SMs: %s, %s of %d; the last one fills %s of the SMs", r.ClusterM, r.ClusterN, r.SMs,
				count(len(r.Path), "cluster"), count(len(r.Waves), "wave"), r.perWave, percent(r.LastWave)),
			"~ marks a model's estimate: clusters of a wave in lockstep, L2 in two halves, least recently used out.",
		},
		Rows: [][]draw.Panel{{r.orders()}, {r.waves()}},
	}
	if drawable(r.TilesM, r.TilesN) == nil {
		p.Rows = append(p.Rows, []draw.Panel{r.grid()})
	} else {
		p.Notes = append(p.Notes, fmt.Sprintf("the output is not drawn: more than %d × %d tiles could not be read", draw.MaxCells, draw.MaxCells))
	}
	return p, nil
}

func (t OrderTraffic) name() string {
	if t.Group > 0 {
		return fmt.Sprintf("%s %d", t.Order, t.Group)
	}
	return string(t.Order)
}

func mib(x float64) string { return fmt.Sprintf("%.1f", x/(1<<20)) }

func (r ScheduleResult) orders() draw.Panel {
	g := &draw.Grid{Table: true, RowAxis: "order", ColNames: []string{"MiB a wave", "of it new"}}
	for _, e := range r.Chosen.L2 {
		g.ColNames = append(g.ColNames, fmt.Sprintf("~hits at %d MB", e.Bytes>>20), fmt.Sprintf("~DRAM MiB at %d MB", e.Bytes>>20))
	}
	for i, t := range append([]OrderTraffic{r.Chosen}, r.Others...) {
		g.RowNames = append(g.RowNames, t.name())
		row := []draw.Cell{{Text: mib(t.PerWave), Shade: draw.None}, {Text: mib(t.NewWave), Shade: draw.None}}
		for _, e := range t.L2 {
			row = append(row, draw.Cell{Text: percent(e.HitRate), Shade: draw.None}, draw.Cell{Text: mib(float64(e.DRAM)), Shade: draw.None})
		}
		for j := range row {
			row[j].Mark = i == 0
		}
		g.Cells = append(g.Cells, row)
	}
	return draw.Panel{Title: "orders", Grid: g, Notes: []string{"MiB a wave: the stripes of A and B that its tiles touch; new: not touched by the wave before."}}
}

// maxWaves is how many waves the picture lists.
const maxWaves = 12

func (r ScheduleResult) waves() draw.Panel {
	g := &draw.Grid{Table: true, RowAxis: "wave", ColNames: []string{"tiles", "A stripes", "B stripes", "new A", "new B", "MiB", "new MiB"}}
	for i, v := range r.Waves[:min(len(r.Waves), maxWaves)] {
		g.RowNames = append(g.RowNames, strconv.Itoa(i))
		var row []draw.Cell
		for _, n := range []int{v.Tiles, v.StripesA, v.StripesB, v.NewA, v.NewB} {
			row = append(row, draw.Cell{Text: strconv.Itoa(n), Shade: draw.None})
		}
		row = append(row, draw.Cell{Text: mib(float64(v.Bytes)), Shade: draw.None}, draw.Cell{Text: mib(float64(v.NewBytes)), Shade: draw.None})
		row[0].Shade = i
		g.Cells = append(g.Cells, row)
	}
	panel := draw.Panel{Title: "waves", Grid: g}
	if len(r.Waves) > maxWaves {
		panel.Notes = []string{fmt.Sprintf("%d more waves", len(r.Waves)-maxWaves)}
	}
	return panel
}

func (r ScheduleResult) grid() draw.Panel {
	g := &draw.Grid{RowAxis: "M", ColAxis: "N", Cells: make([][]draw.Cell, r.TilesM)}
	for i := range g.Cells {
		g.Cells[i] = make([]draw.Cell, r.TilesN)
	}
	for i, c := range r.Path {
		wave := i / r.perWave
		tiles := r.schedule.Tiles(c)
		for _, t := range tiles {
			g.Cells[t.M][t.N] = draw.Cell{Text: strconv.Itoa(wave), Shade: wave}
		}
		last := tiles[len(tiles)-1] // the line goes through the middle of the cluster
		g.Path = append(g.Path, [2]float64{float64(tiles[0].M+last.M+1) / 2, float64(tiles[0].N+last.N+1) / 2})
	}
	return draw.Panel{Title: "output tiles, by wave", Grid: g, Notes: []string{
		"A cell is a tile with the number of its wave; colours repeat every 8 waves. In SVG a line shows the order of the clusters, from the dot."}}
}
