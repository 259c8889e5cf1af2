// Package vector replays recorded layout-algebra cases against package tile.
//
// A file holds one JSON object a line: an op, its layouts as {shape, stride}, and a peer's answer: result, and table, the result evaluated at
// 0 … size-1. Check reads a file; op.go has one function an operation. Malformed lines are errors with their line number, not failures.
package vector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"heddle/tile"
)

// maxLine bounds one case in bytes, maxTable the offsets that a table may list.
const (
	maxLine  = 1 << 24
	maxTable = 1 << 20
)

// Case is one line.
type Case struct {
	Op     string          `json:"op"`
	A      tile.Layout     `json:"a"`
	B      tile.Layout     `json:"b"`
	Tiler  []piece         `json:"tiler"`
	Max    int             `json:"max"`
	Bits   int             `json:"bits"`
	Base   int             `json:"base"`
	Shift  int             `json:"shift"`
	Offset int             `json:"offset"`
	X      []int           `json:"x"`
	Coord  tile.Tuple      `json:"coord"`
	Result json.RawMessage `json:"result"`
	Table  []int           `json:"table"`
}

// piece is an entry of a tiler: null keeps the mode, an integer n means n:1, else a layout.
type piece struct{ tile.Layout }

func (p *piece) UnmarshalJSON(b []byte) error {
	var n int
	switch {
	case string(b) == "null":
		return nil
	case json.Unmarshal(b, &n) != nil:
		return json.Unmarshal(b, &p.Layout)
	}
	var err error
	p.Layout, err = tile.New(tile.Tuple{Value: n}, tile.Tuple{Value: 1})
	return err
}

// Failure is a case that came out differently.
type Failure struct {
	Line int    `json:"line"`
	Op   string `json:"op"`
	Got  string `json:"got"`
	Want string `json:"want"`
}

// Count is how many cases of one op passed and failed.
type Count struct {
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// Report sums up a file.
type Report struct {
	Passed   int              `json:"passed"`
	Failed   int              `json:"failed"`
	Ops      map[string]Count `json:"ops"`
	Failures []Failure        `json:"failures"` // the first ones
}

// Check replays every case of r and keeps the first keep failures.
func Check(r io.Reader, keep int) (Report, error) {
	rep := Report{Ops: map[string]Count{}, Failures: []Failure{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return rep, fmt.Errorf("tile/vector: line %d: %w", n, err)
		}
		run, ok := ops()[c.Op]
		if !ok {
			return rep, fmt.Errorf("tile/vector: line %d: unknown op %.40q; hint: one of %s", n, c.Op, opNames())
		}
		got, want, err := run(c)
		if err != nil {
			return rep, fmt.Errorf("tile/vector: line %d: %s: %w", n, c.Op, err)
		}
		count := rep.Ops[c.Op]
		if got == want {
			rep.Passed, count.Passed = rep.Passed+1, count.Passed+1
		} else {
			rep.Failed, count.Failed = rep.Failed+1, count.Failed+1
			if len(rep.Failures) < keep {
				rep.Failures = append(rep.Failures, Failure{n, c.Op, got, want})
			}
		}
		rep.Ops[c.Op] = count
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return rep, fmt.Errorf("tile/vector: line %d: more than %d bytes", n, maxLine)
	case err != nil:
		return rep, fmt.Errorf("tile/vector: line %d: %w", n, err)
	case rep.Passed+rep.Failed == 0:
		return rep, errors.New("tile/vector: no case in it, want one JSON object a line")
	}
	return rep, nil
}

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	for _, op := range slices.Sorted(maps.Keys(r.Ops)) {
		fmt.Fprintf(w, "%-20s %5d passed", op, r.Ops[op].Passed)
		if n := r.Ops[op].Failed; n > 0 {
			fmt.Fprintf(w, ", %d FAILED", n)
		}
		fmt.Fprintln(w)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "line %d: %s\n  got  %.200s\n  want %.200s\n", f.Line, f.Op, f.Got, f.Want)
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", r.Passed, r.Failed)
}
