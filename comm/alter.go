package comm

import "heddle/mesh"

// Alteration is a planted fault in one reduction, for mutation tests: the program as somebody might have written it.
type Alteration uint8

const (
	None   Alteration = iota
	Drop              // the call is missing
	Double            // the call is made twice
	Swap              // another reduction is called: maximum for sum, sum for maximum, all-reduce for reduce-scatter
)

func (a Alteration) String() string { return [...]string{"none", "drop", "double", "swap"}[a] }

// Alter plants faults: f is asked for every reduction, with its kind, site, axes and ranks set. Reductions are all-reduces,
// reduce-scatters, and the sum of copied key/value heads in ToTokens, whose Drop takes one copy and whose Swap the last.
func (g *Group) Alter(f func(*Op) Alteration) { g.alter = f }

func (g *Group) altered(o *Op, axes mesh.Set) Alteration {
	if g.alter == nil || o.second {
		return None
	}
	o.Axes, o.Ranks = g.dev.Mesh.Name(axes), g.dev.Mesh.Group(g.dev.Rank, axes)
	return g.alter(o)
}
