package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// texts are an SVG's labels; the test ends where the SVG is not well formed.
func texts(t *testing.T, svg []byte) (out []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	in := false
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			in = x.Name.Local == "text"
		case xml.CharData:
			if in {
				out = append(out, strings.TrimSpace(string(x)))
			}
		case xml.EndElement:
			in = false
		}
	}
}

// Every picture is well-formed SVG that names what it shows, also where a curve has one point or none.
func TestPicturesNameWhatTheyShow(t *testing.T) {
	half := 0.5
	a := Axes{Title: "the title", X: "across", Y: "up", Across: []float64{0.5}, Beside: 0.3}
	line := Curve{Name: "first", Points: []Point{{0, 0}, {1, 1}}, Low: []float64{-1, 0}, High: []float64{1, 2}, Dots: true}
	for name, draw := range map[string]func(io.Writer) error{
		"curves": func(w io.Writer) error {
			return CurvesSVG(w, a, []Curve{line, {Name: "second", Points: []Point{{0.5, 0.5}}, Dashed: true}, {Name: "none"}})
		},
		"forest": func(w io.Writer) error {
			return ForestSVG(w, a, []Effect{{Label: "first", Value: 1, Low: 0, High: 2, Expected: &half}, {Label: "second", Value: -1, Low: -2, High: 0}})
		},
		"dots": func(w io.Writer) error {
			return DotsSVG(w, a, []string{"first", "second", "none"}, []Dot{{"x", 0, 0, 0}, {"y", 1, 1, 1}})
		},
		"bars": func(w io.Writer) error {
			return BarsSVG(w, a, []string{"first", "second"}, []string{"g", "h"}, [][]float64{{1, 2}, {2, 1}})
		},
	} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := strings.Join(texts(t, b.Bytes()), "|")
		for _, want := range []string{"the title", "first", "second"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %q in %s", name, want, all)
			}
		}
		if strings.Contains(all, "none") || strings.Contains(b.String(), "NaN") {
			t.Errorf("%s shows what is not there: %s", name, all)
		}
	}
	if err := CurvesSVG(io.Discard, a, nil); err != nil {
		t.Errorf("no curves at all: %v", err)
	}
	if err := CurvesSVG(io.Discard, a, []Curve{{Name: "x", Points: []Point{{0, math.NaN()}}}}); err == nil {
		t.Error("a curve of NaN is drawn")
	}
}
