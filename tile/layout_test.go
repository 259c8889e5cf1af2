package tile

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParsePrintsWhatItReads(t *testing.T) {
	for text, want := range map[string]string{
		"(4,(2,8)):(2,(1,16))":        "(4,(2,8)):(2,(1,16))",
		" ( 4 , (2,8) ) : (2,(1,16))": "(4,(2,8)):(2,(1,16))",
		"(_4,(_2,_8)):(_2,(_1,_16))":  "(4,(2,8)):(2,(1,16))",
		"(4,8)":                       "(4,8):(1,4)",
		"(4,):(3,)":                   "(4):(3)",
		"12":                          "12:1",
		"():()":                       "():()",
		"[4,[2,8]]:[2,[1,16]]":        "(4,(2,8)):(2,(1,16))",
		"(281474976710656):(1)":       "(281474976710656):(1)",
		"(((1))):(((0)))":             "(((1))):(((0)))",
		strings.Repeat("(", 32) + "1" + strings.Repeat(")", 32): strings.Repeat("(", 32) + "1" + strings.Repeat(")", 32) + ":" + strings.Repeat("(", 32) + "1" + strings.Repeat(")", 32),
	} {
		l, err := Parse(text)
		if err != nil || l.String() != want {
			t.Errorf("%s: got %v, %v, want %s", text, l, err, want)
		}
		var back Layout
		b, _ := json.Marshal(l)
		if err := json.Unmarshal(b, &back); err != nil || !back.Equal(l) {
			t.Errorf("%s: JSON %s reads as %v, %v", text, b, back, err)
		}
	}
}

func TestHostileLayoutsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "character 1",
		"(4":                                   "want ','",
		"(4,8":                                 "want ','",
		"(4,8):":                               "character 7",
		"(4,8):(1,4)x":                         "want the end",
		"(4,8):(1,(4))":                        "same nesting",
		"(4,8):(1,4,1)":                        "same nesting",
		"(4,_):(1,4)":                          "belongs in a coordinate",
		"0:1":                                  "want a shape",
		"-1:1":                                 "want an integer",
		"4:-1":                                 "want an integer",
		"99999999999999999999":                 "want an integer",
		"281474976710657:1":                    "want an integer",
		"(281474976710656,2)":                  "2^48",
		"(16777216,16777217)":                  "2^48",
		"2:281474976710656":                    "beyond offset 2^48",
		strings.Repeat("(", 100):               "nested deeper",
		"(" + strings.Repeat("1,", 1000) + ")": "integers",
		"(" + strings.Repeat("1,", 300) + ")":  "more than 256 leaves",
		"(4,\x00)":                             "want an integer",
		"(4,8]":                                "want ','",
	} {
		if l, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, %v, want an error with %q", text, l, err, want)
		}
	}
	if _, err := Parse("(1" + strings.Repeat(",1", MaxLeaves-1) + "):(0" + strings.Repeat(",0", MaxLeaves-1) + ")"); err != nil {
		t.Errorf("as many leaves as there may be: %v", err)
	}
	huge := Leaf(1<<40, 1<<40)
	for name, f := range map[string]func() error{
		"compose":  func() error { _, err := Compose(Leaf(1<<40, 1<<8), Leaf(2, 1<<41)); return err },
		"compose2": func() error { _, err := Compose(huge, Leaf(2, 1)); return err },
		"product":  func() error { _, err := Leaf(1<<30, 1).Product(Leaf(1<<30, 1)); return err },
		"table":    func() error { _, err := Leaf(1<<30, 1).Table(1 << 20); return err },
		"shape":    func() error { _, err := Leaf(1<<49, 0).Divide(Leaf(1, 1)); return err },
		"stride":   func() error { _, err := Leaf(1, 1<<50).Divide(Leaf(1, 1)); return err },
		"rank":     func() error { _, err := Leaf(4, 1).DivideModes(Tile(2, 2)); return err },
		"size":     func() error { _, err := Leaf(4, 1).Complement(0); return err },
		"zero":     func() error { _, err := Leaf(4, 1).Divide(Layout{}); return err },
		"slice":    func() error { _, _, err := Rows(4, 4).Slice(Must(ParseTuple("(4,_)"))); return err },
		"profile":  func() error { _, _, err := Rows(4, 4).Slice(Must(ParseTuple("(_,(1,_))"))); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDividingModesKeepsEveryElement(t *testing.T) {
	l := Rows(12, 32)
	d := Must(l.ZippedDivide(Tile(4, 8)))
	if got, want := d.String(), "((4,8),(3,4)):((32,1),(128,8))"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	for i := range 12 {
		for j := range 32 { // tile coordinates are (i/4, j/8), inside (i%4, j%8)
			if got := d.At(i%4+4*(j%8), i/4+3*(j/8)); got != l.At(i, j) {
				t.Fatalf("(%d,%d): got %d, want %d", i, j, got, l.At(i, j))
			}
		}
	}
	if got := Must(d.Tiled()).String(); got != "((4,8),3,4):((32,1),128,8)" {
		t.Errorf("tiled: got %s", got)
	}
	if got := Must(l.DivideModes(Tiler{Layout{}, Leaf(8, 1)})).String(); got != "(12,(8,4)):(32,(1,8))" {
		t.Errorf("kept mode: got %s", got)
	}
}

func TestSliceIsTheLayoutAtFixedCoordinates(t *testing.T) {
	l := Must(Parse("(4,(2,3),5):(1,(60,4),12)"))
	kept, off, err := l.Slice(Must(ParseTuple("(_,(1,_),3)")))
	if err != nil || kept.String() != "(4,3):(1,4)" || off != 60+36 {
		t.Fatalf("got %v + %d, %v", kept, off, err)
	}
	for i := range 4 {
		for j := range 3 {
			if got, want := off+kept.At(i, j), l.At(i, 1+2*j, 3); got != want {
				t.Errorf("(%d,%d): got %d, want %d", i, j, got, want)
			}
		}
	}
}

func TestEqualMeansShapeStrideAndNesting(t *testing.T) {
	all := []string{"4:1", "(4):(1)", "(4,1):(1,4)", "(4,1):(1,0)", "((4),1):((1),4)", "(4,1,1):(1,4,4)", "(1,4):(1,1)", "():()", "1:0"}
	for i, x := range all {
		for j, y := range all {
			if got := Must(Parse(x)).Equal(Must(Parse(y))); got != (i == j) {
				t.Errorf("%s equal to %s: %v", x, y, got)
			}
		}
	}
}
