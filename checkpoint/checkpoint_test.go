package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/atomicfile"
)

// model is a small set of tensors with awkward shapes. Element i of tensor k at step s is a number that no other has.
var model = []Tensor{
	{"adam.m/w", safetensors.F64, []int{7, 6}}, {"weight/b", safetensors.F32, []int{5}}, {"weight/cube", safetensors.F32, []int{3, 4, 6}},
	{"weight/scale", safetensors.F32, nil}, {"weight/w", safetensors.F32, []int{7, 6}},
}

func element(tensor, step, i int) float64 { return float64(step*100_000 + tensor*1000 + i) }

// layout cuts the model over world ranks in one of three ways and pads as engines do; parts[rank] in no particular order.
func layout(kind string, world int) [][]Part {
	parts := make([][]Part, world)
	for _, t := range model {
		box := Whole(t.Shape)
		switch {
		case kind == "columns" && len(t.Shape) > 1: // tensor parallel: the last dim, padded to a multiple
			last := len(t.Shape) - 1
			width := (t.Shape[last] + world - 1) / world
			for r := range world {
				b := Whole(t.Shape)
				b.Lo[last], b.Hi[last] = r*width, (r+1)*width
				parts[r] = append(parts[r], Part{t, b, 0, b.Len()})
			}
		case kind == "flat": // sharded: rows padded, then equal flat slices that break rows
			if len(t.Shape) > 0 {
				box.Hi[0] += 2
			}
			n := (box.Len() + world - 1) / world
			for r := range world {
				parts[r] = append(parts[r], Part{t, box, min(r*n, box.Len()), min((r+1)*n, box.Len())})
			}
		default: // the first rank holds it all
			parts[0] = append(parts[0], Part{t, box, 0, box.Len()})
		}
	}
	return parts
}

func meta(step, world int) Meta {
	return Meta{Run: "r1", Step: step, World: world, Layout: "test", Identity: map[string]string{"data": "d1", "seed": "1"}, State: map[string]string{"cursor": fmt.Sprint(step)}}
}

// values gives a part's elements; padding is a number that must never be read back.
func values(step int) func(Part) ([]float64, error) {
	return func(p Part) ([]float64, error) {
		k := slices.IndexFunc(model, func(t Tensor) bool { return t.Name == p.Name })
		var out []float64
		for _, at := range elements(p.Box)[p.From:p.To] {
			v := element(k, step, Whole(p.Shape).index(at))
			for d := range at {
				if at[d] >= p.Shape[d] {
					v = -1
				}
			}
			out = append(out, v)
		}
		return out, nil
	}
}

// save writes a checkpoint of the model.
func save(s Store, kind string, m Meta) error {
	dir, err := s.Begin(m.Step)
	if err != nil {
		return err
	}
	var shards []Shard
	for rank, parts := range layout(kind, m.World) {
		shard, err := s.WriteShard(dir, m, rank, parts, values(m.Step))
		if err != nil {
			return errors.Join(err, s.Abort(dir))
		}
		shards = append(shards, shard)
	}
	_, err = s.Commit(dir, m, shards)
	return err
}

// holds checks every value of an open checkpoint, read under a layout.
func holds(c *Checkpoint, kind string, world, step int) error {
	if c.Step != step || c.State["cursor"] != fmt.Sprint(step) {
		return fmt.Errorf("step %d, state %v, want step %d", c.Step, c.State, step)
	}
	for _, parts := range layout(kind, world) {
		for _, p := range parts {
			want, _ := values(step)(p)
			got := make([]float64, len(want))
			if err := c.Read(p.Name, p.Box, p.From, p.To, got); err != nil {
				return err
			}
			for i := range want {
				if max(want[i], 0) != got[i] { // -1, padding, reads as 0
					return fmt.Errorf("%s: element %d is %g, want %g", p.Name, i, got[i], want[i])
				}
			}
		}
	}
	return nil
}

// What one layout wrote, every other reads, value for value; padding comes back as zeros and is in no file.
func TestEveryLayoutReadsEveryOther(t *testing.T) {
	kinds := []string{"one", "columns", "flat"}
	for _, wrote := range kinds {
		for _, world := range []int{1, 2, 3, 8} {
			root := t.TempDir()
			if err := save(Store{FS: atomicfile.OS{}, Root: root}, wrote, meta(4, world)); err != nil {
				t.Fatal(err)
			}
			c, damaged, err := Latest(root)
			if err != nil || damaged != nil {
				t.Fatal(err, damaged)
			}
			for _, reads := range kinds {
				for _, readers := range []int{1, 2, 5} {
					if err := holds(c, reads, readers, 4); err != nil {
						t.Errorf("%s %d read as %s %d: %v", wrote, world, reads, readers, err)
					}
				}
			}
			bytes := 0
			for _, f := range c.files {
				for _, i := range f.Tensors() {
					bytes += int(i.End - i.Begin)
				}
			}
			if want := 42*8 + (5+72+1+42)*4; bytes != want {
				t.Errorf("%s %d: files hold %d bytes of data, want %d", wrote, world, bytes, want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestNewestCheckpointsStay(t *testing.T) {
	root := t.TempDir()
	s := Store{FS: atomicfile.OS{}, Root: root, Keep: 2}
	for step := 1; step <= 4; step++ {
		if err := save(s, "flat", meta(step, 2)); err != nil {
			t.Fatal(err)
		}
	}
	names, _ := atomicfile.OS{}.List(root)
	if fmt.Sprint(names) != "[step-00000003 step-00000004]" {
		t.Errorf("left %v", names)
	}
	if err := save(s, "flat", meta(4, 2)); err == nil || !strings.Contains(err.Error(), "already there") {
		t.Errorf("second checkpoint of a step: got %v", err)
	}
	os.Mkdir(filepath.Join(root, ".step-00000009.tmp-01234567"), 0o755)
	os.Mkdir(filepath.Join(root, "step-00000007"), 0o755)
	c, damaged, err := Latest(root)
	if err != nil || c.Step != 4 || len(damaged) != 1 || !strings.Contains(damaged[0].Error(), "step-00000007 is not complete") {
		t.Fatalf("got %v, damaged %v, %v", c, damaged, err)
	}
	c.Close()
	if _, err := Open(filepath.Join(root, "step-00000005")); err == nil || !strings.Contains(err.Error(), "there is no ") {
		t.Errorf("a step that was never saved: got %v", err)
	}
	if err := s.Clean(3); err != nil {
		t.Fatal(err)
	}
	if names, _ := (atomicfile.OS{}).List(root); fmt.Sprint(names) != "[step-00000003]" {
		t.Errorf("left %v", names)
	}
	if err := save(s, "flat", meta(4, 2)); err != nil {
		t.Errorf("writing step 4 anew: %v", err)
	}
	if _, _, err := Latest(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folder: got %v", err)
	}
}

// Shards that do not make a whole are not committed, and nothing is left behind.
func TestShardsMustMakeAWhole(t *testing.T) {
	w := Tensor{"w", safetensors.F32, []int{4, 4}}
	part := func(lo, hi int) []Part { return []Part{{w, Box{[]int{lo, 0}, []int{hi, 4}}, 0, 4 * (hi - lo)}} }
	other := []Part{{Tensor{"w", safetensors.F64, []int{4, 4}}, Box{[]int{2, 0}, []int{4, 4}}, 0, 8}}
	cases := []struct {
		name  string
		parts [][]Part
		says  string
	}{
		{"whole", [][]Part{part(0, 2), part(2, 4)}, ""},
		{"hole", [][]Part{part(0, 1), part(2, 4)}, "hold 12 of 16 elements"},
		{"overlap", [][]Part{part(0, 3), part(2, 4)}, "ranks 0 and 1 both hold"},
		{"replica", [][]Part{part(0, 4), part(0, 4)}, "only one replica writes"},
		{"overlap that adds up", [][]Part{part(0, 2), part(0, 2)}, "both hold"},
		{"other type", [][]Part{part(0, 2), other}, "w is F64[4 4] on rank 1 and F32[4 4]"},
		{"rank missing", [][]Part{part(0, 4)}, "1 shards for 2 ranks"},
		{"beyond the box", [][]Part{{{w, Whole(w.Shape), 0, 17}}, nil}, "range 0 to 17"},
		{"box of another rank", [][]Part{{{w, Whole([]int{4}), 0, 4}}, nil}, "has not 2 dimensions"},
		{"negative", [][]Part{{{w, Box{[]int{-1, 0}, []int{4, 4}}, 0, 4}}, nil}, "is no box"},
		{"no tensor", [][]Part{{{Tensor{"w", "F4", []int{4}}, Whole([]int{4}), 0, 4}}, nil}, "is no tensor"},
	}
	for _, c := range cases {
		root := t.TempDir()
		s := Store{FS: atomicfile.OS{}, Root: root}
		m := meta(1, 2)
		dir, err := s.Begin(1)
		var shards []Shard
		for rank, parts := range c.parts {
			var shard Shard
			if err == nil {
				shard, err = s.WriteShard(dir, m, rank, parts, func(p Part) ([]float64, error) { return make([]float64, p.To-p.From), nil })
			}
			shards = append(shards, shard)
		}
		if err == nil {
			_, err = s.Commit(dir, m, shards)
		} else {
			s.Abort(dir)
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
		if names, _ := (atomicfile.OS{}).List(root); c.says != "" && len(names) > 0 {
			t.Errorf("%s: left %v", c.name, names)
		}
	}
}

// A shard goes between processes as text; two shards given twice or by another rank are noticed.
func TestShardsTravelAsText(t *testing.T) {
	s := Store{FS: atomicfile.OS{}, Root: t.TempDir()}
	dir, err := s.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	var shards []Shard
	for rank, parts := range layout("flat", 3) {
		shard, err := s.WriteShard(dir, meta(1, 3), rank, parts, values(1))
		if err != nil {
			t.Fatal(err)
		}
		text, err := shard.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeShard(text)
		if err != nil || fmt.Sprint(back) != fmt.Sprint(shard) {
			t.Fatalf("got %v, %v\nwant %v", back, err, shard)
		}
		for n := range text {
			if _, err := DecodeShard(text[:n]); err == nil {
				t.Fatalf("cut after %d bytes: accepted", n)
			}
		}
		shards = append(shards, back)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(3, func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
	if _, err := assemble(meta(1, 3), []Shard{shards[0], shards[1], shards[1]}); err == nil {
		t.Error("a shard given twice was accepted")
	}
	if _, err := s.Commit(dir, meta(1, 3), shards); err != nil {
		t.Fatal(err)
	}
	c, _, err := Latest(s.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := holds(c, "one", 1, 1); err != nil {
		t.Error(err)
	}
	for _, p := range []struct {
		name     string
		box      Box
		from, to int
		dst      int
	}{{"none", Whole([]int{1}), 0, 1, 1}, {"weight/b", Whole([]int{5, 1}), 0, 1, 1}, {"weight/b", Whole([]int{5}), 0, 6, 6}, {"weight/b", Whole([]int{5}), 2, 1, 0}, {"weight/b", Whole([]int{5}), 0, 5, 4}} {
		if err := c.Read(p.name, p.box, p.from, p.to, make([]float64, p.dst)); err == nil {
			t.Errorf("Read(%v) is no error", p)
		}
	}
}
