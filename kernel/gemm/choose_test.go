package gemm

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"heddle/num"
)

// What is chosen can be built, for every shape, type and layout.
func TestChooseGivesALegalConfiguration(t *testing.T) {
	for _, s := range [][3]int{{1, 8, 8}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}, {16384, 151936, 1024}, {7, 4096, 128}} {
		for layout := range 4 {
			for _, like := range []Config{{}, {In: num.F16, Out: num.F32, Add: true}} {
				like.TransA, like.TransB = layout&1 != 0, layout&2 != 0
				c, err := Choose(s[0], s[1], s[2], 132, like)
				if err == nil {
					err = c.Check()
				}
				if err != nil {
					t.Errorf("%v: %v", s, err)
				}
				if c != c.Like(like.Full()) {
					t.Errorf("%v: %v is not the product asked for", s, c)
				}
			}
		}
	}
	if c := Estimate(64, 64, 64, 1, Config{}); c.Cluster() != 1 {
		t.Errorf("one SM gets %v", c)
	}
}

// The measured winners are read, and taken for their problems only.
func TestChooseTakesTheMeasured(t *testing.T) {
	all, err := TunedProblems()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, x := range all {
		c, err := Choose(x.M, x.N, x.K, 132, x.Config)
		if err != nil || c != x.Config {
			t.Errorf("%+v: got %v, %v", x, c, err)
		}
	}
}

// Products that 128×256 tiles spread badly, which was measured to cost a fifth of the speed, get tiles whose rounds are full.
func TestEstimateFillsTheMachine(t *testing.T) {
	for _, s := range [][3]int{{1024, 1024, 1024}, {1024, 3072, 8192}, {1024, 3072, 16384}, {6144, 1024, 16384}, {1536, 2048, 1024}, {512, 2048, 16384}} {
		c := Estimate(s[0], s[1], s[2], 132, Config{TransA: true, TransB: true, StreamK: s[2] > 8192})
		tiles := ceil(s[0], c.BM) * ceil(s[1], c.BN)
		if slots := ceil(tiles, 132) * 132; float64(tiles) < 0.9*float64(slots) && !c.StreamK {
			t.Errorf("%v gets %v: %d tiles on %d places", s, c, tiles, slots)
		}
	}
}

// Where the configurations were measured, the estimated one is within 3 % of the fastest.
func TestEstimateAgreesWithMeasurements(t *testing.T) {
	for file, mode := range map[string]string{"large": "single", "small": "graph-rotating"} {
		b, err := os.ReadFile("../../bench/results/gemm-tune-" + file + "-h200.json")
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Rows []struct {
				M       int
				Mode    string
				Samples []struct {
					Side string
					Own  bool
					Us   []float64
				}
			}
		}
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			if row.Mode != mode {
				continue
			}
			chosen, fastest, at := "heddle "+Estimate(row.M, row.M, row.M, 132, Config{}).String(), math.Inf(1), math.Inf(1)
			for _, s := range row.Samples {
				if !s.Own {
					continue
				}
				slices.Sort(s.Us)
				us := s.Us[len(s.Us)/2]
				fastest = min(fastest, us)
				if s.Side == chosen {
					at = us
				}
			}
			if at > 1.03*fastest {
				t.Errorf("%d: %s takes %.1f µs, the fastest %.1f", row.M, chosen, at, fastest)
			}
		}
	}
}
