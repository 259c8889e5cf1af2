package tile

import (
	"cmp"
	"math"
)

// Nearest is the choice that can be built and differs least: types stay, and a size counts by the logarithm of its change, so that halving BM is
// as far as halving BN; ties go to the larger tile. ok is false where nothing does.
func (c Chip) Nearest(x Choice) (near Choice, ok bool) {
	best := math.Inf(1)
	for _, y := range neighbours(x) {
		if d := distance(x, y); d < best || d == best && cmp.Compare(y.BM*y.BN*y.BK, near.BM*near.BN*near.BK) > 0 {
			if f := c.Fit(y); f.OK() {
				near, best, ok = f.Choice, d, true
			}
		}
	}
	return near, ok
}

// neighbours lists what is tried: the usual sizes, and x's own.
func neighbours(x Choice) (out []Choice) {
	if x.In < 1 || x.Out < 1 {
		return nil
	}
	bk := []int{x.BK, 32 / x.In, 64 / x.In, 128 / x.In, 256 / x.In}
	for _, bm := range []int{x.BM, 64, 128, 192, 256, 320} {
		for bn := 0; bn <= 320; bn += 16 {
			for _, k := range bk {
				for _, groups := range []int{x.Warpgroups, 1, 2, 3} {
					for _, stages := range []int{x.Stages, 0} {
						y := x
						y.BM, y.BN, y.BK, y.Warpgroups, y.Stages = bm, bn, k, groups, stages
						if bn == 0 {
							y.BN = x.BN
						}
						y.PingPong = x.PingPong && groups == 2
						out = append(out, y)
					}
				}
			}
		}
	}
	return append(out, fewer(out)...)
}

// fewer tries the same with one epilogue buffer less, and without a cluster.
func fewer(list []Choice) (out []Choice) {
	for _, y := range list {
		if y.Buffers > 1 {
			z := y
			z.Buffers = 1
			out = append(out, z)
		}
		if max(y.ClusterM, 1)*max(y.ClusterN, 1) > 1 {
			z := y
			z.ClusterM, z.ClusterN = 1, 1
			out = append(out, z)
		}
	}
	return out
}

func distance(x, y Choice) float64 {
	d := steps(x.BM, y.BM) + steps(x.BN, y.BN) + steps(x.BK, y.BK) + steps(x.Warpgroups, y.Warpgroups)/2
	d += math.Abs(float64(x.Buffers-y.Buffers)) / 4
	if x.Stages != y.Stages {
		d += 0.125
	}
	if x.ClusterM != y.ClusterM || x.ClusterN != y.ClusterN {
		d += 1
	}
	if x.PingPong != y.PingPong {
		d += 0.5
	}
	return d
}

func steps(x, y int) float64 { return math.Abs(math.Log2(float64(max(x, 1)) / float64(max(y, 1)))) }

// StagesTable is how many stages fit, for every BM × BN at one BK: row i is bms[i]; -1 where the choice is refused for another reason than depth.
func (c Chip) StagesTable(x Choice, bms, bns []int) [][]int {
	out := make([][]int, len(bms))
	for i, bm := range bms {
		for _, bn := range bns {
			y := x
			y.BM, y.BN, y.Stages = bm, bn, 0
			f := c.Fit(y)
			n := f.MaxStages
			for _, r := range f.Refusals {
				if r.Rule != "stages" {
					n = -1
				}
			}
			out[i] = append(out[i], n)
		}
	}
	return out
}
