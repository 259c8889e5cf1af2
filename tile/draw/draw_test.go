package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

func picture() Picture {
	return Picture{Title: "a <tile> & more", Notes: []string{"first note"}, Rows: [][]Panel{{
		{Title: "grid", Grid: &Grid{RowAxis: "row", ColAxis: "column", Path: [][2]float64{{0.5, 0.5}, {1, 1.5}},
			Cells: [][]Cell{{{Text: "0", Shade: 0}, {Text: "10", Shade: 1, Mark: true}}, {{Shade: None}, {Text: "–", Shade: None}}}}},
		{Title: "bar", Notes: []string{"below"}, Bar: &Bar{Unit: "bytes", Limit: 12000, Segments: []Segment{{"stages", 9000, 0}, {"rest", 1000.5, 1}}}},
	}}}
}

func TestTextIsWhatItSays(t *testing.T) {
	const want = `a <tile> & more
first note

grid
     → column
row   0   1 
  0   0 [10]
  1       – 

bar
|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbb          | 10,000.5 of 12,000 bytes
  a stages: 9,000
  b rest: 1,000.5
below
`
	var b bytes.Buffer
	if err := picture().Text(&b, false); err != nil || b.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, b.String(), want)
	}
	b.Reset()
	picture().Text(&b, true)
	if s := b.String(); !strings.Contains(s, "\x1b[1;4;38;2;0;0;0;48;2;238;221;136m") || strings.Contains(s, "[10]") {
		t.Errorf("colour: got %q", s)
	}
}

// The SVG is well-formed, says every text, and frames what is marked.
func TestSVGHoldsEveryTextAndMark(t *testing.T) {
	var b bytes.Buffer
	if err := picture().SVG(&b); err != nil {
		t.Fatal(err)
	}
	texts, frames, inside := map[string]bool{}, 0, false
	d := xml.NewDecoder(&b)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.CharData:
			texts[string(x)] = true
		case xml.StartElement:
			if x.Name.Local == "g" {
				inside = false
				for _, a := range x.Attr {
					inside = inside || a.Name.Local == "stroke-width" && a.Value == "2.5"
				}
			}
			if x.Name.Local == "rect" && inside {
				frames++
			}
		case xml.EndElement:
			inside = inside && x.Name.Local != "g"
		}
	}
	for _, s := range []string{"a <tile> & more", "first note", "grid", "column →", "row ↓", "10", "–", "bar", "stages: 9,000", "below"} {
		if !texts[s] {
			t.Errorf("no text %q in %v", s, texts)
		}
	}
	if frames != 1 {
		t.Errorf("%d frames, want 1", frames)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorsAreReturned(t *testing.T) {
	if err := picture().SVG(failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("SVG: %v", err)
	}
	if err := picture().Text(failing{}, false); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("text: %v", err)
	}
}

// Colours are told apart by luminance where hue fails: no two neighbours in the palette, cyclically, may have the same grey within 2 %.
func TestNeighbouringShadesDifferInLuminance(t *testing.T) {
	grey := func(i int) float64 {
		c := shade(i)
		return (0.2126*float64(c[0]) + 0.7152*float64(c[1]) + 0.0722*float64(c[2])) / 255
	}
	for i := range Shades {
		if d := grey(i) - grey(i+1); d*d < 0.02*0.02 {
			t.Errorf("shades %d and %d: %.3f and %.3f", i, (i+1)%Shades, grey(i), grey(i+1))
		}
	}
}

// Everything lies on the page, and the second row of panels starts below all of the first.
func TestPanelsStayOnThePageAndApart(t *testing.T) {
	p := picture()
	tall := Panel{Title: "tall", Grid: &Grid{Cells: make([][]Cell, 9)}, Notes: []string{"the last line of the first row"}}
	for i := range tall.Grid.Cells {
		tall.Grid.Cells[i] = []Cell{{Text: "a rather wide cell", Shade: i}}
	}
	p.Rows[0] = append(p.Rows[0], tall, Panel{Title: "low"})
	p.Rows = append(p.Rows, []Panel{{Title: "second row", Bar: &Bar{Unit: "bytes", Limit: 1, Segments: []Segment{{"much too much", 5, 2}}}, Notes: []string{"the end"}}})
	var b bytes.Buffer
	if err := p.SVG(&b); err != nil {
		t.Fatal(err)
	}
	wide, high := p.size()
	bottom := map[string]float64{}
	at, reach := [2]float64{}, 0.0
	d := xml.NewDecoder(&b)
	for token, err := d.Token(); err == nil; token, err = d.Token() {
		switch x := token.(type) {
		case xml.StartElement:
			n := map[string]float64{}
			for _, a := range x.Attr {
				n[a.Name.Local], _ = strconv.ParseFloat(a.Value, 64)
			}
			at = [2]float64{n["x"], n["y"]}
			if x.Name.Local == "rect" && (n["x"]+n["width"] > wide || n["y"]+n["height"] > high) {
				t.Errorf("rectangle %v leaves the page of %.0f × %.0f", x.Attr, wide, high)
			}
			if x.Name.Local == "rect" && n["y"] > 0 && n["y"] < bottom["tall"]+9*cellHigh {
				reach = max(reach, n["y"]+n["height"])
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(x)); s != "" {
				bottom[s] = at[1]
				if at[0]+textWidth(s, 6) > wide || at[1] > high-8 {
					t.Errorf("text %q at %v leaves the page of %.0f × %.0f", s, at, wide, high)
				}
			}
		}
	}
	if above := max(reach, bottom["the last line of the first row"]); bottom["second row"] < above+14 { // a title is 14 high
		t.Errorf("the second row's title is at %.0f, the first row reaches %.0f", bottom["second row"], above)
	}
	if high > bottom["the end"]+2*margin || bottom["tall"] != bottom["low"] {
		t.Errorf("the page is %.0f high, its last line is at %.0f; titles of one row at %.0f and %.0f", high, bottom["the end"], bottom["tall"], bottom["low"])
	}
}
