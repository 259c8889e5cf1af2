package gemm

import (
	_ "embed"
	"encoding/json"
)

// tunedJSON is what heddle gemm tune found fastest, by problem.
//
//go:embed tuned.json
var tunedJSON []byte

// Tuned is a problem with the configuration that was measured fastest for it.
type Tuned struct {
	M      int    `json:"m"`
	N      int    `json:"n"`
	K      int    `json:"k"`
	Config Config `json:"config"`
}

// TunedProblems are the measured ones, on an H200.
func TunedProblems() ([]Tuned, error) {
	var all []Tuned
	err := json.Unmarshal(tunedJSON, &all)
	return all, err
}

// Choose gives the configuration for a product on a device of so many SMs: the measured one where there is one, else that of the least estimated time.
// like says what the product is: types, transposition, addition; its other fields are ignored.
func Choose(m, n, k, sms int, like Config) (Config, error) {
	like = like.full()
	tuned, err := TunedProblems()
	if err != nil {
		return Config{}, err
	}
	for _, t := range tuned {
		if t.M == m && t.N == n && t.K == k && t.Config.TransA == like.TransA && t.Config.TransB == like.TransB && t.Config.Cluster() <= sms {
			if c := t.Config.Like(like); c.Check() == nil {
				return c, nil
			}
		}
	}
	return Estimate(m, n, k, sms, like), nil
}

// Estimate is Choose without measurements.
func Estimate(m, n, k, sms int, like Config) Config {
	best, least := Config{}, 0.0
	for _, c := range parseAll(usual) {
		c = c.Like(like.full())
		if c.Check() != nil || c.Cluster() > sms {
			continue
		}
		if t := c.estimate(m, n, k, sms); best.BN == 0 || t < least {
			best, least = c, t
		}
	}
	return best
}

// usual are the configurations worth an estimate. The first ones win where the estimates are equal.
var usual = []string{
	"128x256x64-w2-c2x1-s3-g8", "256x128x64-w2-c1x2-s4-g8", "128x256x64-w2-c1x1-s4-g16", "128x192x64-w2-c2x1-s4-g8", "128x192x64-w2-c1x1-s4-g8",
	"128x128x64-w2-c2x1-s6-g8-pingpong", "128x128x64-w2-c1x1-s6-g8-pingpong", "64x256x64-w1-c1x1-s4-g4-invites", "64x128x64-w1-c2x1-s8-g4-invites",
	"64x128x64-w1-c1x1-s8-g4-invites", "64x64x64-w1-c2x1-s6-g0-invites", "64x64x64-w1-c1x1-s6-g0-invites",
}

// Rates of an H200, per SM and clock. The tensor cores' is the data sheet's (989 TFLOP/s at 1,830 MHz on 132 SMs); the others are fitted by eye to
// bench/results/gemm-tune-*.json and are estimates.
const (
	macsPerClock   = 2048.0
	l2All          = 36.0   // bytes a clock, when every SM asks
	l2One          = 64.0   // bytes a clock, when few do
	fillClocks     = 1500.0 // from the launch to the first product
	storeClocks    = 12.0   // of the epilogue, for each row of 64 columns of a consumer
	overheadClocks = 40.0   // of a k step, whatever its size
)

// estimate is the time of a product in clocks: rounds of tiles, each as long as its products or its loads take, plus the epilogue where nothing hides it.
func (c Config) estimate(m, n, k, sms int) float64 {
	clusters := ceil(m, c.BM*c.ClusterM) * ceil(n, c.BN*c.ClusterN)
	room := sms / c.Cluster()
	busy := float64(min(clusters, room) * c.Cluster())
	rounds := float64(ceil(clusters, room))
	bandwidth := min(l2One, l2All*float64(sms)/busy)
	bytes := float64((c.BM/c.ClusterN + c.BN/c.ClusterM) * c.BK * elem)
	products := float64(c.BM*c.BN*c.BK) / macsPerClock
	step := max(products, bytes/bandwidth) + overheadClocks
	epilogue := storeClocks * float64(c.rows()*c.BN/64)
	if c.PingPong {
		epilogue /= rounds // only the last one shows
	}
	return fillClocks + rounds*(float64(ceil(k, c.BK))*step+epilogue)
}
