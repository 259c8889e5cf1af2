package mesh

import (
	"slices"
	"testing"
)

func TestRanksGroupsAndIndicesFitTogether(t *testing.T) {
	for _, axes := range [][]Axis{{}, {{"dp", 2}}, {{"dp", 1}, {"tp", 3}}, {{"dp", 2}, {"fsdp", 3}, {"tp.kv", 2}, {"tp.rep", 2}}} {
		m, err := New(axes...)
		if err != nil {
			t.Fatal(err)
		}
		size := 1
		for _, a := range axes {
			size *= a.Size
		}
		if m.Size() != size {
			t.Fatalf("%v: size %d, want %d", axes, m.Size(), size)
		}
		for set := Set(0); set <= m.Every(); set++ {
			seen := make([]int, size)
			for r := range size {
				g := m.Group(r, set)
				if len(g) != m.Count(set) || g[m.Index(r, set)] != r || !slices.IsSorted(g) {
					t.Fatalf("%v set %b: group of %d is %v, index %d", axes, set, r, g, m.Index(r, set))
				}
				for _, q := range g { // all in the group have the same group, and the same coordinates off the set
					if !slices.Equal(m.Group(q, set), g) || m.Index(q, m.Every()&^set) != m.Index(r, m.Every()&^set) {
						t.Fatalf("%v set %b: ranks %d and %d do not agree", axes, set, r, q)
					}
				}
				seen[r]++
			}
			if set == m.Every() {
				break
			}
		}
	}
}

func TestMeshNamesAxesAsPeopleDo(t *testing.T) {
	m, err := New(Axis{"dp", 2}, Axis{"fsdp", 1}, Axis{"tp.kv", 2}, Axis{"tp.rep", 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		find []string
		name string
		n    int
	}{{[]string{"dp"}, "dp", 2}, {[]string{"fsdp"}, "", 1}, {[]string{"tp"}, "tp", 4}, {[]string{"tp.rep"}, "tp", 2}, {[]string{"dp", "tp"}, "dp+tp", 8}, {[]string{"t"}, "", 1}} {
		s := m.Find(c.find...)
		if m.Name(s) != c.name || m.Count(s) != c.n {
			t.Errorf("%v: %q of %d, want %q of %d", c.find, m.Name(s), m.Count(s), c.name, c.n)
		}
	}
	at := m.Uniform(R).With(m.Find("tp.kv"), S('g')).With(m.Find("tp.rep"), S('r'))
	if got, want := m.String(at), "R@dp S(g)@tp.kv S(r)@tp.rep"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if at.Dual() != m.Uniform(P).With(m.Find("tp.kv"), S('g')).With(m.Find("tp.rep"), S('r')) || at.Dual().Dual() != at {
		t.Errorf("dual of %s is %s", m.String(at), m.String(at.Dual()))
	}
	if at.Axes(R) != m.Find("dp") || at.Axes(S('r')) != m.Find("tp.rep") || at.Axes(P) != 0 {
		t.Error("Axes does not find the axes of a place")
	}
}

func TestMeshRefusesImpossibleSizes(t *testing.T) {
	nine := make([]Axis, 9)
	for i := range nine {
		nine[i] = Axis{"x", 2}
	}
	for _, axes := range [][]Axis{{{"dp", 0}}, {{"dp", -3}}, {{"dp", 1 << 21}}, {{"a", 1 << 20}, {"b", 1 << 20}}, nine} {
		if _, err := New(axes...); err == nil {
			t.Errorf("%v is accepted", axes)
		}
	}
}
