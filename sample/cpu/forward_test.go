package cpu_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"heddle/checkpoint/pretrained"
	"heddle/compute/cpu/blas"
	"heddle/internal/golden"
	"heddle/model"
	"heddle/model/hf"
	"heddle/num"
	"heddle/parallel"
	"heddle/param"
	"heddle/sample"
	"heddle/sample/cpu"
	"heddle/tensor"
	"heddle/train"
)

// values are random weights of size 1/√in, a stream for each parameter; norms are around 1.
func values(p hf.Param) ([]float32, error) {
	n, stream := 1, uint64(0)
	for _, d := range p.Shape {
		n *= d
	}
	for _, c := range []byte(p.Ours()) {
		stream = stream*131 + uint64(c)
	}
	v := make([]float32, n)
	bias := strings.HasSuffix(p.Ours(), "bias")
	for i := range v {
		if x := num.Normal(7, stream, uint64(i)); bias {
			v[i] = float32(0.2 * x)
		} else if len(p.Shape) == 1 {
			v[i] = float32(1 + 0.2*x)
		} else {
			v[i] = float32(x / math.Sqrt(float64(p.Shape[1])))
		}
	}
	return v, nil
}

// source is values for the training engine.
func source(c hf.Config) param.Source {
	params := map[string]hf.Param{}
	for _, p := range c.Params() {
		params[p.Ours()] = p
	}
	return func(r *param.Row, b param.Box, dst []float64) error {
		p, ok := params[r.Name]
		if !ok {
			return fmt.Errorf("no parameter %s", r.Name)
		}
		v, _ := values(p)
		i := 0
		param.Each(r.Dims, b, func(global int) {
			dst[i] = float64(v[global])
			i++
		})
		return nil
	}
}

// trained are the logits [S, V] of the training engine on one rank.
func trained(t *testing.T, c hf.Config, src param.Source, ids []int32) (out []float64) {
	t.Helper()
	err := training(t, c, src, parallel.Layout{}, func(r *train.Rank, m *model.Model) error {
		out = r.Dev.Download(m.Logits(m.NewBatch(1, len(ids), ids, make([]int32, len(ids)), make([]float32, len(ids)))))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// training runs body on every rank of a model in training.
func training(t *testing.T, c hf.Config, src param.Source, l parallel.Layout, body func(*train.Rank, *model.Model) error) error {
	t.Helper()
	cfg, err := model.FromHF(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parallel.New(l, parallel.Heads{G: cfg.KV, R: cfg.Rep()})
	if err != nil {
		t.Fatal(err)
	}
	return train.Ranks(s.Mesh, train.Machine{Type: tensor.F32, Threads: 2}, func(r *train.Rank) error {
		m, err := model.New(cfg, s, r.Dev, r.Grp)
		if err != nil {
			return err
		}
		if err := m.Shards.Load(src); err != nil {
			return err
		}
		return body(r, m)
	})
}

// Weights taken from a model in training, alone or over fsdp, give the logits of those from a file.
func TestLoadModelTakesTheWeights(t *testing.T) {
	c := qwen3(2)
	c.Tied = true
	want := make([]float32, c.Vocab)
	logits := func(d *cpu.Decoder, to []float32) error {
		return d.Forward([]sample.Feed{{Seq: d.Fork(sample.None, 0), Tokens: text(9, 3), Logits: to}})
	}
	if err := logits(decoder(t, c, blas.BestSet(), 1), want); err != nil {
		t.Fatal(err)
	}
	for _, l := range []parallel.Layout{{}, {FSDP: 2}, {DP: 2}} {
		err := training(t, c, source(c), l, func(r *train.Rank, m *model.Model) error {
			pool := blas.NewPool(1)
			d, err := cpu.New(c, pool)
			if err != nil {
				return err
			}
			got := make([]float32, c.Vocab)
			if err := errors.Join(d.LoadModel(m, r.Dev, 3), logits(d, got)); err != nil {
				return err
			}
			if !slices.Equal(got, want) || d.Version() != 3 {
				return fmt.Errorf("rank %d: other logits", r.Index)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
	err := training(t, c, source(c), parallel.Layout{TP: 3}, func(r *train.Rank, m *model.Model) error {
		d, err := cpu.New(c, blas.NewPool(1))
		if err != nil {
			return err
		}
		if err := d.LoadModel(m, r.Dev, 3); err == nil || !strings.Contains(err.Error(), "without tp") {
			return fmt.Errorf("error %v, want one about tp", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func qwen3(layers int) hf.Config {
	c := model.Config{Family: hf.Qwen3, Layers: layers, Hidden: 72, Heads: 6, KV: 3, Head: 20, MLP: 90, Vocab: 101, Theta: 1e4, Eps: 1e-6, Std: 0.02}
	return c.ToHF(300)
}

// families are models of every kind, small, with odd sizes, and one whose products have several K blocks.
func families() map[string]hf.Config {
	tied, wide, llama, biased, qwen2 := qwen3(2), qwen3(2), qwen3(2), qwen3(2), qwen3(2)
	tied.Tied = true
	wide.Hidden, wide.MLP = 560, 300
	llama.Family, llama.QKNorm = hf.Llama, false
	llama.Rope.Llama3 = &hf.Llama3{Factor: 8, Low: 1, High: 4, OriginalPositions: 64}
	biased.Family, biased.QKNorm, biased.QKVBias, biased.OBias, biased.MLPBias = hf.Llama, false, true, true, true
	qwen2.Family, qwen2.QKNorm, qwen2.QKVBias = hf.Qwen2, false, true
	gpt2 := model.Config{Family: hf.GPT2, Layers: 2, Hidden: 120, Heads: 6, KV: 6, Head: 20, MLP: 90, Vocab: 101, Positions: 300, Eps: 1e-5, Tied: true, Std: 0.02}
	return map[string]hf.Config{"qwen3": qwen3(3), "tied": tied, "wide": wide, "llama": llama, "biased": biased, "qwen2": qwen2, "gpt2": gpt2.ToHF(300)}
}

func decoder(t *testing.T, c hf.Config, set blas.Set, threads int) *cpu.Decoder {
	t.Helper()
	pool := blas.NewPoolFor(set, threads)
	t.Cleanup(pool.Close)
	d, err := cpu.New(c, pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Load(values, 1); err != nil {
		t.Fatal(err)
	}
	return d
}

func text(n int, seed uint64) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(num.Philox(seed, 0, uint64(i))[0] % 101)
	}
	return ids
}

// Logits are bit-equal to training's: token by token, in pieces that end inside and on pages, beside other sequences, and in a
// fork that shares pages.
func TestLogitsAreTrainings(t *testing.T) {
	for name, c := range families() {
		t.Run(name, func(t *testing.T) {
			ids, other := text(150, 1), text(150, 2)
			want := trained(t, c, source(c), ids)
			for _, pieces := range [][]int{{1}, {150}, {63, 1, 1, 62, 7}, {70, 300}} {
				d := decoder(t, c, blas.BestSet(), 2)
				h, neighbour := d.Fork(sample.None, 0), d.Fork(sample.None, 0)
				for at, turn := 0, 0; at < len(ids); turn++ {
					n := min(pieces[min(turn, len(pieces)-1)], len(ids)-at)
					logits := make([]float32, c.Vocab)
					feeds := []sample.Feed{{Seq: neighbour, Tokens: other[at : at+n]}, {Seq: h, Tokens: ids[at : at+n], Logits: logits}}
					if turn%3 == 2 { // go on in a fork; what the old one gets from here must not reach it
						fork := d.Fork(h, at)
						feeds[0].Seq, feeds[1].Seq, neighbour = h, fork, h
						h = fork
					}
					if err := d.Forward(feeds); err != nil {
						t.Fatal(err)
					}
					at += n
					same(t, fmt.Sprintf("pieces %v, position %d", pieces, at-1), logits, want[(at-1)*c.Vocab:at*c.Vocab])
				}
			}
		})
	}
}

func same(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	for i := range got {
		if float64(got[i]) != want[i] {
			t.Fatalf("%s: logit %d is %g, training's %g", what, i, got[i], want[i])
		}
	}
}

// Every instruction set and number of threads gives rows that do not depend on the batch.
func TestRowsDoNotDependOnTheBatch(t *testing.T) {
	c := qwen3(2)
	for _, set := range []blas.Set{blas.Portable, blas.AVX2, blas.AVX512} {
		if !set.Runs() {
			t.Logf("skipped: this machine or build has no %v", set)
			continue
		}
		var first [][]float32
		for _, threads := range []int{1, 3} {
			d := decoder(t, c, set, threads)
			for _, batch := range []int{1, 5} {
				var feeds []sample.Feed
				for b := range batch {
					feeds = append(feeds, sample.Feed{Seq: d.Fork(sample.None, 0), Tokens: text(70, 1)[:70-b], Logits: make([]float32, c.Vocab), Hidden: make([]float32, c.Hidden)})
				}
				for range 2 {
					if err := d.Forward(feeds); err != nil {
						t.Fatal(err)
					}
					for i := range feeds {
						feeds[i].Tokens = []int32{9}
					}
				}
				if first == nil {
					first = [][]float32{feeds[0].Logits, feeds[0].Hidden}
					continue
				}
				for i, v := range [][]float32{feeds[0].Logits, feeds[0].Hidden} {
					for j := range v {
						if v[j] != first[i][j] {
							t.Fatalf("%v, %d threads, batch %d: element %d is %g, alone %g", set, threads, batch, j, v[j], first[i][j])
						}
					}
				}
			}
		}
	}
}

// Logits are the head's products with the hidden state. A sum of H products of numbers up to |h|·|w| in float32 is off by at most
// H·2⁻²⁴·Σ|h·w|.
func TestHiddenIsWhatTheHeadReads(t *testing.T) {
	for name, c := range families() {
		d := decoder(t, c, blas.BestSet(), 1)
		logits, hidden := make([]float32, c.Vocab), make([]float32, c.Hidden)
		if err := d.Forward([]sample.Feed{{Seq: d.Fork(sample.None, 0), Tokens: text(5, 2)}, {Seq: d.Fork(sample.None, 0), Tokens: text(9, 1), Logits: logits, Hidden: hidden}}); err != nil {
			t.Fatal(err)
		}
		role := hf.Head
		if c.Tied {
			role = hf.Embed
		}
		w, _ := values(hf.Param{Role: role, Layer: -1, Expert: -1, Shape: []int{c.Vocab, c.Hidden}})
		for v := range c.Vocab {
			sum, size := 0.0, 0.0
			for i, h := range hidden {
				x := float64(h) * float64(w[v*c.Hidden+i])
				sum, size = sum+x, size+math.Abs(x)
			}
			if math.Abs(sum-float64(logits[v])) > float64(c.Hidden)*0x1p-24*size || size == 0 {
				t.Fatalf("%s: logit %d is %g, the hidden state gives %g", name, v, logits[v], sum)
			}
		}
	}
}

// The logits of a peer's model are the peer's, as near as parity's rule for float32 asks.
func TestPeersLogits(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			g := golden.Open(t, name)
			m, err := pretrained.Open(g.Dir)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			pool := blas.NewPool(1)
			d, err := cpu.New(m.Config, pool)
			if m.Config.Experts.Count > 0 {
				if err == nil {
					t.Fatal("a mixture of experts is not refused")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Load(m.Float32s, 1); err != nil {
				t.Fatal(err)
			}
			ids, want := golden.Int64s(t, g.Expected, "input_ids"), golden.Float64s(t, g.Expected, "logits")
			v := m.Config.Vocab
			top, worst := 0.0, 0.0
			logits := make([]float32, v)
			rows := len(want) / v
			h := sample.None
			for i := range rows {
				if i%(rows/2) == 0 { // two sequences
					h = d.Fork(sample.None, 0)
				}
				if err := d.Forward([]sample.Feed{{Seq: h, Tokens: []int32{int32(ids[i])}, Logits: logits}}); err != nil {
					t.Fatal(err)
				}
				for j, x := range logits {
					top, worst = max(top, math.Abs(want[i*v+j])), max(worst, math.Abs(float64(x)-want[i*v+j]))
				}
			}
			if worst > 1e-5*top { // parity's limit for float32
				t.Fatalf("logits are off by %.2g of the largest, want at most 1e-5", worst/top)
			}
		})
	}
}

// A decoder that keeps bf16 has the bits of one whose matrices were rounded before.
func TestBF16IsRoundedWeights(t *testing.T) {
	for name, c := range families() {
		pool := blas.NewPool(2)
		defer pool.Close()
		var logits [2][]float32
		var bytes [2]int
		for half := range logits {
			d, err := cpu.New(c, pool)
			if err != nil {
				t.Fatal(err)
			}
			d.BF16 = half == 1
			err = d.Load(func(p hf.Param) ([]float32, error) {
				v, err := values(p)
				// Learned positions are added, not multiplied, and stay float32.
				for i := range v {
					if len(p.Shape) == 2 && p.Role != hf.Position && half == 0 {
						v[i] = num.FromBF16(num.ToBF16(v[i]))
					}
				}
				return v, err
			}, 1)
			if err != nil {
				t.Fatal(err)
			}
			logits[half] = make([]float32, c.Vocab)
			if err := d.Forward([]sample.Feed{{Seq: d.Fork(sample.None, 0), Tokens: text(40, 1), Logits: logits[half]}}); err != nil {
				t.Fatal(err)
			}
			bytes[half] = d.WeightBytes()
		}
		if float64(bytes[1]) > 0.55*float64(bytes[0]) { // vectors stay as they are
			t.Errorf("%s: %d bytes of weights, as float32 %d", name, bytes[1], bytes[0])
		}
		if !slices.Equal(logits[0], logits[1]) {
			t.Errorf("%s: other logits", name)
		}
	}
}
