package comm

import (
	"sort"
	"time"
)

// Key names a row of the meter: one call site's axes, operation, phase and layer are summed or kept apart by the reader.
type Key struct {
	Axes  string
	Kind  Kind
	Phase string
	Layer int
	Site  string
}

// Meter counts one rank's collectives: calls, bytes (payload: what the rank put in; wire: what it received) and times from
// Start to the end of Wait.
type Meter struct{ Rows map[Key]*Row }

// Row is the count of one key.
type Row struct {
	Calls         int
	Payload, Wire int64
	Times         []time.Duration
}

// NewMeter makes an empty meter.
func NewMeter() *Meter { return &Meter{Rows: map[Key]*Row{}} }

func (m *Meter) add(o *Op, phase string, layer int, d time.Duration) {
	if m == nil {
		return
	}
	k := Key{Axes: o.Axes, Kind: o.Kind, Phase: phase, Layer: layer, Site: o.Site}
	r := m.Rows[k]
	if r == nil {
		r = &Row{}
		m.Rows[k] = r
	}
	r.Calls++
	r.Payload += int64(o.Src.Bytes())
	r.Wire += o.Received
	r.Times = append(r.Times, d)
}

// Summary is one line of the table of collectives over all ranks: bytes and calls are the maximum over ranks, times over all.
type Summary struct {
	Axis        string  `json:"axis"`
	Op          string  `json:"op"`
	Phase       string  `json:"phase"`
	Calls       int     `json:"calls"`
	Bytes       int64   `json:"bytes"`
	Payload     int64   `json:"payload"`
	P50         float64 `json:"p50_us"`
	P95         float64 `json:"p95_us"`
	Max         float64 `json:"max_us"`
	SlowestRank int     `json:"slowest_rank"` // the rank whose calls took longest in all: it waited most
}

// Summarize joins the ranks' meters by axes, operation and phase. A rank without a meter, as one that ran no step, adds nothing.
func Summarize(meters []*Meter) []Summary {
	type key struct {
		axis, op, phase string
	}
	type rank struct {
		calls        int
		bytes, input int64
		total        time.Duration
	}
	ranks := map[key][]rank{}
	times := map[key][]time.Duration{}
	for r, m := range meters {
		if m == nil {
			continue
		}
		for k, row := range m.Rows {
			q := key{k.Axes, k.Kind.String(), k.Phase}
			if ranks[q] == nil {
				ranks[q] = make([]rank, len(meters))
			}
			x := &ranks[q][r]
			x.calls += row.Calls
			x.bytes += row.Wire
			x.input += row.Payload
			for _, d := range row.Times {
				x.total += d
			}
			times[q] = append(times[q], row.Times...)
		}
	}
	var out []Summary
	for q, rs := range ranks {
		s := Summary{Axis: q.axis, Op: q.op, Phase: q.phase}
		var slow time.Duration
		for r, x := range rs {
			s.Calls, s.Bytes, s.Payload = max(s.Calls, x.calls), max(s.Bytes, x.bytes), max(s.Payload, x.input)
			if x.total > slow {
				slow, s.SlowestRank = x.total, r
			}
		}
		t := times[q]
		sort.Slice(t, func(i, j int) bool { return t[i] < t[j] })
		us := func(f float64) float64 { return float64(t[int(f*float64(len(t)-1))].Nanoseconds()) / 1e3 }
		s.P50, s.P95, s.Max = us(0.5), us(0.95), us(1)
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return a.Axis+a.Op+a.Phase < b.Axis+b.Op+b.Phase
	})
	return out
}
