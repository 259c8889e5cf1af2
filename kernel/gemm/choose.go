package gemm

import (
	_ "embed"
	"encoding/json"
	"math"
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
// like says what the product is: types, transposition, addition, epilogue, and by StreamK whether there is a workspace for it; its other fields are ignored.
func Choose(m, n, k, sms int, like Config) (Config, error) {
	like = like.Full()
	tuned, err := TunedProblems()
	if err != nil {
		return Config{}, err
	}
	for _, t := range tuned {
		if t.Config.StreamK && !like.StreamK {
			continue
		}
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
		c = c.Like(like.Full())
		if c.Check() != nil || c.Cluster() > sms || c.StreamK && !like.StreamK {
			continue
		}
		if t := c.Clocks(m, n, k, sms); best.BN == 0 || t < least*(1-doubt) {
			best, least = c, t
		}
	}
	return best
}

// usual are the configurations worth an estimate, those first that do well on most shapes: a later one must be faster by doubt.
var usual = []string{
	"128x256x64-w2-c1x1-s3-g16-b4", "128x256x64-w2-c2x1-s3-g8", "256x192x64-w2-c1x1-s3-g8", "128x192x64-w2-c1x1-s4-g16-pingpong", "128x128x64-w2-c2x1-s6-g8-pingpong",
	"128x128x64-w2-c1x1-s6-g16-pingpong", "64x128x64-w1-c1x1-s8-g4-invites", "128x64x64-w1-c1x1-s8-g4-invites", "64x64x64-w1-c1x1-s8-g0-invites", "64x256x64-w1-c1x1-s5-g8", "64x192x64-w1-c1x1-s6-g4-invites", "256x128x64-w2-c1x1-s4-g8", "128x128x64-w2-c1x1-s6-g8-streamk",
}

// Of an H200, in clocks of an SM at 1,980 MHz: fitted to the medians in bench/results/gemm-tune-large-h200.json, gemm-tune-small-h200.json (launches that invite
// the next, of which 3,100 clocks show instead of launchClocks) and gemm-shapes-h200.json. The mean error of the logarithm, errors above 0.3 counted as 0.3 and
// shapes of the vocabulary as a fifth, is 0.033. The tensor cores' rate is what products reach under the power limit, below the data sheet's 2,048.
const (
	macsPerClock   = 1680.0
	loadPerClock   = 75.0    // bytes into the ring
	launchClocks   = 9500.0  // from event to event around an empty product
	clusterClocks  = 1700.0  // more of a launch for each doubling of the clusters: their CTAs start and end together
	storeClocks    = 7.0     // of the epilogue, for each row of 64 columns of a consumer
	overheadClocks = 70.0    // of a k step, whatever its size
	streamClocks   = 10000.0 // of stream-K: a partial sum to L2, the wait for its flag and its way back
	doubt          = 0.01    // estimates closer than this say nothing
)

// Clocks is the estimated time of a product in clocks of an SM: rounds of tiles, each as long as its products or its loads take, plus the epilogue where nothing hides it.
func (c Config) Clocks(m, n, k, sms int) float64 {
	clusters := ceil(m, c.BM*c.ClusterM) * ceil(n, c.BN*c.ClusterN)
	rounds, stream := float64(ceil(clusters, sms/c.Cluster())), 0.0
	if at := sms / c.Cluster(); c.StreamK && clusters%at != 0 {
		rounds, stream = float64(clusters)/float64(at), streamClocks
	}
	bytes := float64((c.BM/c.ClusterN + c.BN/c.ClusterM) * c.BK * c.elem())
	products := float64(c.BM*c.BN*c.row()) / 2 / macsPerClock // the narrower the type, the faster
	step := max(products, bytes/loadPerClock) + overheadClocks
	epilogue := storeClocks * float64(c.rows()*c.BN/64)
	if c.PingPong {
		epilogue /= rounds // only the last one shows
	}
	return stream + launchClocks + clusterClocks*math.Log2(float64(c.Cluster())) + rounds*(float64(ceil(k, c.BK))*step+epilogue)
}
