package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"heddle/bench"
	"heddle/cuda"
	"heddle/internal/atomicfile"
)

// Result is a file of measurements.
type Result struct {
	Command string     `json:"command"`
	Date    string     `json:"date"`
	Device  cuda.Facts `json:"device"`
	Rounds  int        `json:"rounds"`
	Chains  int        `json:"chains"` // queued at once; fewer where they take long
	Sizes   []Size     `json:"sizes"`
	Host    []Host     `json:"host,omitempty"`
	Stopped string     `json:"stopped,omitempty"` // where the time ran out
}

// Size is everything about squares of n.
type Size struct {
	N        int       `json:"n"`
	Config   string    `json:"config"` // of the GEMM
	Sets     int       `json:"sets"`   // of operands, used in turn
	Chains   int       `json:"chains"`
	Ways     []Way     `json:"ways"`
	Controls []Control `json:"controls,omitempty"`
	Peers    []Peer    `json:"peers,omitempty"`
}

// Spread is a median with what lies around it.
type Spread struct {
	Median float64 `json:"median"`
	P10    float64 `json:"p10"`
	P90    float64 `json:"p90"`
	Count  int     `json:"count"`
}

func spread(x []float64) Spread {
	return Spread{bench.Median(x), bench.Quantile(x, 0.1), bench.Quantile(x, 0.9), len(x)}
}

func (s Spread) String() string { return fmt.Sprintf("%.2f (%.2f..%.2f)", s.Median, s.P10, s.P90) }

// Way is one way of launching.
type Way struct {
	Name   string `json:"name"`
	Doc    string `json:"doc"`
	Wrong  int    `json:"wrong_words"` // of the results, against plain launches; must be 0
	Calls  int    `json:"calls"`       // of the driver, for all chains
	Edges  [2]int `json:"edges"`       // of its graph: all, and those that let a kernel start early
	Host   Spread `json:"host_us"`     // a driver call
	Live   Spread `json:"live_us"`     // a chain, launched onto an idle device: the host's time shows
	Queued Spread `json:"queued_us"`   // a chain, queued before the device comes to it

	// The same from stamps inside the kernels, which cost a little themselves.
	Stamped *Stamped `json:"stamped,omitempty"`
}

// Stamped takes a chain apart. Bodies, gaps and hole add up to the period.
type Stamped struct {
	Period   Spread    `json:"period_us"`
	Bodies   [4]Spread `json:"bodies_us"` // zero, zero, gemm, gemm: from the wait's end to the kernel's
	Gaps     [3]Spread `json:"gaps_us"`   // from a kernel's end to the next one's begin, or its wait's end
	Hole     Spread    `json:"hole_us"`   // the same from a chain's last kernel to the next chain's first
	Timeline [5]Times  `json:"timeline"`  // the chain with the median period, and the first kernel of the next
	Live     [5]Times  `json:"live"`      // the same on an idle device
}

// Control is a build that is wrong on purpose: the check must notice.
type Control struct {
	Name   string `json:"name"`
	Must   bool   `json:"must"` // be caught; the other comes out right now and then, where kernels are short
	Bursts int    `json:"bursts"`
	Caught int    `json:"caught"`
	Wrong  int    `json:"wrong_words"` // in all
}

// Peer is somebody else's chain.
type Peer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Live    Spread `json:"live_us"`
	Queued  Spread `json:"queued_us"`
	Host    Spread `json:"host_us"` // a kernel, or a graph
}

// Host is the host's time for one launch of an empty kernel with a GEMM's parameters, by who launches it.
type Host struct {
	Name   string  `json:"name"`
	Doc    string  `json:"doc"`
	Micros Spread  `json:"us"` // medians of batches
	Allocs float64 `json:"allocs"`
}

// Write stores the result.
func (r *Result) Write(path string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	return atomicfile.Write(atomicfile.OS{}, path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// Read reads a result.
func Read(path string) (*Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	r := new(Result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("launch: %s: %w", path, err)
	}
	return r, nil
}
