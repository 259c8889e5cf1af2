package train

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heddle/compute"
	"heddle/data"
	"heddle/model"
	"heddle/num"
	"heddle/parallel"
)

// odd is a model with three query heads to a key/value head, an odd width and a vocabulary that no layout divides.
func odd(l parallel.Layout) Config {
	c := Default()
	c.Model = model.Config{Layers: 2, Hidden: 9, Heads: 6, KV: 2, Head: 2, MLP: 18, Vocab: 263, Theta: 1e4, Eps: 1e-6, Std: 0.3}
	c.Parallel, c.Seq, c.Batch, c.Accumulate, c.Samples, c.DType = l, 8, 4, 1, 0, "f64"
	return c
}

var oddLayouts = []parallel.Layout{{}, {DP: 2, TP: 2}, {FSDP: 2, TP: 2, SP: "megatron"}, {FSDP: 2, CP: 2, SP: "ulysses"}, {DP: 2, FSDP: 2, TP: 2, SP: "megatron"}, {TP: 6}}

// batchOf draws ids and labels; masked tells which rows have no label at all.
func batchOf(c Config, seed uint64, masked func(row int) bool) *data.Batch {
	n := c.Batch * c.Seq
	b := &data.Batch{B: c.Batch, S: c.Seq, IDs: make([]int32, n), Labels: make([]int32, n), Mask: make([]float32, n)}
	for i := range n {
		b.IDs[i] = int32(num.Uniform(seed, 1, uint64(i)) * float64(c.Model.Vocab))
		b.Labels[i] = data.Ignore
		if !masked(i/c.Seq) && i%5 != 1 {
			b.Labels[i], b.Mask[i] = int32(num.Uniform(seed, 2, uint64(i))*float64(c.Model.Vocab)), 1
			b.Tokens++
		}
	}
	return b
}

// taken is what steps leave: losses and norms, weights, each rank's memory.
type taken struct {
	losses, norms []float64
	weights       map[string][]float32
	memory        []compute.Memory
}

// steps takes steps on a batch with the named parameters frozen.
func steps(t *testing.T, c Config, dry bool, b *data.Batch, frozen []string) (taken, error) {
	t.Helper()
	s, err := c.Check()
	if err != nil {
		t.Fatal(err)
	}
	out := taken{losses: make([]float64, 3), norms: make([]float64, 3), memory: make([]compute.Memory, s.Mesh.Size())}
	var whole Whole
	err = Ranks(s.Mesh, Machine{Type: c.dtype(), Dry: dry, Threads: 1}, func(r *Rank) error {
		tr, err := newTrainer(r, c, s)
		if err != nil {
			return err
		}
		for i := range tr.model.Shards.Table {
			row := &tr.model.Shards.Table[i]
			row.Train = !slices.ContainsFunc(frozen, func(name string) bool { return strings.HasSuffix(row.Name, name) })
		}
		for i := range out.losses {
			loss, norm, err := tr.step(b, c.Accumulate, 1e-2)
			if err != nil {
				return err
			}
			if r.Index == 0 {
				out.losses[i], out.norms[i] = loss, norm
			}
			if held := r.Dev.Memory().Held; i > 0 && held != out.memory[r.Index].Held {
				t.Errorf("rank %d holds %d bytes after step %d, %d before", r.Index, held, i, out.memory[r.Index].Held)
			}
			out.memory[r.Index] = r.Dev.Memory()
		}
		whole.Add(r, tr.model)
		return nil
	})
	out.weights = whole.Values
	return out, err
}

// near compares two runs' losses, norms and weights. Both are sums in float64 in another order, and AdamW divides by √v ≥ 1e-8 of gradients that are exact to
// about 1e-15 relative; weights are kept as float32 here, 6e-8 relative.
func near(a, b taken) bool {
	close := func(x, y, rel float64) bool { return math.Abs(x-y) <= rel*max(1e-3, math.Abs(x)) }
	for i := range a.losses {
		if !close(a.losses[i], b.losses[i], 1e-9) || !close(a.norms[i], b.norms[i], 1e-9) {
			return false
		}
	}
	for name, x := range a.weights {
		for i, y := range b.weights[name] {
			if !close(float64(x[i]), float64(y), 1e-6) {
				return false
			}
		}
	}
	return len(a.weights) == len(b.weights)
}

// Frozen parameters keep their bits, are no part of the norm, and change nothing for the others, under every layout; a dry run needs the same memory.
func TestFrozenParametersStayAndOthersGoOnAlike(t *testing.T) {
	for name, frozen := range map[string][]string{"none": nil, "some": {"attention.q", "attention.k_norm", "mlp.down", "embed"}, "all vectors": {"norm"}, "all but a vector": {"embed", "head", "q", "k", "v", "o", "gate", "up", "down", "_norm", "s.0.attention.norm"}} {
		t.Run(name, func(t *testing.T) {
			b := batchOf(odd(parallel.Layout{}), 3, func(row int) bool { return row == 1 })
			first, err := steps(t, odd(parallel.Layout{}), false, b, []string{""}) // all are frozen
			if err != nil {
				t.Fatal(err)
			}
			if first.norms[0] != 0 || first.losses[0] != first.losses[2] {
				t.Errorf("with nothing to train norms are %v, losses %v", first.norms, first.losses)
			}
			var one taken
			for _, l := range oddLayouts {
				got, err := steps(t, odd(l), false, b, frozen)
				if err != nil {
					t.Fatalf("%s: %v", l.Name(), err)
				}
				if one.weights == nil {
					one = got
				}
				if !near(one, got) {
					t.Errorf("%s: losses %v, norms %v; one rank has %v, %v, or weights differ", l.Name(), got.losses, got.norms, one.losses, one.norms)
				}
				for _, name := range slices.Sorted(maps.Keys(got.weights)) {
					stays := slices.ContainsFunc(frozen, func(f string) bool { return strings.HasSuffix(name, f) })
					if stays != slices.Equal(got.weights[name], first.weights[name]) {
						t.Errorf("%s: %s: frozen %v, unchanged %v", l.Name(), name, stays, !stays)
					}
				}
				dry, err := steps(t, odd(l), true, b, frozen)
				if err != nil || !reflect.DeepEqual(dry.memory, got.memory) {
					t.Errorf("%s: dry run: %v, memory %+v, want %+v", l.Name(), err, dry.memory, got.memory)
				}
			}
		})
	}
}

// Micro-batches are one batch cut: also where one of them, or all of a rank's rows, have no label. A batch without any is refused by name.
func TestMicroBatchesWithoutLabels(t *testing.T) {
	for _, l := range oddLayouts {
		c := odd(l)
		b := batchOf(c, 5, func(row int) bool { return row < c.Batch/2 })
		want, err := steps(t, c, false, b, nil)
		if err != nil {
			t.Fatalf("%s: %v", l.Name(), err)
		}
		if c.Accumulate = 2; l.DP*l.FSDP == 4 { // four rows for four ranks are one micro-batch
			c.Accumulate = 1
		}
		got, err := steps(t, c, false, b, nil)
		if err != nil || !near(want, got) {
			t.Errorf("%s: %v: losses %v, want %v", l.Name(), err, got.losses, want.losses)
		}
		_, err = steps(t, c, false, batchOf(c, 5, func(int) bool { return true }), nil)
		if err == nil || !strings.Contains(err.Error(), "no token of the batch has a label") {
			t.Errorf("%s: a batch without labels: %v", l.Name(), err)
		}
	}
}
