package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// The picture is well-formed, names every category that holds something, and its areas end at the values: the outline of the
// upper one is at the sum's height.
func TestHeldSVGShowsEveryCategory(t *testing.T) {
	var b strings.Builder
	h := Held{Title: "a <b>", Categories: []string{"rest", "saved", "nothing"}, Stages: []HeldStage{{"forward", "0", 2}, {"backward", "0", 4}},
		Changes: [][]int64{{1 << 20, 0, 0}, {1 << 20, 3 << 20, 0}, {1 << 20, 1 << 20, 0}, {1 << 20, 0, 0}}}
	if err := HeldSVG(&b, h); err != nil {
		t.Fatal(err)
	}
	var texts []string
	paths := 0
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			if x.Name.Local == "path" {
				paths++
			}
		case xml.CharData:
			texts = append(texts, string(x))
		}
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"a <b>", "rest", "saved", "≤ 3 MiB", "forward", "backward", "4 MiB"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	if strings.Contains(all, "nothing") || paths != 2 {
		t.Errorf("%d areas; %s", paths, all)
	}
	// The axis ends at 4 MiB, which is the sum's peak: the upper area touches its top, heldTop, for the second of four quarters.
	quarter := (heldWidth - heldLeft - heldRight) / 4
	if want := "H260.0V70.0H450.0V"; quarter != 190 || !strings.Contains(b.String(), want) {
		t.Errorf("no step %q in %s", want, b.String())
	}
}
