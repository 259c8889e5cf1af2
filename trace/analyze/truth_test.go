package analyze

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

const shared = "../../../shared/traces"

// truthLine is what somebody else's program found in a file.
type truthLine struct {
	File    string
	Kernels int
	Devices map[string]struct {
		Kernels, Streams, Gaps, Copies int
		First                          int64 `json:"first_ns"`
		Span                           int64 `json:"span_ns"`
		Busy                           int64 `json:"busy_ns"`
		Idle                           int64 `json:"idle_ns"`
		Over10                         int   `json:"gaps_over_10us"`
		Longest                        [][2]int64
		Comm                           int   `json:"comm_kernels"`
		CommBusy                       int64 `json:"comm_busy_ns"`
		Overlap                        int64 `json:"comm_compute_overlap_ns"`
	}
	Linked, Unlinked int
	Delay            *float64 `json:"median_delay_ns"`
}

func truth(t testing.TB) (lines []truthLine) {
	f, err := os.Open(filepath.Join(shared, "truth.jsonl"))
	if err != nil {
		t.Skipf("no shared traces here: %v", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l truthLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// ns is exact: µs with three decimals as float64 are within 1e-7 ns of the whole number for any trace below 10 days.
func ns(us float64) int64 { return int64(math.Round(us * 1000)) }

func TestEveryFileEqualsTheGroundTruth(t *testing.T) {
	for _, want := range truth(t) {
		tl, err := Open(filepath.Join(shared, want.File), nil)
		if err != nil {
			t.Errorf("%s: %v", want.File, err)
			continue
		}
		r := Bubbles([]*Timeline{tl}, Options{})
		if len(r.Devices) != len(want.Devices) {
			t.Errorf("%s: %d devices, want %d", want.File, len(r.Devices), len(want.Devices))
		}
		linked, unlinked := 0, 0
		for _, d := range r.Devices {
			w, ok := want.Devices[strconv.Itoa(d.Device)]
			if !ok {
				t.Errorf("%s: device %d is not there", want.File, d.Device)
				continue
			}
			over10 := 0
			sum := 0.0
			for _, g := range d.Gaps {
				if ns(g.DurUS) > 10_000 {
					over10++
				}
				sum += g.DurUS
			}
			got := []int64{int64(d.Kernels), int64(d.Streams), ns(d.SpanUS), ns(d.BusyUS), ns(d.IdleUS), int64(d.GapCount), int64(over10), int64(d.Copies), int64(d.Comm), ns(d.CommUS), ns(d.OverlapUS)}
			exp := []int64{int64(w.Kernels), int64(w.Streams), w.Span, w.Busy, w.Idle, int64(w.Gaps), int64(w.Over10), int64(w.Copies), int64(w.Comm), w.CommBusy, w.Overlap}
			for i, name := range []string{"kernels", "streams", "span", "busy", "idle", "gaps", "gaps over 10 µs", "copies", "comm kernels", "comm busy", "overlap"} {
				if got[i] != exp[i] {
					t.Errorf("%s device %d: %s %d, want %d", want.File, d.Device, name, got[i], exp[i])
				}
			}
			if ns(sum) != w.Idle {
				t.Errorf("%s device %d: gaps add up to %d, idle is %d", want.File, d.Device, ns(sum), w.Idle)
			}
			for i, l := range w.Longest {
				if g := d.Gaps[i]; ns(g.DurUS) != l[1] || ns(g.StartUS) != l[0] {
					t.Errorf("%s device %d: gap %d is %v at %v, want %v", want.File, d.Device, i, g.DurUS, g.StartUS, l)
				}
			}
			linked, unlinked = linked+d.Linked, unlinked+d.Unlinked
			if want.Delay != nil && len(r.Devices) == 1 && math.Abs(d.DelayUS*1000-*want.Delay) > 0.6 {
				t.Errorf("%s: median launch delay %v, want %v", want.File, d.DelayUS*1000, *want.Delay)
			}
		}
		if linked != want.Linked || unlinked != want.Unlinked {
			t.Errorf("%s: %d linked, %d not; want %d, %d", want.File, linked, unlinked, want.Linked, want.Unlinked)
		}
	}
}
