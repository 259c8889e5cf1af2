package parallel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/comm"
	commdry "heddle/comm/dry"
	"heddle/compute"
	"heddle/compute/dry"
	"heddle/mesh"
	"heddle/model"
	"heddle/parallel"
	"heddle/tensor"
)

var layouts = []string{"single", "dp2", "fsdp2", "fsdp3", "tp4", "megatron2", "ulysses4", "fsdp3-megatron4", "dp2-fsdp2-ulysses2-tp2"}

// odd is a model whose slices end inside parameters.
var odd = model.Config{Layers: 2, Hidden: 7, Heads: 8, KV: 2, Head: 2, MLP: 8, Vocab: 13, Theta: 1e4, Eps: 1e-6, Std: 1}

func scheme(t *testing.T, name string) *parallel.Scheme {
	t.Helper()
	l, err := parallel.ParseLayout(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parallel.New(l, parallel.Heads{G: odd.KV, R: odd.Rep()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shards(t *testing.T, s *parallel.Scheme, rank int) *parallel.Shards {
	t.Helper()
	dev := compute.New(s.Mesh, rank, tensor.F32, dry.Leaf{})
	sh, err := parallel.NewShards(dev, comm.New(dev, commdry.Leaf{}), s, odd.Table(s))
	if err != nil {
		t.Fatal(err)
	}
	return sh
}

func TestPiecesCoverEveryElementOnceForEveryCopy(t *testing.T) {
	for _, name := range layouts {
		s := scheme(t, name)
		table := odd.Table(s)
		seen := map[string][]int{}
		for rank := range s.Mesh.Size() {
			sh := shards(t, s, rank)
			used := map[int]int{} // of each unit's slice
			for _, p := range sh.Pieces() {
				if n := p.Hi - p.Lo; n <= 0 || p.Weight.Elems() != n || p.Grad.Elems() != n || p.Offset+n > sh.Units[p.Unit].Slice || p.Offset < used[p.Unit] {
					t.Fatalf("%s: piece %+v", name, p)
				}
				used[p.Unit] = p.Offset + p.Hi - p.Lo
				all := 1
				for _, d := range p.Row.Dims {
					all *= d
				}
				if seen[p.Row.Name] == nil {
					seen[p.Row.Name] = make([]int, all)
				}
				next := 0
				sh.Global(p, func(i, g int) {
					if i != next {
						t.Fatalf("%s: %s: piece element %d, want %d", name, p.Row.Name, i, next)
					}
					next++
					seen[p.Row.Name][g]++
				})
				if next != p.Hi-p.Lo {
					t.Fatalf("%s: %s: %d elements of %d", name, p.Row.Name, next, p.Hi-p.Lo)
				}
			}
		}
		for i := range table {
			r := &table[i]
			copies := 1 // ranks that differ only on axes that neither cut the row nor are fsdp
			for a, axis := range s.Mesh.Axes() {
				if s.FSDP&(1<<a) == 0 && !r.Use[a].Sharded() {
					copies *= axis.Size
				}
			}
			for g, n := range seen[r.Name] {
				if n != copies {
					t.Fatalf("%s: %s element %d rests on %d ranks, want %d", name, r.Name, g, n, copies)
				}
			}
			if seen[r.Name] == nil {
				t.Errorf("%s: %s rests nowhere", name, r.Name)
			}
		}
	}
}

// Of the ranks that hold copies of an element, one counts it: the norm sums it once, a checkpoint has it once. Of two ranks with the
// same pieces both have something to do.
func TestOneOfTheCopiesCounts(t *testing.T) {
	for _, name := range layouts {
		s := scheme(t, name)
		counted, ranks := map[string][]int{}, map[int]bool{}
		for rank := range s.Mesh.Size() {
			sh := shards(t, s, rank)
			for i, p := range sh.Pieces() {
				if counted[p.Row.Name] == nil {
					n := 1
					for _, d := range p.Row.Dims {
						n *= d
					}
					counted[p.Row.Name] = make([]int, n)
				}
				if !sh.Counts(i, &p) {
					continue
				}
				ranks[rank] = true
				sh.Global(p, func(_, g int) { counted[p.Row.Name][g]++ })
			}
		}
		for row, n := range counted {
			for g, times := range n {
				if times != 1 {
					t.Fatalf("%s: element %d of %s is counted %d times", name, g, row, times)
				}
			}
		}
		if len(ranks) != s.Mesh.Size() {
			t.Errorf("%s: only ranks %v count anything", name, ranks)
		}
	}
}

func TestGradientsAreUsedInOrder(t *testing.T) {
	sh := shards(t, scheme(t, "fsdp2"), 0)
	for what, f := range map[string]func(){
		"norm before settle":            func() { sh.ZeroGrads(); sh.SquaredNorm() },
		"gradients opened when settled": func() { sh.ZeroGrads(); sh.Settle(); sh.OpenGrads(0) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(*compute.Fault); !ok {
					t.Errorf("%s is accepted", what)
				}
			}()
			f()
		}()
	}
}

func TestLayoutsRefusedNameTheNearestLegalSize(t *testing.T) {
	heads := parallel.Heads{G: 4, R: 3}
	for want, l := range map[string]parallel.Layout{
		"tp may be 4 or 12":                            {TP: 8},
		"tp may be 12":                                 {TP: 13},
		"cp may be 2 or 4":                             {CP: 3},
		"pp is 2: pipelines are not built yet":         {PP: 2},
		"sp megatron has no effect with tp 1":          {SP: "megatron"},
		"sp ulysses has no effect with cp 1":           {SP: "ulysses", TP: 2},
		`sp is "ring", want none, megatron or ulysses`: {SP: "ring", CP: 2},
		"dp is -1, want 1 or more":                     {DP: -1},
	} {
		if _, err := parallel.New(l, heads); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
	s, err := parallel.New(parallel.Layout{DP: 2, FSDP: 3, CP: 2, TP: 4, SP: "megatron"}, parallel.Heads{G: 8, R: 1})
	if err != nil {
		t.Fatal(err)
	}
	for want, x := range map[string][3]int{
		"batch of 10 sequences is not divisible by dp 2 × fsdp 3; hint: use 6 or 12":       {10, 64, 8},
		"sequence of 7 tokens is not divisible by cp 2; hint: use 6 or 8":                  {12, 7, 8},
		"sequence of 12 tokens is not divisible by tp 8 under megatron; hint: use 8 or 16": {12, 12, 8},
		"MLP width 2 is not divisible by tp 4; hint: use 4":                                {12, 64, 2},
	} {
		if err := s.Fits(x[0], x[1], x[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", x, err, want)
		}
	}
	if err := s.Fits(12, 64, 8); err != nil {
		t.Error(err)
	}
}

// as is the only way to change a place without a rule. Each use is argued for here; a new one needs an argument too.
//
//	settle.go  reduceWhole ×2: the flat gradients hold every parameter's parts side by side, at places their rows give; the
//	           all-reduce needs one place for all, which common() has found, and the buffer gets its own back
//	shards.go  views: a flat buffer's slice becomes a parameter at its row's place of use
func TestUncheckedCastsAreCounted(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(src), " as(") + strings.Count(string(src), "(as(")
		if f == "scheme.go" {
			n -= strings.Count(string(src), "func as(")
		}
		if n > 0 {
			got += fmt.Sprintf("%s %d\n", f, n)
		}
	}
	if want := "settle.go 2\nshards.go 1\n"; got != want {
		t.Errorf("uses of as:\n%swant:\n%s", got, want)
	}
}

func TestParametersAreCutInTheirOwnLettersAndNeverPartial(t *testing.T) {
	for _, r := range odd.Table(scheme(t, "dp2-fsdp2-ulysses2-tp2")) {
		for a, p := range r.Use { // a parameter is never partial, and cut in its own letters only
			if p == mesh.P || p == mesh.M || p.Sharded() && strings.IndexByte(r.Letters, p.Letter()) < 0 {
				t.Errorf("%s is used at %s on axis %d", r.Name, p, a)
			}
		}
	}
}
