package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"heddle/trace/analyze"
)

//go:embed bubbles.html
var bubblePage []byte

// pageItems is how many things a page shows at most; beyond, the shortest are left out. 200,000 make 6 MB.
const pageItems = 200_000

// pageGaps is how many gaps a device's table holds.
const pageGaps = 200

// page is the data of the page. Times are ns relative to the page's first moment.
type page struct {
	Report  *analyze.Report `json:"report"`
	Names   []string        `json:"names"`
	Rows    []pageRow       `json:"rows"`
	Zero    []int64         `json:"zero"` // the first kernel of each device of the report
	LeftOut int             `json:"leftOut"`
}

// pageRow is a row of the timeline: items of start, duration, name and kind, four numbers each.
type pageRow struct {
	Group string  `json:"group"`
	Label string  `json:"label"`
	Items []int64 `json:"items"`
	items []item
}

type item struct {
	start, dur int64
	name       int
	kind       int // a WorkKind, or hostItem
}

const hostItem = 10

// BubbleHTML writes the report as a page that needs nothing else: tables, and a timeline to zoom into.
func BubbleHTML(w io.Writer, r *analyze.Report, timelines []*analyze.Timeline) error {
	slim := *r
	slim.Devices = slices.Clone(r.Devices)
	for i := range slim.Devices {
		d := &slim.Devices[i]
		d.Gaps, d.Exposed, d.Pairs = d.Gaps[:min(pageGaps, len(d.Gaps))], d.Exposed[:min(pageGaps, len(d.Exposed))], d.Pairs[:min(20, len(d.Pairs))]
	}
	p := page{Report: &slim}
	b := pageBuilder{p: &p, ids: map[string]int{}, origin: origins(r)}
	for _, t := range timelines {
		b.add(t)
	}
	for _, d := range r.Devices {
		p.Zero = append(p.Zero, d.FirstNS-b.origin[d.File])
	}
	b.thin()
	data, err := json.Marshal(p) // escapes <, > and &
	if err != nil {
		return err
	}
	_, err = w.Write(bytes.Replace(bubblePage, []byte("{{DATA}}"), data, 1))
	return err
}

// origins is the time that a file's times are relative to: one for all files if their clocks may be the same, which
// they are not if the first kernels are an hour apart.
func origins(r *analyze.Report) map[string]int64 {
	const hour = 3600 * 1_000_000_000
	own := map[string]int64{}
	first, last := int64(1<<63-1), int64(-1<<63)
	for _, d := range r.Devices {
		if at, ok := own[d.File]; !ok || d.FirstNS < at {
			own[d.File] = d.FirstNS
		}
		first, last = min(first, d.FirstNS), max(last, d.FirstNS)
	}
	if last-first < hour {
		for f := range own {
			own[f] = first
		}
	}
	return own
}

type pageBuilder struct {
	p      *page
	ids    map[string]int
	origin map[string]int64
}

func (b *pageBuilder) name(s string) int {
	s = analyze.Short(s)
	id, ok := b.ids[s]
	if !ok {
		id = len(b.p.Names)
		b.ids[s] = id
		b.p.Names = append(b.p.Names, s)
	}
	return id
}

// add makes rows of a timeline: its streams, then the two threads that call the driver most, each with its calls and
// its outer ranges. Python's functions are left out: the outer twenty say only how the program was started.
func (b *pageBuilder) add(t *analyze.Timeline) {
	zero, ok := b.origin[t.Source]
	if !ok {
		return // no kernels: nothing to show
	}
	streams := map[uint32]*pageRow{}
	for _, w := range t.Work {
		row := streams[w.Stream]
		if row == nil {
			s := t.Streams[w.Stream]
			row = &pageRow{Group: deviceLabel(t, s.Device), Label: s.Name}
			streams[w.Stream] = row
		}
		row.items = append(row.items, item{w.Start - zero, w.End - w.Start, b.name(t.Names[w.Name]), int(w.Kind)})
	}
	order := make([]*pageRow, 0, len(streams))
	for _, row := range streams {
		order = append(order, row)
	}
	slices.SortFunc(order, func(a, b *pageRow) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Label, b.Label)) })
	for _, row := range order {
		b.p.Rows = append(b.p.Rows, *row)
	}
	calls := make([]int, len(t.Threads))
	for _, c := range t.Calls {
		calls[c.Thread]++
	}
	threads := make([]int, len(t.Threads))
	for i := range threads {
		threads[i] = i
	}
	slices.SortStableFunc(threads, func(a, b int) int { return cmp.Compare(calls[b], calls[a]) })
	for i, th := range threads {
		if i == 0 || i == 1 && calls[th] > 0 {
			b.thread(t, uint32(th), zero)
		}
	}
}

func deviceLabel(t *analyze.Timeline, device int) string {
	label := "device " + strconv.Itoa(device)
	if t.Rank >= 0 {
		label = "rank " + strconv.Itoa(t.Rank) + ", " + label
	}
	return label
}

func (b *pageBuilder) thread(t *analyze.Timeline, thread uint32, zero int64) {
	const depths = 4
	calls := pageRow{Group: t.Threads[thread].Name, Label: "calls"}
	for _, c := range t.Calls {
		if c.Thread == thread {
			calls.items = append(calls.items, item{c.Start - zero, c.End - c.Start, b.name(t.Names[c.Name]), hostItem})
		}
	}
	var ranges []analyze.Range
	for _, r := range t.Ranges {
		if r.Thread == thread && r.Kind != analyze.Python {
			ranges = append(ranges, r)
		}
	}
	slices.SortStableFunc(ranges, func(a, b analyze.Range) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	levels := make([]pageRow, depths)
	var open []int64
	for _, r := range ranges {
		for len(open) > 0 && open[len(open)-1] <= r.Start {
			open = open[:len(open)-1]
		}
		if len(open) < depths {
			l := &levels[len(open)]
			l.items = append(l.items, item{r.Start - zero, r.End - r.Start, b.name(t.Names[r.Name]), hostItem})
		}
		open = append(open, r.End)
	}
	for i := range levels {
		levels[i].Group, levels[i].Label = t.Threads[thread].Name, "ranges "+strconv.Itoa(i+1)
	}
	for _, row := range append(levels, calls) {
		if len(row.items) > 0 {
			b.p.Rows = append(b.p.Rows, row)
		}
	}
}

// thin leaves out the shortest items of a page with too many, and lays out the rest.
func (b *pageBuilder) thin() {
	var durs []int64
	for _, row := range b.p.Rows {
		for _, it := range row.items {
			durs = append(durs, it.dur)
		}
	}
	least := int64(-1)
	if len(durs) > pageItems {
		slices.Sort(durs)
		least = durs[len(durs)-pageItems]
	}
	for i := range b.p.Rows {
		row := &b.p.Rows[i]
		slices.SortStableFunc(row.items, func(a, b item) int { return cmp.Compare(a.start, b.start) })
		row.Items = make([]int64, 0, 4*len(row.items))
		for _, it := range row.items {
			if it.dur < least {
				b.p.LeftOut++
				continue
			}
			row.Items = append(row.Items, it.start, it.dur, int64(it.name), int64(it.kind))
		}
	}
}
