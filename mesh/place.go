package mesh

// Place says how a tensor lies on one mesh axis. Upper-case values are the four unsharded places; a lower-case letter is
// S(letter): the dim of that letter is cut into equal blocks, one a rank, in rank order.
type Place byte

const (
	// R, replicated: every rank holds the same value and each one's gradient is a part of the whole (the dual is P).
	R Place = 'R'
	// I, invariant: every rank holds the same value and the same gradient.
	I Place = 'I'
	// P, partial: the value is the sum of what the ranks hold.
	P Place = 'P'
	// M, partial maximum: the value is the elementwise maximum of what the ranks hold. It has no dual.
	M Place = 'M'
)

// S is the place that cuts the dim named by a lower-case letter.
func S(letter byte) Place { return Place(letter) }

// Sharded tells whether p is S of some letter.
func (p Place) Sharded() bool { return p >= 'a' && p <= 'z' }

// Letter is the letter that p cuts, 0 where p is no shard.
func (p Place) Letter() byte {
	if p.Sharded() {
		return byte(p)
	}
	return 0
}

// Dual is the place of the gradient of a value at p (the gradient table of spmd_types): R ↔ P, I and S stay.
func (p Place) Dual() Place {
	switch p {
	case R:
		return P
	case P:
		return R
	}
	return p
}

func (p Place) String() string {
	switch {
	case p.Sharded():
		return "S(" + string(rune(p)) + ")"
	case p == 0:
		return "-"
	}
	return string(rune(p))
}

// MaxAxes bounds the axes of a mesh, so that Places is a comparable value.
const MaxAxes = 8

// Places has one place an axis of the mesh, in mesh order; entries past the mesh's axes are zero.
type Places [MaxAxes]Place

// With returns p with every axis of the set at place to.
func (p Places) With(axes Set, to Place) Places {
	for a := range axes.All() {
		p[a] = to
	}
	return p
}

// Dual is the places of the gradient.
func (p Places) Dual() Places {
	for a := range p {
		p[a] = p[a].Dual()
	}
	return p
}

// Axes is the set of axes at place x.
func (p Places) Axes(x Place) (s Set) {
	for a := range p {
		if p[a] == x && x != 0 {
			s |= 1 << a
		}
	}
	return s
}
