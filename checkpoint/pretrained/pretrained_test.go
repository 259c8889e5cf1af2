package pretrained

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/golden"
	"heddle/model/hf"
	"heddle/param"
)

// A folder read parameter by parameter and written again is the folder transformers wrote, byte for byte, gpt2's fused and transposed tensors included;
// the configuration reads the same.
func TestFolderReadAndWrittenIsTheSame(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			m, err := Open(golden.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			dir := t.TempDir()
			if err := Write(dir, m.Config, safetensors.F32, MaxShard, m.Float32s); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(m.Path, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Error("model.safetensors differs")
			}
			back, err := hf.Read(dir)
			m.Config.Ignored = nil
			if err != nil || !reflect.DeepEqual(back, m.Config) {
				t.Errorf("got %+v, %v", back, err)
			}
		})
	}
}

// Rows read alone are rows of the whole, for tensors that are stored as they are and for fused ones.
func TestRowsAreRowsOfTheWhole(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			m, err := Open(golden.Dir(t, name))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			for _, p := range m.Params {
				whole, err := m.Float32s(p)
				if err != nil {
					t.Fatal(err)
				}
				width := len(whole) / p.Shape[0]
				from, to := p.Shape[0]/3, p.Shape[0]-1
				rows := make([]float64, (to-from)*width)
				if err := m.ReadRows(p, rows, from, to); err != nil {
					t.Fatal(err)
				}
				for i, x := range rows {
					if float32(x) != whole[from*width+i] {
						t.Fatalf("%s: row %d differs", p.Ours(), from+i/width)
					}
				}
				if err := m.ReadRows(p, rows, from, p.Shape[0]+1); err == nil {
					t.Errorf("%s: a row beyond the last was read", p.Ours())
				}
				if q, err := m.Find(p.Ours()); err != nil || q.Name != p.Name || q.From != p.From {
					t.Errorf("Find(%s) is %+v, %v", p.Ours(), q, err)
				}
			}
			if _, err := m.Find("layers.99.attention.q"); err == nil {
				t.Error("a parameter that is not there was found")
			}
		})
	}
}

// BF16 and F16 exports hold the nearest values: half a unit of 8 or 11 bits.
func TestNarrowExportsAreNearest(t *testing.T) {
	m, err := Open(golden.Dir(t, "qwen3-gqa"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for dtype, unit := range map[safetensors.DType]float64{safetensors.BF16: 0x1p-8, safetensors.F16: 0x1p-11} {
		dir := t.TempDir()
		if err := Write(dir, m.Config, dtype, 20_000, m.Float32s); err != nil {
			t.Fatal(err)
		}
		n, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Params {
			a, _ := m.Float32s(p)
			b, err := n.Float32s(p)
			if err != nil {
				t.Fatal(err)
			}
			for i := range a {
				if math.Abs(float64(a[i]-b[i])) > unit*math.Abs(float64(a[i]))+0x1p-25 { // F16 below 2^-14 has steps of 2^-24
					t.Fatalf("%s %s: %g became %g", dtype, p.Ours(), a[i], b[i])
				}
			}
		}
		n.Close()
	}
	if err := Write(t.TempDir(), m.Config, safetensors.F64, MaxShard, m.Float32s); err == nil {
		t.Error("an F64 export was written")
	}
}

// A folder whose parts do not agree is refused, and says what to change.
func TestFoldersThatDisagreeAreRefused(t *testing.T) {
	m, err := Open(golden.Dir(t, "qwen3-gqa"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	edit := func(key string, value any) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, "config.json")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fields := map[string]any{}
			if err := json.Unmarshal(text, &fields); err != nil {
				return err
			}
			fields[key] = value
			text, err = json.Marshal(fields)
			if err != nil {
				return err
			}
			return os.WriteFile(path, text, 0o644)
		}
	}
	withHead := func(shift float32) func(dir string) error {
		return func(dir string) error { // a tied model whose file holds a head all the same
			var specs []safetensors.Spec
			for _, p := range m.Params {
				specs = append(specs, safetensors.Spec{Name: p.Name, DType: safetensors.F32, Shape: p.Stored})
			}
			specs = append(specs, safetensors.Spec{Name: "lm_head.weight", DType: safetensors.F32, Shape: m.Params[0].Stored})
			return safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), specs, nil, func(s safetensors.Spec, sink *safetensors.Sink) error {
				i := slices.IndexFunc(m.Params, func(p hf.Param) bool { return p.Name == s.Name })
				v, err := m.Float32s(m.Params[max(i, 0)])
				if err == nil && i < 0 {
					v[len(v)-1] += shift
				}
				if err != nil {
					return err
				}
				return sink.Float32s(v)
			})
		}
	}
	cases := []struct {
		name   string
		change func(dir string) error
		says   string
	}{
		{"copy of the tied head", withHead(0), ""},
		{"another head", withHead(1), "row 130 of lm_head.weight differs"},
		{"untied", edit("tie_word_embeddings", false), "missing lm_head.weight"},
		{"layers", edit("num_hidden_layers", 4), "missing model.layers.3"},
		{"heads", edit("num_attention_heads", 4), "q_proj.weight is [64 48]"},
		{"vocabulary", edit("vocab_size", 130), "[131 48]"},
		{"family", edit("model_type", "llama"), "q_norm"},
		{"no config.json", func(dir string) error { return os.Remove(filepath.Join(dir, "config.json")) }, "no such file"},
		{"no weights", func(dir string) error { return os.Remove(filepath.Join(dir, "model.safetensors")) }, "neither"},
	}
	for _, c := range cases {
		dir := t.TempDir()
		if err := Write(dir, m.Config, safetensors.F32, MaxShard, m.Float32s); err != nil {
			t.Fatal(err)
		}
		if err := c.change(dir); err != nil {
			t.Fatal(err)
		}
		n, err := Open(dir)
		if err == nil {
			n.Close()
		}
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
	}
}

// A GGUF model exported as a folder holds the same values, under the same configuration. Two of its layers show it.
func TestGGUFBecomesAFolder(t *testing.T) {
	m, err := Open(golden.SmolLM2(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	dir := t.TempDir()
	want := m.Config
	want.Layers = 2
	if err := Write(dir, want, safetensors.F32, MaxShard, m.Float32s); err != nil {
		t.Fatal(err)
	}
	n, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if !reflect.DeepEqual(want, n.Config) || m.Tokenizer() != "" || n.Tokenizer() != "" {
		t.Errorf("got %+v, want %+v", n.Config, want)
	}
	weights := 0
	for _, p := range m.Params {
		if p.Layer > 1 {
			continue
		}
		a, err := m.Float32s(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := n.Find(p.Ours())
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.Float32s(q)
		if err != nil || !slices.Equal(a, b) {
			t.Errorf("%s differs, %v", p.Ours(), err)
		}
		weights += len(a)
	}
	if want := 49152*576 + 576 + 2*(2*576+2*576*576+2*192*576+3*576*1536); weights != want {
		t.Errorf("compared %d weights, want %d", weights, want)
	}
}

// The boxes of a table that cuts q into [G, R, D, H], taken together, are the tensor; what cannot be is an error.
func TestSourceGivesBoxesOfTheTable(t *testing.T) {
	m, err := Open(golden.Dir(t, "qwen3-gqa"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	q, err := m.Find("layers.1.attention.q")
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.Float32s(q)
	if err != nil {
		t.Fatal(err)
	}
	row := &param.Row{Name: "layers.1.attention.q", Letters: "grdh", Dims: []int{4, 2, 8, 48}, Valid: 4}
	source := m.Source()
	for _, cut := range []int{0, 1, 2, 3} { // halves along every dim
		for half := range 2 {
			b := param.Box{Lo: []int{0, 0, 0, 0}, Hi: []int{4, 2, 8, 48}}
			b.Lo[cut], b.Hi[cut] = half*row.Dims[cut]/2, (half+1)*row.Dims[cut]/2
			got := make([]float64, b.Elems())
			if err := source(row, b, got); err != nil {
				t.Fatal(err)
			}
			i := 0
			param.Each(row.Dims, b, func(global int) {
				if got[i] != float64(want[global]) {
					t.Fatalf("dim %d half %d: element %d differs", cut, half, i)
				}
				i++
			})
		}
	}
	embed := &param.Row{Name: "embed", Letters: "vh", Dims: []int{132, 48}, Valid: 131} // padded
	for _, c := range []struct {
		name string
		row  *param.Row
		box  param.Box
		n    int
	}{
		{"padding", embed, param.Box{Lo: []int{66, 0}, Hi: []int{132, 48}}, 66 * 48},
		{"room", embed, param.Box{Lo: []int{0, 0}, Hi: []int{66, 48}}, 66},
		{"name", &param.Row{Name: "nothing", Letters: "h", Dims: []int{48}, Valid: 48}, param.Box{Lo: []int{0}, Hi: []int{48}}, 48},
		{"size", &param.Row{Name: "norm", Letters: "h", Dims: []int{47}, Valid: 47}, param.Box{Lo: []int{0}, Hi: []int{47}}, 47},
	} {
		if err := source(c.row, c.box, make([]float64, c.n)); err == nil {
			t.Errorf("wrong %s is no error", c.name)
		}
	}
	if err := source(embed, param.Box{Lo: []int{66, 0}, Hi: []int{131, 48}}, make([]float64, 65*48)); err != nil {
		t.Errorf("the unpadded rest: %v", err)
	}
}
