package parity

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"heddle/compute"
	"heddle/mesh"
	"heddle/model"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/train"
)

// Gathering ahead and scattering behind change when calls are made, and no bit of what they give.
func TestPrefetchChangesNoBit(t *testing.T) {
	c := extreme().Config
	c.Layers = 4
	in := NewInput(c, 24, 16, 1, 1)
	for _, name := range []string{"fsdp3", "fsdp2-megatron2", "dp2-fsdp2"} {
		for _, policy := range []string{"selective", "full"} {
			p, _ := model.ParsePolicy(policy)
			o := Options{On: train.Machine{Type: tensor.F64, Threads: 1, Poison: true}, Schedule: Schedule{p, 2}}
			ahead, err := Gradient(in, must(t, name), o)
			if err != nil {
				t.Fatal(err)
			}
			o.inOrder = true
			waits, err := Gradient(in, must(t, name), o)
			if err != nil {
				t.Fatal(err)
			}
			if ahead.Loss != waits.Loss || ahead.Norm != waits.Norm || !maps.EqualFunc(ahead.Grads, waits.Grads, slices.Equal) {
				t.Errorf("%s, %s: other bits", name, policy)
			}
			if !maps.Equal(ahead.bytes(), waits.bytes()) {
				t.Errorf("%s, %s: received %v, without %v", name, policy, ahead.bytes(), waits.bytes())
			}
			if a, b := ahead.Ranks[0].Memory.Max[compute.Weights], waits.Ranks[0].Memory.Max[compute.Weights]; a <= b {
				t.Errorf("%s, %s: weights of %d bytes, without prefetch %d: nothing is gathered ahead", name, policy, a, b)
			}
		}
	}
}

// From the call log: a unit's gather is issued before the unit ahead of it has computed, never more than two are out, and one
// scatter is on its way while the next layer computes.
func TestTheCallLogShowsGathersAhead(t *testing.T) {
	c := extreme().Config
	c.Layers = 4
	in := NewInput(c, 4, 16, 1, 1)
	r, err := Gradient(in, must(t, "fsdp4"), Options{On: train.Machine{Type: tensor.F64, Dry: true}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	computed := false
	for _, call := range r.Ranks[0].Calls {
		switch {
		case call.Site == "weights" || call.Site == "gradients":
			if computed {
				got = append(got, "|")
			}
			computed = false
			got = append(got, call.Site[:1])
		case call.Op == "contract":
			computed = true
		}
	}
	// Root and layer 0, then one more before each layer computes, the root again with the last; backward has the last layer's
	// still, fetches each before the one above computes, and scatters behind it. The root's gradients come last.
	if want := "w w w | w | w | w | w | g w | g w | g | g g"; strings.Join(got, " ") != want {
		t.Errorf("gathers and scatters between computations: %s, want %s", strings.Join(got, " "), want)
	}
}

// A third unit beside the one in use and the next is refused.
func TestAThirdWholeUnitIsRefused(t *testing.T) {
	in := NewInput(extreme().Config, 4, 16, 1, 1)
	s, err := parallel.New(must(t, "fsdp2"), parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
	if err != nil {
		t.Fatal(err)
	}
	err = train.Ranks(s.Mesh, train.Machine{Type: tensor.F64, Dry: true}, func(r *train.Rank) error {
		m, err := model.New(in.Config, s, r.Dev, r.Grp)
		if err != nil {
			return err
		}
		m.Shards.Gather(0)
		m.Shards.Fetch(1)
		m.Shards.Fetch(1) // on its way already
		m.Shards.Fetch(2)
		return nil
	})
	if f, ok := errors.AsType[*compute.Fault](err); !ok || !strings.Contains(f.Error(), "with unit 2 there would be 3 whole units at once") {
		t.Errorf("got %v", err)
	}
}

// What is freed too early reads NaN: a gathered unit released before its layer computes, or gradients before they are scattered.
func TestUseAfterFreeIsLoud(t *testing.T) {
	in := NewInput(extreme().Config, 4, 16, 1, 1)
	s, err := parallel.New(must(t, "fsdp2"), parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
	if err != nil {
		t.Fatal(err)
	}
	for _, poison := range []bool{false, true} {
		err = train.Ranks(s.Mesh, train.Machine{Type: tensor.F64, Poison: poison}, func(r *train.Rank) error {
			m, err := model.New(in.Config, s, r.Dev, r.Grp)
			if err != nil {
				return err
			}
			if err := m.Shards.Load(in.Weights); err != nil {
				return err
			}
			g := m.Shards.Gather(1)
			before := r.Dev.Download(g.Rows[1])
			m.Shards.Release(g)
			for i, v := range r.Dev.Download(g.Rows[1]) { // after it is freed
				if poison != math.IsNaN(v) || !poison && v != before[i] {
					t.Errorf("poison %v: element %d of a freed weight is %g, was %g", poison, i, v, before[i])
					break
				}
			}
			x := r.Dev.New(tensor.F64, "x", []int{3}, mesh.Places{})
			if poison && !math.IsNaN(r.Dev.Download(x)[0]) {
				t.Error("fresh memory is a number")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A parameter that no rank uses has no gradient, one that some ranks use has theirs, a frozen one takes no memory of others'; all
// of it with memory that is NaN until it is written.
func TestUnusedParameters(t *testing.T) {
	c := extreme().Config
	for _, name := range []string{"dp2", "fsdp3", "dp2-fsdp2", "fsdp2-tp2"} {
		s, err := parallel.New(must(t, name), parallel.Heads{G: c.KV, R: c.Rep()})
		if err != nil {
			t.Fatal(err)
		}
		n := float64(s.Layout.DP * s.Layout.FSDP)
		err = train.Ranks(s.Mesh, train.Machine{Type: tensor.F64, Threads: 1, Poison: true}, func(r *train.Rank) error {
			m, err := model.New(c, s, r.Dev, r.Grp)
			if err != nil {
				return err
			}
			m.Shards.ZeroGrads()
			for micro := range 2 {
				for u := len(m.Shards.Units) - 1; u >= 0; u-- {
					g := m.Shards.OpenGrads(u)
					for i, row := range g.Rows {
						first := s.Mesh.Index(r.Index, s.Data) == 0
						if i%3 == 0 || i%3 == 1 && first && micro == 0 { // all ranks always; one rank once; i%3 == 2: nobody
							one := make([]float64, row.Elems())
							for k := range one {
								one[k] = 1
							}
							x := r.Dev.New(row.Type, row.Letters, row.Dims, row.At)
							r.Dev.Upload(x, one)
							r.Dev.AddInto(row, x)
							r.Dev.Free(x)
						}
					}
					m.Shards.Reduce(u, g)
				}
				m.Shards.Drain()
			}
			m.Shards.Settle()
			for _, p := range m.Shards.Pieces() {
				i := slices.IndexFunc(m.Shards.Units[p.Unit].Rows, func(at int) bool { return &m.Shards.Table[at] == p.Row })
				want := []float64{2 * n, 1, 0}[i%3]
				if tp := p.Row.Use.Dual().Axes(mesh.P) & (s.TP.KV | s.TP.Rep); tp != 0 { // and each tp rank has a part
					want *= float64(s.Mesh.Count(tp))
				}
				for _, v := range r.Dev.Download(p.Grad) {
					if v != want {
						t.Errorf("%s: %s has gradient %g, want %g", name, p.Row.Name, v, want)
						break
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// Whatever the number of micro-batches and layers, gradients that are still partial are settled once a step: one call for what is
// partial everywhere, one for norms and copied heads side by side, after the last scatter.
func TestSettleIsOneCoalescedCallAStep(t *testing.T) {
	c := extreme().Config
	c.Layers = 3
	in := NewInput(c, 12, 16, 1, 1)
	for name, want := range map[string]string{"single": "", "tp2": "packed", "dp2": "settle", "dp2-tp2": "settle packed", "fsdp2-megatron2": "packed", "dp2-fsdp2-megatron2": "settle packed",
		"tp4": "packed packed", "ulysses2-tp2": "settle packed"} { // tp 4 over two key/value heads: norms over four ranks, heads over two
		r, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: tensor.F64, Dry: true}, Schedule: Schedule{Accumulate: 3}})
		if err != nil {
			t.Fatal(err)
		}
		for rank, x := range r.Ranks {
			var got []string
			for _, call := range x.Calls {
				switch {
				case strings.HasPrefix(call.Site, "settle"):
					got = append(got, strings.TrimPrefix(call.Site, "settle "))
				case call.Site == "gradients" && got != nil:
					t.Errorf("%s: rank %d scatters after settling", name, rank)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: rank %d settles %q, want %q", name, rank, strings.Join(got, " "), want)
			}
		}
	}
}

// The gradient that the wire needs comes first: between the start of a sub-block's scatter and the norm that waits for it the
// weights' gradients are computed. From the call log of backward: ExitGrad, products for dx, the scatter, then products that add.
func TestWeightGradientsComeWhileTheScatterIsOnItsWay(t *testing.T) {
	in := NewInput(extreme().Config, 4, 16, 1, 1)
	r, err := Gradient(in, must(t, "megatron2"), Options{On: train.Machine{Type: tensor.F64, Dry: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []string{"attention", "mlp"} {
		adds, state, blocks := 0, "", 0
		for _, call := range r.Ranks[0].Calls {
			switch {
			case call.Phase != "backward" || call.Layer < 0:
			case call.Site == block+" enter grad":
				state, adds = "on its way", 0
			case state == "on its way" && call.Op == "contract add" && strings.IndexByte(call.Args[0].Letters, 'b') < 0: // into a weight's gradient
				adds++
			case state == "on its way" && call.Op == "norm back add":
				if want := map[string]int{"attention": 4, "mlp": 3}[block]; adds != want {
					t.Errorf("%s of layer %d: %d weight gradients while its scatter is on its way, want %d", block, call.Layer, adds, want)
				}
				state = ""
				blocks++
			}
		}
		if blocks != in.Config.Layers {
			t.Errorf("%s: seen in %d layers", block, blocks)
		}
	}
}
