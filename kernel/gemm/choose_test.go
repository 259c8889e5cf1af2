package gemm

import (
	"testing"

	"heddle/num"
)

// What is chosen can be built, for every shape, type and layout, and fills the machine better than the largest tile where that leaves it empty.
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
				if c != c.Like(like.full()) {
					t.Errorf("%v: %v is not the product asked for", s, c)
				}
			}
		}
	}
	if c := Estimate(1024, 1024, 1024, 132, Config{}); ceil(1024, c.BM)*ceil(1024, c.BN) < 64 {
		t.Errorf("1024³ gets %v: fewer than 64 tiles on 132 SMs", c)
	}
	if c := Estimate(8192, 8192, 8192, 132, Config{}); c.BM*c.BN < 128*192 || c.Cluster() != 2 {
		t.Errorf("8192³ gets %v", c)
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
