package optim_test

import (
	"math"
	"slices"
	"testing"

	"heddle/compute"
	"heddle/mesh"
	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
	"heddle/param"
	"heddle/tensor"
	"heddle/train"
)

// reference is AdamW as in Loshchilov and Hutter (2019), algorithm 2, with the learning rate as the schedule multiplier: plain
// float64, element by element.
func reference(w, m, v []float64, g func(step, i int) float64, c optim.Config, decay float64, lr []float64, clip func(step int) float64) {
	for t := range lr {
		for i := range w {
			x := g(t, i) * clip(t)
			m[i] = c.Beta1*m[i] + (1-c.Beta1)*x
			v[i] = c.Beta2*v[i] + (1-c.Beta2)*x*x
			mh := m[i] / (1 - math.Pow(c.Beta1, float64(t+1)))
			vh := v[i] / (1 - math.Pow(c.Beta2, float64(t+1)))
			w[i] = w[i] - lr[t]*(mh/(math.Sqrt(vh)+c.Eps)+decay*w[i])
		}
	}
}

// A step has about ten roundings, and (1 − lr·decay)·w rounds apart from w − lr·decay·w: 1e-12 is far above three steps of them.
func TestAdamWFromGivenGradients(t *testing.T) {
	cfg := optim.Config{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Clip: 1}
	lr := []float64{1e-3, 2e-3, 5e-4}
	mc := model.Config{Layers: 1, Hidden: 8, Heads: 2, KV: 1, Head: 4, MLP: 6, Vocab: 11, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.5}
	for _, l := range []parallel.Layout{{}, {FSDP: 2}, {TP: 2}} {
		s, err := parallel.New(l, parallel.Heads{G: mc.KV, R: mc.Rep()})
		if err != nil {
			t.Fatal(err)
		}
		grad := func(row *param.Row, step, i int) float64 {
			return math.Sin(float64(i)*1.7+float64(step)+float64(len(row.Name))) * math.Pow(10, float64(i%5)-3)
		}
		norms := make([]float64, len(lr)) // of the whole gradient
		for step := range lr {
			for i, row := range mc.Table(s) {
				for e := range row.Elems() {
					x := grad(&mc.Table(s)[i], step, e)
					norms[step] += x * x
				}
			}
			norms[step] = math.Sqrt(norms[step])
		}
		clip := func(step int) float64 { return min(1, cfg.Clip/(norms[step]+1e-6)) }
		err = train.Ranks(s.Mesh, train.Machine{Type: tensor.F64}, func(r *train.Rank) error {
			m, err := model.New(mc, s, r.Dev, r.Grp)
			if err != nil {
				return err
			}
			if err := m.Shards.Load(m.Shards.Table.Init(3)); err != nil {
				return err
			}
			want := map[string][]float64{}
			for _, p := range m.Shards.Pieces() {
				w := r.Dev.Download(p.Weight)
				var global []int
				m.Shards.Global(p, func(_, g int) { global = append(global, g) })
				decay := 0.0
				if len(p.Row.Dims) > 1 {
					decay = cfg.Decay
				}
				reference(w, make([]float64, len(w)), make([]float64, len(w)), func(step, i int) float64 {
					if global[i] >= p.Row.Elems() {
						return 0
					}
					return grad(p.Row, step, global[i])
				}, cfg, decay, lr, clip)
				want[p.Row.Name] = w
			}
			o := optim.New(cfg, r.Dev, m.Shards)
			for step := range lr {
				setWholeGradients(r.Dev, m.Shards, func(row *param.Row, i int) float64 { return grad(row, step, i) })
				if norm := o.Step(lr[step]); math.Abs(norm-norms[step]) > 1e-12*norms[step] {
					t.Errorf("%+v: norm %v, want %v", l, norm, norms[step])
				}
			}
			for _, p := range m.Shards.Pieces() {
				for i, x := range r.Dev.Download(p.Weight) {
					if y := want[p.Row.Name][i]; math.Abs(x-y) > 1e-12*max(1, math.Abs(y)) {
						t.Errorf("%+v: %s[%d] is %v, want %v", l, p.Row.Name, i, x, y)
						break
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// setWholeGradients gives every piece the gradient that Settle would leave, divided by the ranks that Settle adds up.
func setWholeGradients(d *compute.Device, sh *parallel.Shards, grad func(*param.Row, int) float64) {
	sh.ZeroGrads()
	for _, p := range sh.Pieces() {
		copies := d.Mesh.Count(p.Row.Use.Dual().Axes(mesh.P) &^ d.Mesh.Find("fsdp"))
		g := make([]float64, p.Hi-p.Lo)
		sh.Global(p, func(i, global int) {
			if global < p.Row.Elems() {
				g[i] = grad(p.Row, global) / float64(copies)
			}
		})
		d.Upload(p.Grad, g)
	}
}

func TestScheduleRisesAndFalls(t *testing.T) {
	s := optim.Schedule{Peak: 2, Floor: 0.1, Warmup: 4, Steps: 20}
	for step, want := range map[int]float64{0: 0.5, 3: 2, 11: 2 * (0.1 + 0.9*0.5), 19: 0.2, 30: 0.2} {
		if got := s.At(step); math.Abs(got-want) > 1e-12 {
			t.Errorf("step %d: %v, want %v", step, got, want)
		}
	}
}

// A gradient that is no number leaves weights and moments as they were, on every rank, and so does a value that one rank alone
// has found to be none.
func TestANormThatIsNoNumberUpdatesNothing(t *testing.T) {
	mc := model.Config{Layers: 1, Hidden: 8, Heads: 2, KV: 1, Head: 4, MLP: 6, Vocab: 11, Theta: 1e4, Eps: 1e-6, Tied: true, Std: 0.5}
	s, err := parallel.New(parallel.Layout{FSDP: 2}, parallel.Heads{G: mc.KV, R: mc.Rep()})
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"gradient", "value"} {
		err = train.Ranks(s.Mesh, train.Machine{Type: tensor.F64}, func(r *train.Rank) error {
			m, err := model.New(mc, s, r.Dev, r.Grp)
			if err != nil {
				return err
			}
			if err := m.Shards.Load(m.Shards.Table.Init(3)); err != nil {
				return err
			}
			o := optim.New(optim.Config{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1}, r.Dev, m.Shards)
			m.Shards.ZeroGrads()
			p := m.Shards.Pieces()[0]
			before := r.Dev.Download(p.Weight)
			var bad []tensor.Tensor
			x := r.Dev.New(tensor.F64, "", nil, mesh.Places{})
			r.Dev.Upload(x, []float64{math.NaN()})
			switch {
			case r.Index == 1:
			case where == "value":
				bad = append(bad, x)
			default:
				g := make([]float64, p.Hi-p.Lo)
				g[len(g)-1] = math.Inf(1)
				r.Dev.Upload(p.Grad, g)
			}
			if norm := o.Step(0.1, bad...); !math.IsNaN(norm) && !math.IsInf(norm, 0) {
				t.Errorf("%s, rank %d: norm %g", where, r.Index, norm)
			}
			if !slices.Equal(r.Dev.Download(p.Weight), before) {
				t.Errorf("%s, rank %d: weights have changed", where, r.Index)
			}
			m.Shards.ZeroGrads()
			if norm := o.Step(0.1); norm != 0 || slices.Equal(r.Dev.Download(p.Weight), before) {
				t.Errorf("%s, rank %d: a sound step afterwards: norm %g", where, r.Index, norm)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
