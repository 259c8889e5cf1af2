package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"heddle/cuda"
)

// Result is a file of measurements.
type Result struct {
	Command string     `json:"command"`
	Date    string     `json:"date"`
	Device  cuda.Facts `json:"device"`
	Driver  string     `json:"driver"`
	Peer    string     `json:"peer"`
	Kernels []Kernel   `json:"kernels"` // ours, in the order of the samples
	Rows    []Row      `json:"rows"`
	Stopped string     `json:"stopped,omitempty"` // where the time ran out: the row before may have fewer pairs, and what follows is missing
}

// Kernel is one of our kernels as compiled.
type Kernel struct {
	Name string `json:"name"`
	cuda.FunctionFacts
	CompileMs float64 `json:"compile_ms"` // building, compiling or finding in the cache, and loading
}

// Row is one shape in one mode. Side 0 is ours.
type Row struct {
	Name     string    `json:"name,omitempty"`
	TransA   bool      `json:"ta,omitempty"`
	TransB   bool      `json:"tb,omitempty"`
	M        int       `json:"m"`
	N        int       `json:"n"`
	K        int       `json:"k"`
	Mode     string    `json:"mode"` // single, sustained, graph-rotating, graph-warm, failed
	Checks   []Check   `json:"checks,omitempty"`
	Samples  []Samples `json:"samples"`
	Kernel   string    `json:"kernel,omitempty"` // of a failure
	Failure  string    `json:"failure,omitempty"`
	Recorded []float64 `json:"algorithms_us,omitempty"` // cuBLASLt's heuristics, by burst; the fastest became the side
}

// Ratio is ours against one side: speed above 1 is faster, joules below 1 is cheaper.
type Ratio struct {
	M      int       `json:"m"`
	N      int       `json:"n"`
	K      int       `json:"k"`
	Mode   string    `json:"mode"`
	Side   string    `json:"side"`
	Ours   float64   `json:"ours_tflops"`
	Theirs float64   `json:"theirs_tflops"`
	Speed  Interval  `json:"speed"`
	Joules *Interval `json:"joules,omitempty"`
	Clocks [2]uint32 `json:"sm_clock_mhz"` // medians, ours and theirs
	Watts  [2]int    `json:"watts,omitempty"`
	Best   bool      `json:"best"` // the faster of the peers, the one that counts
}

// Summary computes every ratio from the samples.
func (r *Result) Summary() []Ratio {
	var all []Ratio
	for _, row := range r.Rows {
		if len(row.Samples) < 2 {
			continue
		}
		ours, best := row.Samples[0], -1
		for _, peer := range row.Samples[1:] {
			all = append(all, row.ratio(ours, peer))
			if !peer.Own && (best < 0 || all[len(all)-1].Theirs > all[best].Theirs) {
				best = len(all) - 1
			}
		}
		if best >= 0 {
			all[best].Best = true
		}
	}
	return all
}

func (row *Row) ratio(ours, peer Samples) Ratio {
	flop := 2 * float64(row.M) * float64(row.N) * float64(row.K)
	q := Ratio{M: row.M, N: row.N, K: row.K, Mode: row.Mode, Side: peer.Side, Ours: flop / Median(ours.Micros) / 1e6, Theirs: flop / Median(peer.Micros) / 1e6,
		Clocks: [2]uint32{middle(ours.SMClocks), middle(peer.SMClocks)}}
	if row.Mode != "sustained" {
		q.Speed = MedianRatio(peer.Micros, ours.Micros)
		return q
	}
	q.Speed = MeanRatio(peer.Micros, ours.Micros)
	if len(ours.Joules) > 0 && len(peer.Joules) > 0 && Median(ours.Joules) > 0 && Median(peer.Joules) > 0 {
		j := MeanRatio(ours.Joules, peer.Joules)
		q.Joules = &j
		q.Watts = [2]int{int(math.Round(Median(ours.Watts))), int(math.Round(Median(peer.Watts)))}
	}
	return q
}

// Print writes a summary as a table.
func Print(w io.Writer, all []Ratio) {
	fmt.Fprintf(w, "%-18s %-15s %-24s %8s %8s  %-21s %-21s %11s %9s\n", "shape", "mode", "peer", "ours", "theirs", "speed (95 %)", "joules (95 %)", "SM MHz", "W")
	for _, q := range all {
		mark, joules, watts := " ", "", ""
		if q.Best {
			mark = "*"
		}
		if q.Joules != nil {
			joules = fmt.Sprintf("%.3f (%.3f..%.3f)", q.Joules.Value, q.Joules.Low, q.Joules.High)
			watts = fmt.Sprintf("%d/%d", q.Watts[0], q.Watts[1])
		}
		fmt.Fprintf(w, "%-18s %-15s %-24s %8.1f %8.1f %s%-21s %-21s %5d/%5d %9s\n", fmt.Sprintf("%dx%dx%d", q.M, q.N, q.K), q.Mode, q.Side, q.Ours, q.Theirs, mark,
			fmt.Sprintf("%.3f (%.3f..%.3f)", q.Speed.Value, q.Speed.Low, q.Speed.High), joules, q.Clocks[0], q.Clocks[1], watts)
	}
	fmt.Fprintln(w, "TFLOP/s are of medians; * marks the faster peer of a shape and mode.")
}

// Write stores the result under a temporary name and renames it.
func (r *Result) Write(path string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".result-*")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(b, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// Read reads a result.
func Read(path string) (*Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	r := new(Result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("bench: %s: %w", path, err)
	}
	return r, nil
}
