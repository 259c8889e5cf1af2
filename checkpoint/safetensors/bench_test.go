package safetensors

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// One million elements a call, from the page cache: bytes a second are those of the file.
func BenchmarkRead(b *testing.B) {
	const n = 1 << 20
	rng := rand.New(rand.NewPCG(1, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	for _, d := range []DType{F32, BF16, F16, F64} {
		path := filepath.Join(b.TempDir(), "x.safetensors")
		err := WriteFile(path, []Spec{{"a", d, []int{n}}}, nil, func(_ Spec, s *Sink) error { return s.Float32s(v) })
		if err != nil {
			b.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		x, _ := f.Tensor("a")
		b.Run(string(d), func(b *testing.B) {
			b.SetBytes(n * int64(d.Size()))
			for b.Loop() {
				if err := x.ReadFloat32s(v, 0, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Conversion and header, without a disk.
func BenchmarkWrite(b *testing.B) {
	const n = 1 << 20
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i) * 0x1p-10
	}
	for _, d := range []DType{F32, BF16, F16, F8E4M3} {
		b.Run(string(d), func(b *testing.B) {
			b.SetBytes(n * int64(d.Size()))
			for b.Loop() {
				if err := Write(io.Discard, []Spec{{"a", d, []int{n}}}, nil, func(_ Spec, s *Sink) error { return s.Float32s(v) }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A header of 10,000 tensors, as a mixture of experts has.
func BenchmarkHeader(b *testing.B) {
	var specs []Spec
	for i := range 10_000 {
		specs = append(specs, Spec{"model.layers.10.mlp.experts." + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ".weight", U8, []int{1}})
	}
	var buf bytes.Buffer
	if err := Write(&buf, specs, nil, func(_ Spec, s *Sink) error { return s.Bytes([]byte{0}) }); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(buf.Len()))
	for b.Loop() {
		if _, err := openBytes(buf.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
