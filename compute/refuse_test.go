package compute_test

import (
	"errors"
	"strings"
	"testing"

	"heddle/compute"
	"heddle/compute/dry"
	"heddle/mesh"
	"heddle/tensor"
)

// on makes a dry device of one axis x with two ranks.
func on(t *testing.T) *compute.Device {
	t.Helper()
	m, err := mesh.New(mesh.Axis{Name: "x", Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	return compute.New(m, 0, tensor.F32, dry.Leaf{})
}

// fault is the Fault with which f panics, nil where it does not.
func fault(t *testing.T, f func()) (out *compute.Fault) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if out, ok = p.(*compute.Fault); !ok {
				t.Errorf("panics with %v, want a Fault", p)
			}
		}
	}()
	f()
	return nil
}

// tensors of a small layer on one axis; place p where it says so.
type kit struct{ d *compute.Device }

func (k kit) t(p mesh.Place, letters string, dims ...int) tensor.Tensor {
	return k.d.New(tensor.F32, letters, dims, mesh.Places{p})
}

func (k kit) constant(p mesh.Place, letters string, dims ...int) tensor.Tensor {
	x := k.t(p, letters, dims...)
	x.Const = true
	return x
}

func (k kit) ids(p mesh.Place, dims ...int) tensor.Tensor {
	x := k.d.New(tensor.I32, "bs", dims, mesh.Places{p})
	x.Const = true
	return x
}

const (
	R, I, P, M = mesh.R, mesh.I, mesh.P, mesh.M
)

func TestOperationsRefuseWrongShapesAndPlaces(t *testing.T) {
	d := on(t)
	k := kit{d}
	s := mesh.S
	for name, f := range map[string]func(){
		"contract: sizes of the summed dim":    func() { d.Contract("bsf", k.t(R, "bsh", 2, 3, 4), k.t(R, "fh", 5, 6)) },
		"contract: not one matrix product":     func() { d.Contract("sbf", k.t(R, "bsh", 2, 3, 4), k.t(R, "fh", 5, 4)) },
		"contract: summed dims in two orders":  func() { d.Contract("f", k.t(R, "hd", 4, 5), k.t(R, "fdh", 3, 5, 4)) },
		"contract: cut on one side only":       func() { d.Contract("bsf", k.t(s('h'), "bsh", 2, 3, 4), k.t(R, "fh", 5, 4)) },
		"contract: two dims cut by one axis":   func() { d.Contract("bsf", k.t(s('s'), "bsh", 2, 3, 4), k.t(s('f'), "fh", 5, 4)) },
		"contract: partial times partial":      func() { d.Contract("bsf", k.t(P, "bsh", 2, 3, 4), k.t(P, "fh", 5, 4)) },
		"contract: invariant times replicated": func() { d.Contract("bsf", k.t(I, "bsh", 2, 3, 4), k.t(R, "fh", 5, 4)) },
		"contract: partial added to cut":       func() { d.ContractAdd(k.t(s('f'), "bsf", 2, 3, 5), k.t(R, "bsh", 2, 3, 4), k.t(R, "fh", 5, 4)) },
		"contract: added to other sizes":       func() { d.ContractAdd(k.t(R, "bsf", 2, 3, 6), k.t(R, "bsh", 2, 3, 4), k.t(R, "fh", 5, 4)) },
		"add: places":                          func() { d.Add(k.t(I, "bsh", 2, 3, 4), k.t(P, "bsh", 2, 3, 4)) },
		"add: sizes":                           func() { d.Add(k.t(I, "bsh", 2, 3, 4), k.t(I, "bsh", 2, 3, 5)) },
		"add: letters":                         func() { d.Add(k.t(I, "bsh", 2, 3, 4), k.t(I, "bsf", 2, 3, 4)) },
		"norm of partial":                      func() { d.Norm(k.t(P, "bsh", 2, 3, 4), k.t(R, "h", 4), 1e-6) },
		"norm of cut h":                        func() { d.Norm(k.t(s('h'), "bsh", 2, 3, 4), k.t(s('h'), "h", 4), 1e-6) },
		"norm: weight's size":                  func() { d.Norm(k.t(R, "bsh", 2, 3, 4), k.t(R, "h", 5), 1e-6) },
		"norm back: weight's gradient whole":   func() { normBack(d, k, R) },
		"center of cut h":                      func() { d.Center(k.t(s('h'), "bsh", 2, 3, 4)) },
		"bias of partial":                      func() { d.AddBias(k.t(P, "bsh", 2, 3, 4), k.t(R, "h", 4)) },
		"bias: cut rows, whole bias":           func() { d.AddBias(k.t(s('h'), "bsh", 2, 3, 4), k.t(R, "h", 4)) },
		"bias: whole rows, cut bias":           func() { d.AddBias(k.t(R, "bsh", 2, 3, 4), k.t(s('h'), "h", 4)) },
		"bias: invariant rows, replicated":     func() { d.AddBias(k.t(I, "bsh", 2, 3, 4), k.t(R, "h", 4)) },
		"bias: not the last letters":           func() { d.AddBias(k.t(R, "bsh", 2, 3, 4), k.t(R, "s", 3)) },
		"bias: sizes":                          func() { d.AddBias(k.t(R, "bsh", 2, 3, 4), k.t(R, "h", 5)) },
		"bias back: of cut tokens, invariant":  func() { d.BiasBack(k.t(I, "h", 4), k.t(s('s'), "bsh", 2, 3, 4)) },
		"gelu of partial":                      func() { d.GELU(k.t(P, "bsf", 2, 3, 4)) },
		"gelu back: input whole, gradient cut": func() { d.GELUBack(k.t(s('f'), "bsf", 2, 3, 4), k.t(R, "bsf", 2, 3, 4)) },
		"rope of cut d":                        func() { d.Rope(k.t(s('d'), "bsgd", 2, 3, 1, 4), k.constant(R, "s", 3), compute.Rope{}) },
		"rope: positions whole, tokens cut":    func() { d.Rope(k.t(s('s'), "bsgd", 2, 3, 1, 4), k.constant(R, "s", 3), compute.Rope{}) },
		"swiglu of partial":                    func() { d.SwiGLU(k.t(P, "bsf", 2, 3, 4), k.t(P, "bsf", 2, 3, 4)) },
		"attention of cut s":                   func() { attention(d, k, s('s'), s('s')) },
		"attention of partial":                 func() { attention(d, k, P, R) },
		"attention: heads cut, keys whole":     func() { attention(d, k, s('g'), R) },
		"attention: documents of the whole batch": func() {
			kv := k.t(s('b'), "bsgd", 2, 3, 2, 4)
			d.Attention(k.t(s('b'), "bsgrd", 2, 3, 2, 1, 4), kv, kv, k.constant(R, "bs", 2, 3))
		},
		"embed: tokens and rows cut":     func() { d.Embed(k.ids(s('b'), 2, 3), k.t(s('v'), "vh", 7, 4), 0) },
		"embed back: into whole rows":    func() { d.EmbedBack(k.t(R, "vh", 7, 4), k.t(P, "bsh", 2, 3, 4), k.ids(R, 2, 3), 0) },
		"row max of partial":             func() { d.RowMax(k.t(P, "bsv", 2, 3, 7), compute.Vocab{Valid: 7}) },
		"sum exp with a partial maximum": func() { sumExp(d, k, s('v'), M) },
		"sum exp of partial logits":      func() { sumExp(d, k, P, R) },
		"token loss of partial sums":     func() { d.TokenLoss(k.t(P, "bsx", 2, 3, 2), k.constant(R, "bs", 2, 3)) },
		"loss back with a partial count": func() { lossBack(d, k, P) },
		"copy: sizes":                    func() { d.Copy(k.t(R, "x", 4), k.t(R, "x", 5)) },
		"copy: types":                    func() { d.Copy(k.t(R, "bs", 2, 3), k.ids(R, 2, 3)) },
		"copy box: outside": func() {
			d.CopyBox(k.t(R, "x", 4), k.t(R, "x", 4), compute.Box{DstLo: []int{2}, SrcLo: []int{0}, Dims: []int{3}})
		},
		"copy box: dims": func() {
			d.CopyBox(k.t(R, "xy", 4, 4), k.t(R, "x", 4), compute.Box{DstLo: []int{0}, SrcLo: []int{0}, Dims: []int{3}})
		},
		"upload: size":                 func() { d.Upload(k.t(R, "x", 4), make([]float64, 3)) },
		"clip scale of a partial norm": func() { d.ClipScale(k.t(P, ""), 1) },
		"adamw: sizes": func() {
			d.AdamW(k.t(I, "x", 4), tensor.Tensor{}, k.t(I, "x", 4), k.t(I, "x", 3), k.t(I, "x", 4), k.t(I, ""), compute.AdamW{})
		},
	} {
		d.At("backward", 7)
		fl := fault(t, f)
		if fl == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		op, _, _ := strings.Cut(name, ":")
		op, _, _ = strings.Cut(op, " of ")
		op, _, _ = strings.Cut(op, " with ")
		if fl.Op != op || fl.Layer != 7 || !strings.HasPrefix(fl.Error(), "compute: backward layer 7: ") {
			t.Errorf("%s: op %q, %v", name, fl.Op, fl)
		}
		if errors.Unwrap(fl) == nil {
			t.Errorf("%s: nothing to unwrap", name)
		}
	}
}

func normBack(d *compute.Device, k kit, dw mesh.Place) {
	d.NormBack(k.t(dw, "h", 4), k.t(mesh.S('s'), "bsh", 2, 3, 4), k.t(mesh.S('s'), "bsh", 2, 3, 4), k.t(mesh.S('s'), "bs", 2, 3), k.t(R, "h", 4))
}

func attention(d *compute.Device, k kit, q, kv mesh.Place) {
	d.Attention(k.t(q, "bsgrd", 2, 3, 2, 1, 4), k.t(kv, "bsgd", 2, 3, 2, 4), k.t(kv, "bsgd", 2, 3, 2, 4), k.constant(R, "s", 3))
}

func sumExp(d *compute.Device, k kit, logits, m mesh.Place) {
	d.SumExp(k.t(logits, "bsv", 2, 3, 7), k.t(m, "bs", 2, 3), k.ids(R, 2, 3), compute.Vocab{Valid: 7})
}

func lossBack(d *compute.Device, k kit, count mesh.Place) {
	t := compute.Targets{Labels: k.ids(R, 2, 3), Mask: k.constant(R, "bs", 2, 3), Count: k.constant(count, "")}
	d.LossBack(k.t(R, "bsv", 2, 3, 7), k.t(R, "bs", 2, 3), k.t(R, "bsx", 2, 3, 2), t, compute.Vocab{Valid: 7})
}

// The same calls with the right places pass, and give the places of the rules.
func TestOperationsGiveThePlacesOfTheirResults(t *testing.T) {
	d := on(t)
	k := kit{d}
	s := mesh.S
	for name, c := range map[string]struct {
		got, want mesh.Place
	}{
		"column":       {d.Contract("bsf", k.t(R, "bsh", 2, 3, 4), k.t(s('f'), "fh", 5, 4)).At[0], s('f')},
		"row":          {d.Contract("bsh", k.t(s('f'), "bsf", 2, 3, 5), k.t(s('f'), "hf", 4, 5)).At[0], P},
		"tokens":       {d.Contract("bsf", k.t(s('s'), "bsh", 2, 3, 4), k.t(R, "fh", 5, 4)).At[0], s('s')},
		"weight":       {d.Contract("fh", k.t(s('s'), "bsf", 2, 3, 5), k.t(s('s'), "bsh", 2, 3, 4)).At[0], P},
		"maximum":      {d.RowMax(k.t(s('v'), "bsv", 2, 3, 7), compute.Vocab{Valid: 7}).At[0], M},
		"embed":        {d.Embed(k.ids(R, 2, 3), k.t(s('v'), "vh", 7, 4), 0).At[0], P},
		"embed tokens": {d.Embed(k.ids(s('s'), 2, 3), k.t(R, "vh", 7, 4), 0).At[0], s('s')},
		"loss":         {d.TokenLoss(k.t(s('s'), "bsx", 2, 3, 2), k.constant(s('s'), "bs", 2, 3)).At[0], P},
		"count":        {d.SumAll(k.constant(s('b'), "bs", 2, 3)).At[0], P},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	if f := fault(t, func() { normBack(d, k, P) }); f != nil {
		t.Error(f)
	}
}
