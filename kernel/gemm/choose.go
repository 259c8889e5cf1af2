package gemm

import "heddle/kernel"

// Choose gives the configuration with the least estimated time for a product on a device of so many SMs. like says what the product is: types, transposition,
// addition; its tile fields are ignored.
func Choose(m, n, k, sms int, like Config) Config {
	best, least := Config{}, 0.0
	for _, c := range candidates() {
		c.In, c.Out, c.Add, c.TransA, c.TransB = like.In, like.Out, like.Add, like.TransA, like.TransB
		if c.Check() != nil || c.Cluster > sms {
			continue
		}
		if t := c.estimate(m, n, k, sms); best.BN == 0 || t < least {
			best, least = c, t
		}
	}
	return best
}

// candidates are the tiles worth considering, each with the ring that shared memory has room for.
func candidates() []Config {
	var all []Config
	for _, t := range []Config{
		{BM: 128, BN: 256}, {BM: 256, BN: 128}, {BM: 128, BN: 192}, {BM: 128, BN: 192, PingPong: true}, {BM: 128, BN: 128, PingPong: true}, {BM: 128, BN: 128},
		{BM: 128, BN: 64}, {BM: 64, BN: 256}, {BM: 64, BN: 192}, {BM: 64, BN: 128}, {BM: 64, BN: 64},
	} {
		for cluster := 1; cluster <= 2; cluster++ {
			c := t
			c.BK, c.Cluster, c.Order, c.Stages = 64, cluster, kernel.Order{Group: 8}, 8
			for c.Stages > 2 && c.Check() != nil {
				c.Stages--
			}
			all = append(all, c)
		}
	}
	return all
}

// Rates of an H200, per SM and clock. The tensor cores' is the data sheet's (989 TFLOP/s at 1,830 MHz on 132 SMs); the others are fitted by eye to the GEMMs in
// bench/results and are estimates.
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
	clusters := ceil(m, c.BM*c.Cluster) * ceil(n, c.BN)
	room := sms / c.Cluster
	busy := float64(min(clusters, room) * c.Cluster)
	rounds := float64(ceil(clusters, room))
	bandwidth := min(l2One, l2All*float64(sms)/busy)
	bytes := float64((c.BM + c.BN/c.Cluster) * c.BK * elem)
	products := float64(c.BM*c.BN*c.BK) / macsPerClock
	step := max(products, bytes/bandwidth) + overheadClocks
	epilogue := storeClocks * float64(c.height()*c.BN/64)
	if c.PingPong {
		epilogue /= rounds // only the last one shows
	}
	return fillClocks + rounds*(float64(ceil(k, c.BK))*step+epilogue)
}
