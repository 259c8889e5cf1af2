package parity

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"heddle/compute"
	"heddle/model"
	"heddle/num"
	"heddle/parallel"
	"heddle/parity/formula"
	"heddle/tensor"
	"heddle/train"
)

// agrees runs a scheme on the CPU in float64 and dry. It checks gradients, norm and loss against ref, bytes and kept
// activations against the closed forms, and that the dry run has the same calls and memory on every rank.
func agrees(t *testing.T, in Input, name string, ref *Result) {
	t.Helper()
	l := must(t, name)
	on := train.Machine{Type: tensor.F64, Threads: 1, Poison: true}
	r, err := Gradient(in, l, Options{On: on})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	m := measure(ref, r)
	// The ratio's error is that of the gradients; the loss is one sum of B·S terms.
	if !(m.GradErr <= LimitF64) || !(math.Abs(m.NormRatio-1) <= LimitF64) || !(math.Abs(r.Loss-ref.Loss) <= LimitF64*ref.Loss) || m.spread != 0 {
		t.Errorf("%s of %+v, %d × %d: gradient off by %.1e, norm by %.1e, loss %v, want %v, copies by %.1e",
			name, in.Config, in.B, in.S, m.GradErr, m.NormRatio-1, r.Loss, ref.Loss, m.spread)
	}
	f := shape(in.Config, in.B, in.S, on.Type)
	if got, want := r.bytes(), formula.Bytes(f, layout(l), formula.Schedule{}); !maps.Equal(got, want) {
		t.Errorf("%s of %+v: received %v, want %v", name, f, got, want)
	}
	if got, want := int64(r.Ranks[0].Memory.Max[compute.Saved]), formula.Saved(f, layout(l), formula.Schedule{}); got != want {
		t.Errorf("%s of %+v: keeps %d, want %d", name, f, got, want)
	}
	if got, want := int64(r.Ranks[0].Memory.Max[compute.Weights]), formula.Weights(f, layout(l)); got != want {
		t.Errorf("%s of %+v: holds %d bytes of weights, want %d", name, f, got, want)
	}
	on.Dry = true
	d, err := Gradient(in, l, Options{On: on})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i := range d.Ranks {
		if !reflect.DeepEqual(d.Ranks[i].Calls, r.Ranks[i].Calls) || !reflect.DeepEqual(d.Ranks[i].Memory, r.Ranks[i].Memory) {
			t.Errorf("%s of %+v: rank %d: the dry run has other calls or memory", name, f, i)
		}
	}
}

func oracle(t *testing.T, in Input) *Result {
	t.Helper()
	ref, err := Gradient(in, parallel.Layout{}, Options{On: train.Machine{Type: tensor.F64}})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// Heads that are neither powers of two nor as many as ranks: three query heads to a key/value head, one key/value head in all.
func TestUnequalHeads(t *testing.T) {
	three := model.Config{Layers: 1, Hidden: 10, Heads: 6, KV: 2, Head: 4, MLP: 12, Vocab: 31, Theta: 1e4, Eps: 1e-6, Tied: true}
	one := model.Config{Layers: 2, Hidden: 8, Heads: 4, KV: 1, Head: 6, MLP: 20, Vocab: 11, Theta: 1e3, Eps: 1e-5}
	for _, c := range []struct {
		cfg   model.Config
		names []string
	}{{three, []string{"tp6", "megatron6", "ulysses6", "tp2", "ulysses3-megatron2"}}, {one, []string{"tp4", "megatron4", "ulysses4", "ulysses2-tp2", "fsdp3-megatron2"}}} {
		in := NewInput(c.cfg, 3, 12, 5, 1)
		ref := oracle(t, in)
		for _, name := range c.names {
			agrees(t, in, name, ref)
		}
	}
}

// Random small models under random layouts of up to 8 ranks. The seed of a failure stands in its name.
func TestRandomLegalLayoutsAgreeWithOneRank(t *testing.T) {
	const trials = 40
	ran := 0
	for seed := uint64(1); ran < trials && seed < 50*trials; seed++ {
		k := uint64(0)
		pick := func(of ...int) int {
			k++
			return of[int(num.Uniform(seed, k, 0)*float64(len(of)))]
		}
		g := pick(1, 2, 3, 4)
		c := model.Config{Layers: pick(1, 2, 3), Hidden: pick(3, 8, 17), Heads: g * pick(1, 2, 3, 4), KV: g, Head: pick(2, 4, 6), MLP: pick(6, 8, 24), Vocab: pick(1, 5, 32, 67),
			Theta: 1e4, Eps: 1e-6, Tied: pick(0, 1) == 1}
		l := parallel.Layout{DP: pick(1, 1, 2, 3), FSDP: pick(1, 1, 2, 3), CP: pick(1, 1, 2, 3, 4), TP: pick(1, 1, 2, 3, 4)}
		if l.TP > 1 && pick(0, 1) == 1 {
			l.SP = "megatron"
		}
		if l.World() > 8 || l.World() == 1 {
			continue
		}
		in := NewInput(c, pick(1, 2, 3, 6), pick(4, 12, 24), seed, 1)
		if _, err := Schemes([]string{l.Name()}, c, in.B, in.S); err != nil {
			continue
		}
		ran++
		t.Run(fmt.Sprintf("seed %d %s", seed, l.Name()), func(t *testing.T) { agrees(t, in, l.Name(), oracle(t, in)) })
	}
	if ran < trials {
		t.Errorf("only %d legal layouts in %d draws", ran, 50*trials)
	}
}

func TestTwoRunsAreEqualToTheBitOnAnyNumberOfThreads(t *testing.T) {
	in := NewInput(Tiny(), 4, 16, 1, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, name := range []string{"single", "fsdp2-megatron2", "ulysses4"} {
		for _, dtype := range []tensor.DType{tensor.F32, tensor.F64} {
			var first *Result
			for _, procs := range []int{2, 2, 1, 3} {
				runtime.GOMAXPROCS(procs)
				r, err := Gradient(in, must(t, name), Options{On: train.Machine{Type: dtype, Threads: procs}})
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = r
					continue
				}
				if r.Loss != first.Loss || r.Norm != first.Norm || !maps.EqualFunc(r.Grads, first.Grads, slices.Equal) {
					t.Errorf("%s %s: %d threads give other bits", name, dtype, procs)
				}
			}
		}
	}
}

func TestAStepLeavesNoMemoryBehind(t *testing.T) {
	leavesNothing(t, NewInput(Tiny(), 4, 16, 1, 1))
	for _, c := range families() {
		leavesNothing(t, NewInput(c, 4, 16, 1, 1))
	}
}

func leavesNothing(t *testing.T, in Input) {
	for _, name := range []string{"single", "dp2-fsdp2-megatron2", "fsdp2-ulysses2", "tp8"} {
		s, err := parallel.New(must(t, name), parallel.Heads{G: in.Config.KV, R: in.Config.Rep()})
		if err != nil {
			t.Fatal(err)
		}
		for _, dry := range []bool{false, true} {
			err = train.Ranks(s.Mesh, train.Machine{Type: tensor.F32, Dry: dry}, func(r *train.Rank) error {
				m, err := model.New(in.Config, s, r.Dev, r.Grp)
				if err != nil {
					return err
				}
				if err := m.Shards.Load(in.Weights); err != nil {
					return err
				}
				held, peak := r.Dev.Memory().Held, 0
				for step := range 3 {
					gradient(m, r, in, 1)
					now := r.Dev.Memory()
					if now.Held != held {
						return fmt.Errorf("step %d leaves %d bytes behind", step, now.Held-held)
					}
					if step > 0 && now.Peak != peak {
						return fmt.Errorf("step %d peaks at %d, the one before at %d", step, now.Peak, peak)
					}
					peak = now.Peak
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s, dry %v: %v", name, dry, err)
			}
		}
	}
}

// What is rebuilt in Backward has the bits of what was not kept; less is kept from one policy to the next.
func TestRecomputationChangesMemoryAndNoBit(t *testing.T) {
	of := families()
	of["tiny"] = Tiny()
	for family, c := range of {
		c.Layers = 4
		recomputes(t, family, NewInput(c, 4, 16, 1, 1))
	}
}

func recomputes(t *testing.T, family string, in Input) {
	for _, scheme := range []string{"single", "fsdp2-megatron2", "ulysses4", "tp2"} {
		name := family + " " + scheme
		var first *Result
		kept := math.MaxInt
		for _, p := range []model.Policy{{Mode: model.All}, {Mode: model.Selective}, {Mode: model.Full, Every: 2}, {Mode: model.Full}} {
			r, err := Gradient(in, must(t, scheme), Options{On: train.Machine{Type: tensor.F32}, Schedule: Schedule{Recompute: p}})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = r
			}
			if r.Loss != first.Loss || r.Norm != first.Norm || !maps.EqualFunc(r.Grads, first.Grads, slices.Equal) {
				t.Errorf("%s: %+v gives other bits", name, p)
			}
			if n := r.Ranks[0].Memory.Max[compute.Saved]; n >= kept {
				t.Errorf("%s: %+v keeps %d bytes, the policy before %d", name, p, n, kept)
			} else {
				kept = n
			}
			d, err := Gradient(in, must(t, scheme), Options{On: train.Machine{Type: tensor.F32, Dry: true}, Schedule: Schedule{Recompute: p}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Ranks {
				if !reflect.DeepEqual(d.Ranks[i].Calls, r.Ranks[i].Calls) || !reflect.DeepEqual(d.Ranks[i].Memory, r.Ranks[i].Memory) {
					t.Errorf("%s: %+v: rank %d: the dry run has other calls or memory", name, p, i)
				}
			}
		}
	}
}
