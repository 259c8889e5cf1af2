package study

import (
	"math"
	"math/rand/v2"
)

// Predictor gives the chance of success after n tokens of a rollout that goes on.
type Predictor interface {
	Predict(t *Trace, n int) float64
}

// fit learns a rung from traces: every position of every rollout that goes on after it, positions of a rollout weighing one together.
func (v view) fit(k Kind, traces []*Trace) Predictor {
	var x [][]float64
	var y, weight []float64
	for _, t := range traces {
		for n := 1; n < t.Len(); n++ {
			x = append(x, v.features(k, t, n))
			y, weight = append(y, truth(t)), append(weight, 1/float64(t.Len()-1))
		}
	}
	f := &fitted{view: v, kind: k, scale: standard(x, weight)}
	for i := range x {
		x[i] = f.scale.apply(x[i])
	}
	if k == Network {
		f.model = newNetwork(x, y, weight)
	} else {
		f.model = newLogistic(x, y, weight)
	}
	return f
}

func truth(t *Trace) float64 {
	if t.Right {
		return 1
	}
	return 0
}

// fitted is a model behind its rung's features.
type fitted struct {
	view  view
	kind  Kind
	scale scaling
	model interface{ chance(x []float64) float64 }
}

func (f *fitted) Predict(t *Trace, n int) float64 {
	return f.model.chance(f.scale.apply(f.view.features(f.kind, t, n)))
}

// exact is the rung that enumeration gives.
type exact struct{}

func (exact) Predict(t *Trace, n int) float64 { return t.Value[n] }

// scaling brings features to mean 0 and variance 1. A constant feature becomes 0.
type scaling struct{ mean, by []float64 }

func standard(x [][]float64, weight []float64) (s scaling) {
	if len(x) == 0 {
		return s
	}
	s.mean, s.by = make([]float64, len(x[0])), make([]float64, len(x[0]))
	total := 0.0
	for i := range x {
		total += weight[i]
		for j, v := range x[i] {
			s.mean[j] += weight[i] * v
		}
	}
	for j := range s.mean {
		s.mean[j] /= total
		square := 0.0
		for i := range x {
			square += weight[i] * (x[i][j] - s.mean[j]) * (x[i][j] - s.mean[j])
		}
		if sd := math.Sqrt(square / total); sd > 1e-9 {
			s.by[j] = 1 / sd
		}
	}
	return s
}

func (s scaling) apply(x []float64) []float64 {
	out := make([]float64, len(x))
	for j := range s.mean {
		out[j] = (x[j] - s.mean[j]) * s.by[j]
	}
	return out
}

// logistic is ridge-penalised logistic regression, fitted by Newton's method to a gradient below 1e-9 of the weight: a convex problem with one answer, unlike
// a network trained for some steps.
type logistic struct{ w []float64 } // the last is the intercept

const ridge = 1e-3 // of the mean loss; on features of variance 1

func newLogistic(x [][]float64, y, weight []float64) *logistic {
	if len(x) == 0 {
		return &logistic{w: []float64{0}}
	}
	d := len(x[0]) + 1
	l := &logistic{w: make([]float64, d)}
	total := 0.0
	for _, v := range weight {
		total += v
	}
	for range 50 {
		grad, hess := make([]float64, d), make([][]float64, d)
		for a := range hess {
			hess[a] = make([]float64, d)
			grad[a] = ridge * l.w[a]
			hess[a][a] = ridge
		}
		hess[d-1][d-1], grad[d-1] = 1e-9, 0 // the intercept has no penalty
		for i := range x {
			p := l.chance(x[i])
			g, h := weight[i]/total*(p-y[i]), weight[i]/total*p*(1-p)
			for a := range d {
				va := at(x[i], a)
				grad[a] += g * va
				for b := 0; b <= a; b++ {
					hess[a][b] += h * va * at(x[i], b)
				}
			}
		}
		step, most := solve(hess, grad), 0.0
		for a := range step {
			l.w[a] -= min(5, max(-5, step[a])) // separable data would throw the first steps far
			most = max(most, math.Abs(grad[a]))
		}
		if most < 1e-9 {
			break
		}
	}
	return l
}

// at is a feature, or the 1 of the intercept.
func at(x []float64, i int) float64 {
	if i == len(x) {
		return 1
	}
	return x[i]
}

func (l *logistic) chance(x []float64) float64 {
	z := l.w[len(l.w)-1]
	for i := range len(l.w) - 1 {
		z += l.w[i] * x[i]
	}
	return 1 / (1 + math.Exp(-z))
}

// solve is a⁻¹b by Cholesky's factors; a is symmetric, positive, its lower half given, and overwritten.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		for j := 0; j <= i; j++ {
			s := a[i][j]
			for k := range j {
				s -= a[i][k] * a[j][k]
			}
			if i == j {
				a[i][i] = math.Sqrt(max(s, 1e-12))
			} else {
				a[i][j] = s / a[j][j]
			}
		}
	}
	x := append([]float64(nil), b...)
	for i := range n {
		for k := range i {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= a[k][i] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}

// network is one hidden layer of tanh units, trained with Adam on random batches; what a convex fit may miss.
type network struct {
	in, out []([]float64) // in [unit][feature, bias]; out [0][unit, bias]
}

const (
	units = 12
	turns = 1500
	batch = 256
)

func newNetwork(x [][]float64, y, weight []float64) *network {
	if len(x) == 0 {
		return &network{out: [][]float64{{0}}}
	}
	r := rand.New(rand.NewPCG(1, 2))
	d := len(x[0])
	n := &network{out: [][]float64{make([]float64, units+1)}}
	for range units {
		row := make([]float64, d+1)
		for j := range row {
			row[j] = r.NormFloat64() / math.Sqrt(float64(d+1))
		}
		n.in = append(n.in, row)
	}
	params := append(append([][]float64{}, n.in...), n.out...)
	mean, square := zeros(params), zeros(params)
	for step := 1; step <= turns; step++ {
		grads := zeros(params)
		for range batch {
			i := r.IntN(len(x))
			n.add(grads, x[i], y[i], weight[i])
		}
		for a := range params {
			for b := range params[a] {
				g := grads[a][b]/batch + 1e-4*params[a][b]
				mean[a][b] += 0.1 * (g - mean[a][b])
				square[a][b] += 0.01 * (g*g - square[a][b])
				up := mean[a][b] / (1 - math.Pow(0.9, float64(step)))
				params[a][b] -= 0.01 * up / (math.Sqrt(square[a][b]/(1-math.Pow(0.99, float64(step)))) + 1e-8)
			}
		}
	}
	return n
}

func zeros(like [][]float64) (out [][]float64) {
	for _, r := range like {
		out = append(out, make([]float64, len(r)))
	}
	return out
}

func (n *network) forward(x []float64) (hidden []float64, chance float64) {
	z := n.out[0][len(n.in)]
	for u, row := range n.in {
		s := row[len(x)]
		for j, v := range x {
			s += row[j] * v
		}
		hidden = append(hidden, math.Tanh(s))
		z += n.out[0][u] * hidden[u]
	}
	return hidden, 1 / (1 + math.Exp(-z))
}

func (n *network) chance(x []float64) float64 {
	_, p := n.forward(x)
	return p
}

// add adds the gradient of one example's cross-entropy.
func (n *network) add(grads [][]float64, x []float64, y, weight float64) {
	hidden, p := n.forward(x)
	e := weight * (p - y)
	out := grads[len(n.in)]
	for u, h := range hidden {
		out[u] += e * h
		back := e * n.out[0][u] * (1 - h*h)
		for j, v := range x {
			grads[u][j] += back * v
		}
		grads[u][len(x)] += back
	}
	out[len(n.in)] += e
}
