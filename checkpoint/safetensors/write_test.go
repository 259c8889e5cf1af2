package safetensors_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/golden"
)

// specsOf lists the tensors of a file in an order that is not the file's.
func specsOf(f *safetensors.File) (specs []safetensors.Spec) {
	for _, i := range f.Tensors() {
		specs = append(specs, safetensors.Spec{Name: i.Name, DType: i.DType, Shape: i.Shape})
	}
	slices.Reverse(specs)
	return specs
}

// Values read as float64 (or int64) and written again give the reference writer's file, byte for byte: names, order, padding, values.
// The golden files hold float32, float64 and int64.
func TestRewrittenFileEqualsTheReferenceWriters(t *testing.T) {
	for _, name := range golden.Names() {
		for _, base := range []string{"model.safetensors", "expected.safetensors"} {
			t.Run(name+"/"+base, func(t *testing.T) {
				path := filepath.Join(golden.Dir(t, name), base)
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				f, err := safetensors.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				var got bytes.Buffer
				err = safetensors.Write(&got, specsOf(f), f.Metadata(), func(s safetensors.Spec, sink *safetensors.Sink) error {
					x, err := f.Tensor(s.Name)
					if err != nil {
						return err
					}
					if s.DType == safetensors.I64 {
						v, err := x.Int64s()
						return errors.Join(err, sink.Int64s(v))
					}
					v, err := x.Float64s()
					return errors.Join(err, sink.Float64s(v))
				})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got.Bytes(), want) {
					t.Errorf("files differ: %d bytes, want %d", got.Len(), len(want))
				}
			})
		}
	}
}

// Rows read in pieces are the rows of the whole, also across the chunk border.
func TestRowRangesArePartsOfTheWhole(t *testing.T) {
	const rows, width = 301, 257 // 77357 elements: four chunks of F32, rows straddling each border
	values := make([]float32, rows*width)
	for i := range values {
		values[i] = float32(i)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	specs := []safetensors.Spec{{Name: "a", DType: safetensors.F32, Shape: []int{rows, width}}, {Name: "b", DType: safetensors.F64, Shape: nil}}
	err := safetensors.WriteFile(path, specs, nil, func(s safetensors.Spec, sink *safetensors.Sink) error {
		if s.Name == "b" {
			return sink.Float64s([]float64{0.1})
		}
		return errors.Join(sink.Float32s(values[:1000]), sink.Float32s(values[1000:])) // in two calls
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, _ := f.Tensor("a")
	for _, r := range [][2]int{{0, 0}, {0, 1}, {0, rows}, {1, 255}, {63, 64}, {64, 190}, {300, 301}, {301, 301}} {
		got := make([]float32, (r[1]-r[0])*width)
		if err := a.ReadFloat32s(got, r[0], r[1]); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, values[r[0]*width:r[1]*width]) {
			t.Errorf("rows %v differ", r)
		}
	}
	for _, r := range [][2]int{{-1, 1}, {2, 1}, {0, rows + 1}} {
		if err := a.ReadFloat32s(make([]float32, width), r[0], r[1]); err == nil {
			t.Errorf("range %v accepted", r)
		}
	}
	if err := a.ReadFloat32s(make([]float32, width+1), 0, 1); err == nil {
		t.Error("buffer of another length accepted")
	}
	b, _ := f.Tensor("b")
	if v, err := b.Float64s(); err != nil || len(v) != 1 || v[0] != 0.1 {
		t.Errorf("one number: got %v, %v", v, err)
	}
}

// A writer that gives too little, too much or what is not allowed gets an error, and no file appears.
func TestWrongWritesLeaveNoFile(t *testing.T) {
	spec := func(name string, shape ...int) safetensors.Spec {
		return safetensors.Spec{Name: name, DType: safetensors.F32, Shape: shape}
	}
	give := func(n int) safetensors.Fill {
		return func(_ safetensors.Spec, sink *safetensors.Sink) error { return sink.Float32s(make([]float32, n)) }
	}
	boom := errors.New("boom")
	cases := []struct {
		name  string
		specs []safetensors.Spec
		meta  map[string]string
		fill  safetensors.Fill
		says  string
	}{
		{"too few", []safetensors.Spec{spec("a", 3)}, nil, give(2), "lacks 1 elements"},
		{"too many", []safetensors.Spec{spec("a", 3)}, nil, give(4), "got 4 elements, want 3 more"},
		{"own error", []safetensors.Spec{spec("a", 3)}, nil, func(safetensors.Spec, *safetensors.Sink) error { return boom }, "boom"},
		{"odd bytes", []safetensors.Spec{spec("a", 3)}, nil, func(_ safetensors.Spec, s *safetensors.Sink) error { return s.Bytes(make([]byte, 5)) }, "multiple of 4"},
		{"twice", []safetensors.Spec{spec("a", 1), spec("a", 1)}, nil, give(1), "occurs twice"},
		{"reserved", []safetensors.Spec{spec("__metadata__", 1)}, nil, give(1), "reserved"},
		{"negative", []safetensors.Spec{spec("a", -1)}, nil, give(1), "negative or too large"},
		{"two negatives", []safetensors.Spec{spec("a", -1, -1)}, nil, give(1), "negative or too large"},
		{"overflow", []safetensors.Spec{spec("a", 1<<31, 1<<31, 1<<31)}, nil, give(1), "negative or too large"},
		{"sum overflows", []safetensors.Spec{spec("a", 1<<59), spec("b", 1<<59), spec("c", 1<<59), spec("d", 1<<59)}, nil, give(1), "negative or too large"},
		{"unknown type", []safetensors.Spec{{Name: "a", DType: "F4", Shape: []int{2}}}, nil, give(1), "not supported"},
		{"name not UTF-8", []safetensors.Spec{spec("a\xff", 1)}, nil, give(1), "not UTF-8"},
		{"metadata not UTF-8", []safetensors.Spec{spec("a", 1)}, map[string]string{"k": "\xff"}, give(1), "not UTF-8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			err := safetensors.WriteFile(filepath.Join(dir, "x.safetensors"), c.specs, c.meta, c.fill)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// testdata/alltypes.safetensors came out of the reference writer (safetensors 0.8.0, serialize): every type, [1, 0, 1].
func TestEveryTypeIsWrittenAsTheReferenceDoes(t *testing.T) {
	want, err := os.ReadFile("testdata/alltypes.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open("testdata/alltypes.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got bytes.Buffer
	err = safetensors.Write(&got, specsOf(f), safetensors.HF(), func(_ safetensors.Spec, sink *safetensors.Sink) error {
		return sink.Float64s([]float64{1, 0, 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got %q\nwant %q", got.Bytes(), want)
	}
	for _, i := range f.Tensors() {
		x, _ := f.Tensor(i.Name)
		if v, err := x.Float32s(); err != nil || !slices.Equal(v, []float32{1, 0, 1}) {
			t.Errorf("%s: got %v, %v", i.DType, v, err)
		}
	}
}
