package mesh

import (
	"fmt"
	"strings"
	"testing"
)

// The oracle of the rules is arithmetic. C[i,j] = Σ_k A[i,k]·B[k,j] is computed by two ranks, each from what its places give
// it, and so are both gradients. A combination is legal where a place of C exists at which the ranks' results make up C, and at
// whose dual a gradient of C leads to gradients of A and B at the duals of their places.

const n = 4 // of every dim; two ranks

type matrix [n][n]int

// held is what a rank holds of a matrix: its values and which rows and columns are there.
type held struct {
	v          matrix
	rows, cols [2]int // [lo, hi)
}

// lay gives a rank its part of x at a place; row and col are x's letters. Partial values differ by rank and sum to x.
func lay(x matrix, p Place, row, col byte, rank int) (held, bool) {
	h := held{v: x, rows: [2]int{0, n}, cols: [2]int{0, n}}
	half := [2]int{rank * n / 2, (rank + 1) * n / 2}
	switch p {
	case R, I:
	case P:
		for i := range n {
			for j := range n {
				noise := 1000 + 7*i + 3*j
				if h.v[i][j] = x[i][j] - noise; rank == 1 {
					h.v[i][j] = noise
				}
			}
		}
	case S(row):
		h.rows = half
	case S(col):
		h.cols = half
	default:
		return h, false
	}
	return h, true
}

// joined tells whether the ranks' parts make up x at a place. Sizes must be those of the place.
func joined(x matrix, p Place, row, col byte, parts [2]held) bool {
	for rank, got := range parts {
		want, ok := lay(x, p, row, col, rank)
		if !ok || got.rows != want.rows || got.cols != want.cols {
			return false
		}
		for i := got.rows[0]; i < got.rows[1]; i++ {
			for j := got.cols[0]; j < got.cols[1]; j++ {
				v := got.v[i][j]
				if p == P {
					v = parts[0].v[i][j] + parts[1].v[i][j]
				}
				if v != x[i][j] {
					return false
				}
			}
		}
	}
	return true
}

// product is a·b of what a rank holds; the summed dim must be there alike.
func product(a, b held) (held, bool) {
	c := held{rows: a.rows, cols: b.cols}
	for i := range n {
		for j := range n {
			for k := a.cols[0]; k < a.cols[1]; k++ {
				c.v[i][j] += a.v[i][k] * b.v[k][j]
			}
		}
	}
	return c, a.cols == b.rows
}

func transposed(a held) held {
	t := held{rows: a.cols, cols: a.rows}
	for i := range n {
		for j := range n {
			t.v[j][i] = a.v[i][j]
		}
	}
	return t
}

func numbers(seed int) (x matrix) {
	for i := range n {
		for j := range n {
			x[i][j] = (seed*31+i*17+j*5)%23 - 11
		}
	}
	return x
}

func whole(x matrix) held { return held{x, [2]int{0, n}, [2]int{0, n}} }

// legal tells whether pc is a place of C for operands at pa and pb. A constant operand needs no gradient.
func legal(pa, pb, pc Place, constA, constB bool) bool {
	a, b, dc := numbers(1), numbers(2), numbers(3)
	c, _ := product(whole(a), whole(b))
	da, _ := product(whole(dc), transposed(whole(b)))
	db, _ := product(transposed(whole(a)), whole(dc))
	var gotC, gotA, gotB [2]held
	for rank := range 2 {
		ha, okA := lay(a, pa, 'i', 'k', rank)
		hb, okB := lay(b, pb, 'k', 'j', rank)
		hdc, okC := lay(dc, pc.Dual(), 'i', 'j', rank)
		if !okA || !okB || !okC {
			return false
		}
		var ok1, ok2, ok3 bool
		gotC[rank], ok1 = product(ha, hb)
		gotA[rank], ok2 = product(hdc, transposed(hb))
		gotB[rank], ok3 = product(transposed(ha), hdc)
		if !ok1 || !constA && !ok2 || !constB && !ok3 {
			return false
		}
	}
	return joined(c.v, pc, 'i', 'j', gotC) && (constA || joined(da.v, pa.Dual(), 'i', 'k', gotA)) && (constB || joined(db.v, pb.Dual(), 'k', 'j', gotB))
}

var everyPlace = []Place{R, I, P, M, S('i'), S('j'), S('k'), S('z')}

func TestLinearAcceptsExactlyWhatArithmeticAllows(t *testing.T) {
	m, err := New(Axis{"x", 2})
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, pa := range everyPlace {
		for _, pb := range everyPlace {
			for _, constants := range [][2]bool{{}, {true, false}, {false, true}} {
				var want []Place
				for _, pc := range everyPlace {
					if legal(pa, pb, pc, constants[0], constants[1]) {
						want = append(want, pc)
					}
				}
				if len(want) > 1 {
					t.Fatalf("%s·%s: the oracle is not clear: %v", pa, pb, want)
				}
				got, err := m.Linear("product", "ij", Operand{"ik", Places{pa}, constants[0]}, Operand{"kj", Places{pb}, constants[1]})
				name := fmt.Sprintf("ik:%s kj:%s, constants %v", pa, pb, constants)
				switch {
				case err == nil && (len(want) == 0 || got[0] != want[0]):
					t.Errorf("%s: got %s, arithmetic allows %v", name, got[0], want)
				case err != nil && len(want) > 0:
					t.Errorf("%s: refused (%v), arithmetic allows %v", name, err, want)
				case err != nil && !strings.Contains(err.Error(), "on axis x"):
					t.Errorf("%s: error %q does not name the axis", name, err)
				case err == nil:
					accepted++
				}
			}
		}
	}
	// R·R, I·I, P·R, R·P, S(i)·R, R·S(j), S(k)·S(k); with a constant operand, I counts as R and R as I where it stands.
	if accepted < 21 {
		t.Errorf("only %d combinations accepted", accepted)
	}
}

func TestPointwiseAlsoRefusesPartialAndCutWholeDims(t *testing.T) {
	m, err := New(Axis{"x", 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b Place
		want Place // 0: refused
	}{
		{R, R, R}, {I, I, I}, {S('s'), S('s'), S('s')}, {S('b'), S('b'), S('b')},
		{P, R, 0}, {R, P, 0}, {P, P, 0}, {M, M, 0}, {M, R, 0}, {S('h'), S('h'), 0}, {S('s'), R, 0}, {S('s'), S('b'), 0}, {R, I, 0},
	} {
		got, err := m.Pointwise("norm", "bsh", "h", Operand{"bsh", Places{c.a}, false}, Operand{"bsh", Places{c.b}, false})
		if (err != nil) != (c.want == 0) || err == nil && got[0] != c.want {
			t.Errorf("%s, %s: got %s, %v, want %s", c.a, c.b, got[0], err, c.want)
		}
	}
}

// Rules look at one axis at a time: a two-axis result is the two one-axis results.
func TestLinearIsPerAxis(t *testing.T) {
	one, err := New(Axis{"x", 2})
	if err != nil {
		t.Fatal(err)
	}
	two, err := New(Axis{"x", 2}, Axis{"y", 3})
	if err != nil {
		t.Fatal(err)
	}
	type pair struct{ a, b Place }
	var pairs []pair
	for _, a := range everyPlace {
		for _, b := range everyPlace {
			pairs = append(pairs, pair{a, b})
		}
	}
	on := func(p pair) (Place, bool) {
		at, err := one.Linear("product", "ij", Operand{"ik", Places{p.a}, false}, Operand{"kj", Places{p.b}, false})
		return at[0], err == nil
	}
	for _, x := range pairs {
		for _, y := range pairs {
			wantX, okX := on(x)
			wantY, okY := on(y)
			got, err := two.Linear("product", "ij", Operand{"ik", Places{x.a, y.a}, false}, Operand{"kj", Places{x.b, y.b}, false})
			if (err == nil) != (okX && okY) || err == nil && got != (Places{wantX, wantY}) {
				t.Fatalf("%v %v: got %v, %v", x, y, got, err)
			}
		}
	}
}
