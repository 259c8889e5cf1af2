package report

import (
	"strings"
	"testing"
)

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{2048, 409600, "100k 200k 300k 400k"},
		{2.8, 7.9, "3 4 5 6 7"},
		{0.1, 0.9, "0.2 0.4 0.6 0.8"},
		{512, 1024, "600 700 800 900 1000"},
		{64, 1.2e9, "200000k 400000k 600000k 800000k 1000000k 1200000k"},
	} {
		var labels []string
		for _, k := range ticks(c.lo, c.hi) {
			if k.Value < c.lo || k.Value > c.hi {
				t.Errorf("%g to %g: tick at %g", c.lo, c.hi, k.Value)
			}
			labels = append(labels, k.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%g to %g: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
	if len(ticks(3, 3)) == 0 || len(ticks(0, 1)) == 0 {
		t.Error("an axis without ticks")
	}
}
