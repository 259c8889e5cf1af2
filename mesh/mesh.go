// Package mesh names how ranks are arranged and how tensors lie on them: axes, ranks, places, and the rules that say which
// place an operation's result has. It computes nothing and moves nothing.
//
// "Axis" is always a mesh axis, "dim" a tensor's. Start with Place, then Linear: it is the one rule behind every check.
package mesh

import (
	"fmt"
	"iter"
	"math/bits"
	"strings"
)

// Axis is one direction of the mesh. A name "tp.kv" is a factor of the axis that people call "tp".
type Axis struct {
	Name string
	Size int
}

// Mesh is an arrangement of ranks, the outermost axis first. It holds no axis of size 1: what is not split needs no place.
type Mesh struct {
	axes []Axis
	size int
}

// New makes a mesh of the axes whose size is over 1.
func New(axes ...Axis) (*Mesh, error) {
	m := &Mesh{size: 1}
	for _, a := range axes {
		if a.Size < 1 || a.Size > 1<<20 {
			return nil, fmt.Errorf("mesh: axis %s has size %d, want 1 or more", a.Name, a.Size)
		}
		if a.Size == 1 {
			continue
		}
		if m.size *= a.Size; m.size > 1<<24 {
			return nil, fmt.Errorf("mesh: more than %d ranks", 1<<24)
		}
		m.axes = append(m.axes, a)
	}
	if len(m.axes) > MaxAxes {
		return nil, fmt.Errorf("mesh: %d axes, at most %d", len(m.axes), MaxAxes)
	}
	return m, nil
}

// Size is the number of ranks.
func (m *Mesh) Size() int { return m.size }

// Axes lists the axes, outermost first. The caller must not change it.
func (m *Mesh) Axes() []Axis { return m.axes }

// Set is a set of axes of one mesh, a bit an axis.
type Set uint8

// All yields the axes' indices in mesh order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for x := uint8(s); x != 0; x &= x - 1 {
			if !yield(bits.TrailingZeros8(x)) {
				return
			}
		}
	}
}

// Find is the set of the axes with these names; a name also stands for all its factors, and an absent one for nothing.
func (m *Mesh) Find(names ...string) (s Set) {
	for i, a := range m.axes {
		for _, n := range names {
			if a.Name == n || strings.HasPrefix(a.Name, n+".") {
				s |= 1 << i
			}
		}
	}
	return s
}

// Every is the set of all axes.
func (m *Mesh) Every() Set { return Set(1<<len(m.axes) - 1) }

// Count is the number of ranks that the set spans, 1 for the empty set.
func (m *Mesh) Count(s Set) int {
	n := 1
	for a := range s.All() {
		n *= m.axes[a].Size
	}
	return n
}

// Name is how people call the set: "tp" for tp.kv with tp.rep, "dp+fsdp" for two axes.
func (m *Mesh) Name(s Set) string {
	var out []string
	for a := range s.All() {
		base, _, _ := strings.Cut(m.axes[a].Name, ".")
		if len(out) == 0 || out[len(out)-1] != base {
			out = append(out, base)
		}
	}
	return strings.Join(out, "+")
}

// Uniform is place p on every axis.
func (m *Mesh) Uniform(p Place) (out Places) { return out.With(m.Every(), p) }

// Coord is the rank's coordinate on each axis.
func (m *Mesh) Coord(rank int) (c [MaxAxes]int) {
	for i := len(m.axes) - 1; i >= 0; i-- {
		c[i] = rank % m.axes[i].Size
		rank /= m.axes[i].Size
	}
	return c
}

// Index is the position of rank within its group of the set: its coordinates on the set's axes, outer first.
func (m *Mesh) Index(rank int, s Set) (i int) {
	c := m.Coord(rank)
	for a := range s.All() {
		i = i*m.axes[a].Size + c[a]
	}
	return i
}

// Group lists the ranks that differ from rank on the set's axes only, ordered by their coordinates, outer first.
func (m *Mesh) Group(rank int, s Set) []int {
	c := m.Coord(rank)
	out := make([]int, m.Count(s))
	order := make([]int, 0, MaxAxes)
	for a := range s.All() {
		order = append(order, a)
	}
	for i := range out {
		x := i
		for k := len(order) - 1; k >= 0; k-- {
			c[order[k]] = x % m.axes[order[k]].Size
			x /= m.axes[order[k]].Size
		}
		r := 0
		for k, a := range m.axes {
			r = r*a.Size + c[k]
		}
		out[i] = r
	}
	return out
}

// String names a tensor's places with their axes: "S(b)@dp R@tp".
func (m *Mesh) String(p Places) string {
	if len(m.axes) == 0 {
		return "whole"
	}
	var out []string
	for i, a := range m.axes {
		out = append(out, p[i].String()+"@"+a.Name)
	}
	return strings.Join(out, " ")
}
