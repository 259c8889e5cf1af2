package parity

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"heddle/comm"
	"heddle/compute"
	"heddle/model"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/train"
)

var update = flag.Bool("update", false, "write the pages in ../docs")

// mutated are the schemes whose every reduction is tampered with: those of the acceptance and the ones that sum over copied heads.
var mutated = []string{"dp2", "fsdp2", "tp2", "megatron2", "ulysses2", "megatron4", "ulysses4", "fsdp2-megatron2", "dp2-fsdp2", "fsdp2-ulysses2", "dp2-tp2", "dp2-fsdp2-megatron2", "tp4", "ulysses2-tp2"}

// extreme is a small model whose logits reach ±800, so that a row maximum that is not the largest logit shows: exp leaves
// float64 at 709 and −745. Elsewhere the loss does not depend on the maximum.
func extreme() Input {
	c := model.Config{Layers: 2, Hidden: 16, Heads: 8, KV: 2, Head: 4, MLP: 24, Vocab: 67, Theta: 1e4, Eps: 1e-6, Tied: false, Std: 0.02}
	return NewInput(c, 4, 16, 1, 300)
}

// reductions lists the sites of a scheme, in the order of its program.
func reductions(t *testing.T, in Input, name string) (out []site) {
	t.Helper()
	note := func(o *comm.Op) comm.Alteration {
		if s := siteOf(o); !slices.Contains(out, s) {
			out = append(out, s)
		}
		return comm.None
	}
	if _, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: tensor.F64, Dry: true}, Alter: note}); err != nil {
		t.Fatal(err)
	}
	return out
}

// transfers lists the sites of a scheme that move data without reducing it.
func transfers(t *testing.T, in Input, name string) (out []site) {
	t.Helper()
	tell := func(o *comm.Op) {
		if s := siteOf(o); moves(o.Kind) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	wrap := func(l comm.Leaf) comm.Leaf { return noting{l, tell} }
	if _, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: tensor.F64, Dry: true, Wrap: wrap}}); err != nil {
		t.Fatal(err)
	}
	return out
}

// seen tells which of parity's measures see that r is not ref. Without a fault they are under 1e-12; a fault changes whole
// terms.
func seen(ref, r *Result) string {
	const tolerance = 1e-9
	m := measure(ref, r)
	var out []string
	add := func(what string, x float64) {
		if !(x <= tolerance) {
			out = append(out, what)
		}
	}
	add("gradient", m.GradErr)
	add("norm", math.Abs(r.Norm/ref.Norm-1))
	add("loss", math.Abs(r.Loss/ref.Loss-1))
	add("copies", m.spread)
	return strings.Join(out, ", ")
}

// honest alters the program. The places refuse it on the dry machine, or parity sees it.
func honest(t *testing.T, in Input, ref *Result, name string, s site, a comm.Alteration) string {
	alter := func(o *comm.Op) comm.Alteration {
		if siteOf(o) == s {
			return a
		}
		return comm.None
	}
	_, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: tensor.F64, Dry: true}, Alter: alter})
	if f, ok := errors.AsType[*compute.Fault](err); ok {
		return "places: " + f.Op
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	r, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: tensor.F64, Threads: 1}, Alter: alter})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return seen(ref, r)
}

// lied alters the data while the places claim success. Only parity can see it.
func lied(t *testing.T, in Input, ref *Result, name string, s site, a comm.Alteration) string {
	wrap := func(l comm.Leaf) comm.Leaf {
		return &liar{Leaf: l, at: s, fault: a, own: map[*comm.Op][]float64{}, other: map[*comm.Op]*comm.Op{}}
	}
	r, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: tensor.F64, Threads: 1, Wrap: wrap}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return seen(ref, r)
}

// mutations is 3 faults × 2 ways for each reduction of each scheme, and 3 for each of the other collectives.
const mutations, falseMoves = 738, 159

func TestEveryReductionDroppedDoubledOrSwappedIsNoticed(t *testing.T) {
	in := extreme()
	ref := oracle(t, in)
	var table, moved strings.Builder
	count, count2 := 0, 0
	for _, name := range mutated {
		r, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: tensor.F64}})
		if err != nil {
			t.Fatal(err)
		}
		if s := seen(ref, r); s != "" {
			t.Fatalf("%s without a fault: %s", name, s)
		}
		for _, s := range reductions(t, in, name) {
			cells := plant(t, in, ref, name, s, honest, lied)
			count += len(cells)
			fmt.Fprintf(&table, "| %s | %s | %s, %d ranks | %s | %s |\n", name, s.Name, s.Axes, s.Ranks, s.Kind, strings.Join(cells, " | "))
		}
		for _, s := range transfers(t, in, name) {
			cells := plant(t, in, ref, name, s, lied)
			count2 += len(cells)
			fmt.Fprintf(&moved, "| %s | %s | %s, %d ranks | %s | %s |\n", name, s.Name, s.Axes, s.Ranks, s.Kind, strings.Join(cells, " | "))
		}
	}
	if count != mutations || count2 != falseMoves {
		t.Errorf("%d and %d mutations, want %d and %d; if collectives were added or removed on purpose, change the constants and run with -update", count, count2, mutations, falseMoves)
	}
	generated(t, "../docs/mutations.md", fmt.Sprintf(preamble, count, count2, table.String(), moved.String()))
}

// The other families reduce gradients of biases, learned positions and norms without a twin: a reduction that is dropped or doubled shows there too.
func TestReductionsOfEveryFamilyAreNoticed(t *testing.T) {
	for family, c := range families() {
		in := NewInput(c, 4, 16, 1, 300)
		ref := oracle(t, in)
		for _, name := range []string{"dp2", "fsdp2", "tp4", "megatron2", "ulysses4"} {
			for _, s := range reductions(t, in, name) {
				for _, a := range []comm.Alteration{comm.Drop, comm.Double} {
					if honest(t, in, ref, name, s, a) == "" {
						t.Errorf("%s, %s: %s of %q over %s goes unnoticed", family, name, a, s.Name, s.Axes)
					}
				}
			}
		}
	}
}

// way plants one fault and says what noticed it.
type way func(*testing.T, Input, *Result, string, site, comm.Alteration) string

func plant(t *testing.T, in Input, ref *Result, name string, s site, ways ...way) (cells []string) {
	t.Helper()
	for _, w := range ways {
		for _, a := range []comm.Alteration{comm.Drop, comm.Double, comm.Swap} {
			what := w(t, in, ref, name, s, a)
			if what == "" {
				t.Errorf("%s: %s of %q over %s goes unnoticed", name, a, s.Name, s.Axes)
			}
			cells = append(cells, what)
		}
	}
	return cells
}

func TestExtremeLogitsReachBothSignsOf800(t *testing.T) {
	in := extreme()
	s, err := parallel.New(parallel.Layout{}, parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := 0.0, 0.0
	err = train.Ranks(s.Mesh, train.Machine{Type: tensor.F64}, func(r *train.Rank) error {
		m, err := model.New(in.Config, s, r.Dev, r.Grp)
		if err != nil {
			return err
		}
		if err := m.Shards.Load(in.Weights); err != nil {
			return err
		}
		logits := r.Dev.Download(m.Logits(m.NewBatch(in.B, in.S, in.IDs, in.Labels, in.Mask)))
		lo, hi = slices.Min(logits), slices.Max(logits)
		return nil
	})
	if err != nil || lo > -800 || hi < 800 {
		t.Errorf("logits from %g to %g, want -800 to 800; %v", lo, hi, err)
	}
}

// The loss is shift-invariant: a maximum that is a sum of maxima hides where logits are small. This is why the mutations need
// extreme ones.
func TestMaximumAsSumShowsOnlyAtExtremeLogits(t *testing.T) {
	mild := NewInput(extreme().Config, 4, 16, 1, 1)
	for _, c := range []struct {
		in   Input
		want bool
	}{{mild, false}, {extreme(), true}} {
		ref, err := Gradient(c.in, must(t, "single"), Options{On: train.Machine{Type: tensor.F64}})
		if err != nil {
			t.Fatal(err)
		}
		s := site{"loss maximum", "tp", 2, comm.AllReduceMax}
		if got := lied(t, c.in, ref, "tp2", s, comm.Swap); (got != "") != c.want {
			t.Errorf("seen: %q, want something seen: %v", got, c.want)
		}
	}
}

const preamble = `# What notices a wrong reduction

Generated by ` + "`go test ./parity -run Reduction -update`" + `; the test fails where this page is not what it finds.

Every reduction of every scheme below is tampered with in six ways:

- **In the program**: the call is missing (drop), made twice (double), or another one is made (swap: maximum for sum, sum for
  maximum, all-reduce for reduce-scatter; of copied key/value heads one is taken instead of their sum). Places refuse it on
  the dry machine, before anything is computed (` + "`places:`" + ` and the operation that refuses), or parity sees it.
- **In the data**, while places claim that all is well, as a broken transport would: a rank keeps its own part (drop), the
  result is twice as large (double), a sum is a maximum or a maximum a sum (swap). Only parity can see that.

Parity compares with one rank in float64: *gradient*, a tensor's error over 1e-9; *norm*, of the whole gradient; *loss*;
*copies*, two ranks' copies of a gradient element, of the loss or of the norm differ. The model's logits reach ±800 with both signs: elsewhere a wrong row maximum
hides, because the loss does not depend on it.

%d mutations of reductions and %d of collectives that only move data (below), none unnoticed.

| scheme | site | axes | reduction | program: drop | double | swap | data: drop | double | swap |
|---|---|---|---|---|---|---|---|---|---|
%s
## Collectives that only move data

Blocks from other ranks do not come (drop), the result is twice as large (double), blocks come in another order (swap).

| scheme | site | axes | collective | data: drop | double | swap |
|---|---|---|---|---|---|---|
%s`
