package study

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"heddle/rl"
)

// concordance by its definition: over all pairs.
func TestConcordanceCountsPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var list []scored
		for range r.IntN(12) {
			list = append(list, scored{float64(r.IntN(4)), r.IntN(2) == 0})
		}
		higher, pairs := 0.0, 0.0
		for _, a := range list {
			for _, b := range list {
				if a.right && !b.right {
					pairs++
					if a.score > b.score {
						higher++
					} else if a.score == b.score {
						higher += 0.5
					}
				}
			}
		}
		if h, p := concordance(list); h != higher || p != pairs {
			t.Errorf("%v: %g of %g, want %g of %g", list, h, p, higher, pairs)
		}
	}
}

// Holm's example: 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02.
func TestHolm(t *testing.T) {
	for i, p := range holm([]float64{0.01, 0.04, 0.03, 0.005}) {
		if want := []float64{0.03, 0.06, 0.06, 0.02}[i]; math.Abs(p-want) > 1e-15 {
			t.Errorf("%d: %g, want %g", i, p, want)
		}
	}
}

// The interval of a mean over 40 prompts covers the truth about 95 times of 100: of 300 studies 285 ± 3·√(300·0.95·0.05) = 11, and the percentile bootstrap is
// known to be short by a percent or two at this size.
func TestBootstrapCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	covered := 0
	for k := range 300 {
		value, weight := make([]float64, 40), make([]float64, 40)
		for i := range value {
			value[i], weight[i] = r.ExpFloat64(), 1
		}
		if e := bootstrap(40, 300, uint64(k), meanOf(value, weight)); e.Low <= 1 && e.High >= 1 {
			covered++
		}
	}
	if covered < 268 || covered > 297 {
		t.Errorf("%d of 300", covered)
	}
}

// Under no effect the p-value is below 0.05 in about 5 % of studies: 25 ± 3·√(500·0.05·0.95) = 15 of 500.
func TestPValueUnderNoEffect(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	below := 0
	for range 500 {
		value, weight := make([]float64, 60), make([]float64, 60)
		for i := range value {
			value[i], weight[i] = r.NormFloat64(), 1
		}
		if twoSided(value, weight) < 0.05 {
			below++
		}
	}
	if below < 10 || below > 45 {
		t.Errorf("%d of 500", below)
	}
	if p := twoSided([]float64{0, 0, 0}, []float64{1, 1, 1}); p != 1 {
		t.Errorf("no gain at all: p %g", p)
	}
}

// At p = 0.5 and independent samples, 80 % power detects 6.3 points with 1,000 an arm, 3.1 with 4,000 and 1.1 with 32,000.
func TestPower(t *testing.T) {
	for n, want := range map[int]float64{1000: 0.063, 4000: 0.031, 32000: 0.011} {
		if got := power(n, 1, 0.5, 0.3).Unpaired; math.Abs(got-want) > 6e-4 {
			t.Errorf("%d an arm: %.4f, want %.3f", n, got, want)
		}
	}
}

// The logistic fit stands where the gradient of the penalised loss is 0, and finds planted weights: 20,000 examples put standard errors near 0.02.
func TestLogisticFindsPlantedWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	want := []float64{1.5, -0.7, 0, 0.3}
	var x [][]float64
	var y, w []float64
	for range 20000 {
		row := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		z := want[3]
		for j, v := range row {
			z += want[j] * v
		}
		hit := 0.0
		if r.Float64() < 1/(1+math.Exp(-z)) {
			hit = 1
		}
		x, y, w = append(x, row), append(y, hit), append(w, 1)
	}
	l := newLogistic(x, y, w)
	for j := range want {
		if math.Abs(l.w[j]-want[j]) > 0.08 {
			t.Errorf("weight %d is %.3f, want %.3f", j, l.w[j], want[j])
		}
	}
	grad := make([]float64, 4)
	for i := range x {
		for j := range grad {
			grad[j] += (l.chance(x[i]) - y[i]) * at(x[i], j) / float64(len(x))
		}
	}
	for j := range grad {
		if j < 3 {
			grad[j] += ridge * l.w[j]
		}
		if math.Abs(grad[j]) > 1e-8 {
			t.Errorf("gradient %d is %g", j, grad[j])
		}
	}
}

// The network's gradient is the central difference of its cross-entropy; and it learns what no line can: exclusive or.
func TestNetwork(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var x [][]float64
	var y, w []float64
	for range 2000 {
		a, b := r.NormFloat64(), r.NormFloat64()
		hit := 0.0
		if a*b > 0 {
			hit = 1
		}
		x, y, w = append(x, []float64{a, b}), append(y, hit), append(w, 1)
	}
	n := newNetwork(x, y, w)
	right := 0
	for i := range x {
		if (n.chance(x[i]) > 0.5) == (y[i] == 1) {
			right++
		}
	}
	if right < 1800 {
		t.Errorf("%d of 2000 right", right)
	}
	params := append(append([][]float64{}, n.in...), n.out...)
	grads := zeros(params)
	n.add(grads, x[0], y[0], 0.7)
	loss := func() float64 {
		p := n.chance(x[0])
		return -0.7 * (y[0]*math.Log(p) + (1-y[0])*math.Log(1-p))
	}
	const h = 1e-6
	for a := range params {
		for b := range params[a] {
			params[a][b] += h
			up := loss()
			params[a][b] -= 2 * h
			down := loss()
			params[a][b] += h
			if want := (up - down) / (2 * h); math.Abs(grads[a][b]-want) > 1e-7 {
				t.Errorf("parameter %d %d: %g, difference %g", a, b, grads[a][b], want)
			}
		}
	}
}

// A policy of two steps with chances 0.6 and 0.3, 0.8: the value at the start is 0.6·0.3 + 0.4·0.8, and each prefix's is the rest of the ways it shares.
func TestValueIsTheSumOverWays(t *testing.T) {
	ln := math.Log
	w := &rl.Ways{IDs: [][]int32{{1, 3}, {2, 3}}, LogProbs: [][]float64{{ln(0.6), ln(0.3)}, {ln(0.4), ln(0.8)}}}
	for ids, want := range map[[2]int32][]float64{{1, 3}: {0.5, 0.3, 1}, {2, 3}: {0.5, 0.8, 1}, {1, 9}: {0.5, 0.3, 0}, {9, 3}: {0.5, 0, 0}} {
		got := value(ids[:], w)
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-15 {
				t.Errorf("%v: %v, want %v", ids, got, want)
				break
			}
		}
	}
}

// A vote takes the most common completion, the earliest of equals.
func TestBaselines(t *testing.T) {
	mk := func(id int32, right bool) *Trace { return &Trace{IDs: []int32{id}, Right: right} }
	g := [][]*Trace{{mk(1, false), mk(2, true), mk(2, true), mk(3, false)}}
	got := baselines(g)
	want := []Baseline{{1, 0.5, 0.5, 0.5, 1}, {2, 0.5, 0.5, 1, 2}, {4, 0.5, 1, 1, 4}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
