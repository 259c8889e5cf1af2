package param

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"heddle/mesh"
	"heddle/tensor"
)

func meshOf(t *testing.T, axes ...mesh.Axis) *mesh.Mesh {
	t.Helper()
	m, err := mesh.New(axes...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// blocks of a vocabulary of 10 padded to 12 and a matrix cut by two axes at once.
func rows(m *mesh.Mesh) Table {
	at := m.Uniform(mesh.R)
	return Table{
		{Name: "embed", Letters: "vh", Dims: []int{12, 3}, Valid: 10, Use: at.With(m.Find("tp"), mesh.S('v')), Std: 0.5, Train: true},
		{Name: "norm", Letters: "h", Dims: []int{3}, Valid: 3, Start: 1, Use: at, Train: true},
		{Name: "q", Letters: "grdh", Dims: []int{2, 2, 5, 3}, Valid: 2, Use: at.With(m.Find("tp.kv"), mesh.S('g')).With(m.Find("tp.rep"), mesh.S('r')), Unit: 1, Std: 0.1, Train: true},
		{Name: "o", Letters: "hgrd", Dims: []int{3, 2, 2, 5}, Valid: 3, Use: at.With(m.Find("tp.kv"), mesh.S('g')).With(m.Find("tp.rep"), mesh.S('r')), Unit: 1, Std: 0.1, Train: true},
	}
}

func TestBoxesCoverATensorOnceForEveryCopy(t *testing.T) {
	for _, m := range []*mesh.Mesh{meshOf(t), meshOf(t, mesh.Axis{Name: "dp", Size: 3}), meshOf(t, mesh.Axis{Name: "dp", Size: 2}, mesh.Axis{Name: "tp.kv", Size: 2}, mesh.Axis{Name: "tp.rep", Size: 2})} {
		for _, r := range rows(m) {
			n := 1
			for _, d := range r.Dims {
				n *= d
			}
			seen := make([]int, n)
			for rank := range m.Size() {
				box, last := r.Box(m, rank), -1
				count := 0
				Each(r.Dims, box, func(g int) {
					if g <= last {
						t.Fatalf("%s: element %d after %d", r.Name, g, last)
					}
					last = g
					seen[g]++
					count++
				})
				if count != box.Elems() || count != r.Describe(m, rank, tensor.F32).Elems() {
					t.Fatalf("%s: %d elements in a box of %d", r.Name, count, box.Elems())
				}
			}
			for g, c := range seen {
				if want := m.Count(r.Use.Axes(mesh.R)); c != want {
					t.Fatalf("%s on %d ranks: element %d is on %d, want %d", r.Name, m.Size(), g, c, want)
				}
			}
		}
	}
}

// The outer axis cuts first: tp.kv 1, tp.rep 0 of [g 2, r 2] is g 1, r 0.
func TestTwoAxesCutInMeshOrder(t *testing.T) {
	m := meshOf(t, mesh.Axis{Name: "a", Size: 2}, mesh.Axis{Name: "b", Size: 3})
	for rank := range 6 {
		b := Cut(m, rank, "s", []int{12}, m.Uniform(mesh.S('s')))
		if b.Lo[0] != 2*rank || b.Hi[0] != 2*rank+2 {
			t.Errorf("rank %d has [%d, %d), want [%d, %d)", rank, b.Lo[0], b.Hi[0], 2*rank, 2*rank+2)
		}
	}
}

func TestInitDoesNotDependOnTheLayout(t *testing.T) {
	one := meshOf(t)
	whole := map[string][]float64{}
	for i := range rows(one) {
		r := &rows(one)[i]
		x := make([]float64, r.Box(one, 0).Elems())
		if err := Fill(rows(one).Init(7), r, r.Box(one, 0), x); err != nil {
			t.Fatal(err)
		}
		whole[r.Name] = x
	}
	m := meshOf(t, mesh.Axis{Name: "dp", Size: 2}, mesh.Axis{Name: "tp.kv", Size: 2}, mesh.Axis{Name: "tp.rep", Size: 2})
	table := rows(m)
	for i := range table {
		r := &table[i]
		for rank := range m.Size() {
			box := r.Box(m, rank)
			x, k := make([]float64, box.Elems()), 0
			if err := Fill(table.Init(7), r, box, x); err != nil {
				t.Fatal(err)
			}
			Each(r.Dims, box, func(g int) {
				if x[k] != whole[r.Name][g] {
					t.Fatalf("%s on rank %d: element %d is %v, whole %v", r.Name, rank, g, x[k], whole[r.Name][g])
				}
				k++
			})
		}
	}
	for g, v := range whole["embed"] { // padding is zero
		if (g >= 30) != (v == 0) {
			t.Errorf("embed element %d is %v", g, v)
		}
	}
	for _, v := range whole["norm"] {
		if v != 1 {
			t.Errorf("a norm starts at %v", v)
		}
	}
}

func TestInitIsNormalWithItsDeviation(t *testing.T) {
	m := meshOf(t)
	table := Table{{Name: "a", Letters: "vh", Dims: []int{100, 200}, Valid: 100, Std: 0.02}, {Name: "b", Letters: "vh", Dims: []int{100, 200}, Valid: 100, Std: 0.02}}
	x, y := make([]float64, 20000), make([]float64, 20000)
	for i, dst := range [][]float64{x, y} {
		if err := Fill(table.Init(1), &table[i], table[i].Box(m, 0), dst); err != nil {
			t.Fatal(err)
		}
	}
	sum, sq, cross := 0.0, 0.0, 0.0
	for i, v := range x {
		sum, sq, cross = sum+v, sq+v*v, cross+v*y[i]
	}
	// The mean of n numbers deviates by σ/√n, the variance by σ²√(2/n), a product of two rows by σ²/√n; five of each.
	n := float64(len(x))
	if mean := sum / n; math.Abs(mean) > 5*0.02/math.Sqrt(n) {
		t.Errorf("mean %v", mean)
	}
	if v := sq / n / (0.02 * 0.02); math.Abs(v-1) > 5*math.Sqrt(2/n) {
		t.Errorf("variance ratio %v", v)
	}
	if c := cross / n / (0.02 * 0.02); math.Abs(c) > 5/math.Sqrt(n) {
		t.Errorf("two parameters correlate: %v", c)
	}
}

func TestFillNeverAsksForPadding(t *testing.T) {
	m := meshOf(t, mesh.Axis{Name: "tp", Size: 4})
	r := Row{Name: "embed", Letters: "vh", Dims: []int{12, 2}, Valid: 7, Use: mesh.Places{mesh.S('v')}}
	asked := ""
	src := func(_ *Row, b Box, dst []float64) error {
		asked += fmt.Sprintf("[%d,%d)", b.Lo[0], b.Hi[0])
		for i := range dst {
			dst[i] = 5
		}
		return nil
	}
	got := ""
	for rank := range 4 {
		x := []float64{9, 9, 9, 9, 9, 9}
		if err := Fill(src, &r, r.Box(m, rank), x); err != nil {
			t.Fatal(err)
		}
		got += fmt.Sprint(x)
	}
	if asked != "[0,3)[3,6)[6,7)" || got != "[5 5 5 5 5 5][5 5 5 5 5 5][5 5 0 0 0 0][0 0 0 0 0 0]" {
		t.Errorf("asked %s, got %s", asked, got)
	}
	if r.Elems() != 14 || (Table{r, r}).Elems() != 28 {
		t.Errorf("%d elements", r.Elems())
	}
}

func TestCheckRefusesUnevenCuts(t *testing.T) {
	m := meshOf(t, mesh.Axis{Name: "tp", Size: 4})
	r := Row{Name: "gate", Letters: "fh", Dims: []int{10, 2}, Use: mesh.Places{mesh.S('f')}}
	if err := r.Check(m); err == nil || !strings.Contains(err.Error(), "gate: dim f of 10 is not divisible by 4") {
		t.Error(err)
	}
}
