// Package view answers the workbench's questions: each takes a request in the user's terms and returns a result that is data (JSON) and a
// picture (text or SVG).
//
// One file a question: layout.go, swizzle.go, schedule.go, depth.go, epilogue.go.
package view

import (
	"fmt"
	"strconv"
	"strings"

	"heddle/tile/draw"
)

// pair reads "2x1".
func pair(what, s string) (a, b int, err error) {
	x, y, ok := strings.Cut(strings.ToLower(s), "x")
	if ok {
		if a, err = strconv.Atoi(x); err == nil {
			b, err = strconv.Atoi(y)
		}
	}
	if !ok || err != nil {
		return 0, 0, fmt.Errorf("tile: %s %q; hint: write it as 2x1", what, s)
	}
	return a, b, nil
}

// ElemBytes is the size of a type by its name.
func ElemBytes(name string) (int, error) {
	for _, t := range []struct {
		name  string
		bytes int
	}{{"bf16", 2}, {"f16", 2}, {"f32", 4}, {"tf32", 4}, {"fp8", 1}, {"f64", 8}} {
		if t.name == name {
			return t.bytes, nil
		}
	}
	return 0, fmt.Errorf("tile: type %q; hint: bf16, f16, f32, tf32, fp8 or f64", name)
}

// drawable refuses pictures with more cells than can be read.
func drawable(rows, cols int) error {
	if rows > draw.MaxCells || cols > draw.MaxCells {
		return fmt.Errorf("tile: picture of %d × %d cells, at most %d × %d can be read; hint: --json has everything", rows, cols, draw.MaxCells, draw.MaxCells)
	}
	return nil
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// count prints "1 wave", "4 waves".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
