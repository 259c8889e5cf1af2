package ladder

import (
	"heddle/kernel/gemm"
	"heddle/ptx"
)

// steps are the rungs that package gemm can be: from each to the next one thing changes.
func steps() []Rung {
	var all []Rung
	for _, s := range []struct{ name, config, adds, why string }{
		{"pipeline", "128x128x64-w2-c1x1-s4-g0-onetile-b1", "a producer warp that runs ahead through four stages, two consumer warpgroups, one product in flight",
			"Loads never wait for products nor products for loads; the store goes through stmatrix and TMA."},
		{"persistent", "128x128x64-w2-c1x1-s4-g0-b1", "a CTA for each SM that goes from tile to tile",
			"The next tile's stages fill while this one is stored; barriers and tensor maps are prepared once."},
		{"dynamic", "128x128x64-w2-c1x1-s4-g0-dynamic-b1", "tiles drawn from a counter instead of dealt in advance",
			"SMs that are slower, or far from their data, take fewer tiles; without it all wait for the unluckiest."},
		{"wide", "128x256x64-w2-c1x1-s3-g0-b1", "tiles of 128×256",
			"85 products for each byte that comes from L2 instead of 64, and the largest product, m64n256k16."},
		{"multicast", "128x256x64-w2-c2x1-s3-g0-b1", "clusters of two that load half of B's tile each, for both",
			"128 products for each byte from L2."},
		{"order", "128x256x64-w2-c2x1-s3-g8-b1", "strips of eight cluster tiles instead of whole columns",
			"What the SMs load at one time fits into L2 together and comes from memory once."},
		{"peeks", "128x256x64-w2-c2x1-s3-g8-peek-b1", "a look at the next stage's barrier a step before it is needed",
			"The answer is there when it is needed. Little, here: a product is always in flight while the consumer looks."},
		{"buffers", "128x256x64-w2-c2x1-s3-g8-b4", "four store buffers for each consumer instead of one",
			"A chunk need not wait until the one before has left."},
		{"depth", "128x256x64-w2-c1x1-s3-g16-b4", "clusters of one again",
			"Where L2 keeps up, CTAs that do not wait for each other are faster than ones that share loads: measured, not argued."},
		{"pingpong", "128x192x64-w2-c1x1-s4-g16-pingpong", "consumers that take whole tiles in turn",
			"One stores while the other multiplies: the tensor cores do not see the epilogue."},
	} {
		c, err := gemm.ParseConfig(s.config)
		r := Rung{Name: s.name, Adds: s.adds, Why: s.why, Build: func() (*ptx.Entry, Launcher, error) {
			if err != nil {
				return nil, nil, err
			}
			g, err := gemm.New(c)
			if err != nil {
				return nil, nil, err
			}
			return g.Entry, g.Launch, nil
		}}
		if c.Dynamic {
			r.Workspace = func(ctas int) int { return 256 }
		}
		all = append(all, r)
	}
	return all
}
