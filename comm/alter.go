package comm

// Alteration is a planted fault in one reduction, for mutation tests: the program as somebody might have written it.
type Alteration uint8

const (
	None   Alteration = iota
	Drop              // the call is missing
	Double            // the call is made twice
	Swap              // another reduction is called: maximum for sum, sum for maximum, all-reduce for reduce-scatter
)

func (a Alteration) String() string { return [...]string{"none", "drop", "double", "swap"}[a] }

// Alter plants faults: f is asked for every reduction.
func (g *Group) Alter(f func(*Op) Alteration) { g.alter = f }

func (g *Group) altered(o *Op) Alteration {
	if g.alter == nil || o.second {
		return None
	}
	return g.alter(o)
}
