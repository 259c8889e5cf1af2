package gguf

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"slices"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/golden"
	"heddle/model/hf"
)

// testdata/blocks.gguf holds random blocks of every type; blocks.safetensors what the gguf package of Python makes of them. Each value takes at most one
// rounding on either side, so they are equal.
func TestEveryTypeIsDequantisedAsTheReferenceDoes(t *testing.T) {
	f, err := Open("testdata/blocks.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := safetensors.Open("testdata/blocks.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if len(f.Tensors()) != 8 {
		t.Errorf("got %d tensors, want 8", len(f.Tensors()))
	}
	for _, i := range f.Tensors() {
		x, err := f.Tensor(i.Name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		y, err := want.Tensor(i.Name)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := y.Float32s()
		if err != nil || !slices.Equal(i.Shape, y.Shape) {
			t.Fatal(err, i.Shape, y.Shape)
		}
		for k := range ref {
			if got[k] != ref[k] {
				t.Errorf("%s: element %d is %g, want %g", i.Name, k, got[k], ref[k])
				break
			}
		}
	}
}

func TestMetadataOfEveryKindIsRead(t *testing.T) {
	f, err := Open("testdata/blocks.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key, want := range map[string]int{"a.u8": 200, "a.u16": 60000, "a.u32": 4000000000, "a.u64": 1 << 62} {
		if got, err := f.Uint(key); err != nil || got != want {
			t.Errorf("%s: got %d, %v", key, got, err)
		}
	}
	for _, key := range []string{"a.i8", "a.i16", "a.i32", "a.i64", "a.f32", "a.bool", "a.text", "a.ints", "none"} {
		if got, err := f.Uint(key); err == nil {
			t.Errorf("Uint of %s: got %d", key, got)
		}
	}
	for key, want := range map[string]float64{"a.f32": 0.5, "a.f64": 0.1} {
		if got, err := f.Float(key); err != nil || got != want {
			t.Errorf("%s: got %g, %v", key, got, err)
		}
	}
	if got, err := f.Bool("a.bool"); err != nil || !got {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := f.Text("a.text"); err != nil || got != "naïve ☃" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := f.Strings("a.texts"); err != nil || !slices.Equal(got, []string{"", "x", "ÿ"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := f.Ints("a.ints"); err != nil || !slices.Equal(got, []int{1, -2, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := f.Floats("a.floats"); err != nil || !slices.Equal(got, []float64{0.5, -1.5}) {
		t.Errorf("got %v, %v", got, err)
	}
	for key, get := range map[string]func(string) error{
		"Text of a.u8": func(string) error { _, err := f.Text("a.u8"); return err }, "Text of a.texts": func(string) error { _, err := f.Text("a.texts"); return err },
		"Bool of a.u8": func(string) error { _, err := f.Bool("a.u8"); return err }, "Float of a.u8": func(string) error { _, err := f.Float("a.u8"); return err },
		"Float of a.text": func(string) error { _, err := f.Float("a.text"); return err }, "Strings of a.ints": func(string) error { _, err := f.Strings("a.ints"); return err },
		"Ints of a.floats": func(string) error { _, err := f.Ints("a.floats"); return err }, "Ints of a.texts": func(string) error { _, err := f.Ints("a.texts"); return err },
		"Floats of a.ints": func(string) error { _, err := f.Floats("a.ints"); return err }, "Floats of a.texts": func(string) error { _, err := f.Floats("a.texts"); return err },
	} {
		if get(key) == nil {
			t.Errorf("%s: no error", key)
		}
	}
}

// llama.cpp rotates neighbouring rows (2i, 2i+1) of a llama's q and k, transformers rows i and i + D/2, both by position · theta^(-2i/D). So the rotated
// head of the file must be the rotated head of ours, with its elements where each keeps them, for every position: checked by rotating in both ways.
func TestRowsAreWhereTransformersRotatesThem(t *testing.T) {
	const heads, d = 3, 8
	file := make([]float32, heads*d) // a q of width 1
	for i := range file {
		file[i] = float32(i*i%17) - 5
	}
	ours := halves(file, heads*d, d)
	rotate := func(a, b float32, pos, i int) (float32, float32) {
		sin, cos := math.Sincos(float64(pos) * math.Pow(10000, -2*float64(i)/d))
		return float32(float64(a)*cos - float64(b)*sin), float32(float64(b)*cos + float64(a)*sin)
	}
	for pos := range 5 {
		for h := range heads {
			for i := range d / 2 {
				a, b := rotate(file[h*d+2*i], file[h*d+2*i+1], pos, i)
				x, y := rotate(ours[h*d+i], ours[h*d+i+d/2], pos, i)
				if a != x || b != y {
					t.Fatalf("position %d, head %d, pair %d: (%g, %g), want (%g, %g)", pos, h, i, x, y, a, b)
				}
			}
		}
	}
}

// The published model: its configuration, every tensor's values (hash from testdata/make.py) and its tokenizer.
func TestSmolLM2IsReadWhole(t *testing.T) {
	m, err := OpenModel(golden.SmolLM2(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := hf.Config{Family: hf.Llama, Layers: 30, Hidden: 576, Heads: 9, KVHeads: 3, HeadDim: 64, MLP: 1536, Vocab: 49152, Positions: 8192, Eps: 1e-5, Activation: hf.SiLU,
		Rope: hf.Rope{Theta: 100000}, Tied: true, InitStd: 0.02, DType: "float32", BOS: 1, EOS: []int{2}}
	if !reflect.DeepEqual(m.Config, want) {
		t.Errorf("got  %+v\nwant %+v", m.Config, want)
	}
	names := make([]string, 0, 272)
	for _, i := range m.File.Tensors() {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	hash, buf := sha256.New(), []byte(nil)
	for _, n := range names {
		x, _ := m.File.Tensor(n)
		v, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		buf = buf[:0]
		for _, f := range v {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(f))
		}
		hash.Write(buf)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != "035b238cdb1c3a64e21315cad8d5d362e75ed6f6e847ca3508b006dff3ca3fd6" {
		t.Errorf("dequantised tensors have hash %s", got)
	}
	for _, p := range m.Config.Params() {
		if p.Layer < 1 {
			if v, err := m.Float32s(p); err != nil || len(v) == 0 {
				t.Errorf("%s: %d values, %v", p.Ours(), len(v), err)
			}
		}
	}
	tok, err := m.File.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	if tok.Model != "gpt2" || tok.Pre != "smollm" || len(tok.Tokens) != 49152 || len(tok.Merges) != 48900 || tok.Tokens[1] != "<|im_start|>" || tok.Types[1] != Control ||
		tok.BOS != 1 || tok.EOS != 2 || tok.Unknown != 0 || tok.Padding != 2 || tok.AddBOS || len(tok.ChatTemplate) < 100 {
		t.Errorf("tokenizer: %s %s, %d tokens, %d merges, %q %d", tok.Model, tok.Pre, len(tok.Tokens), len(tok.Merges), tok.Tokens[1], tok.Types[1])
	}
}
