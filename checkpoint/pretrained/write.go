package pretrained

import (
	"fmt"
	"io"
	"path/filepath"

	"heddle/checkpoint/safetensors"
	"heddle/internal/atomicfile"
	"heddle/model/hf"
)

// MaxShard is the usual size of a shard of weights, in bytes.
const MaxShard = 5_000_000_000

// Write writes config.json and the weights of a model into an empty folder, weights last and in shards of at most maxShard bytes, so that transformers
// opens it. values gives a parameter in p.Shape; it is called once for each, in no particular order. dtype is what the files hold: F32, BF16 or F16.
func Write(dir string, c hf.Config, dtype safetensors.DType, maxShard int64, values func(p hf.Param) ([]float32, error)) error {
	names := map[safetensors.DType]string{safetensors.F32: "float32", safetensors.BF16: "bfloat16", safetensors.F16: "float16"}
	if names[dtype] == "" {
		return fmt.Errorf("pretrained: weights of type %s, want F32, BF16 or F16", dtype)
	}
	c.DType = names[dtype]
	text, err := c.Encode()
	if err != nil {
		return err
	}
	err = atomicfile.Write(atomicfile.OS{}, filepath.Join(dir, "config.json"), func(w io.Writer) error { _, err := w.Write(text); return err })
	if err != nil {
		return fmt.Errorf("pretrained: %w", err)
	}
	stored := map[string][]hf.Param{} // a fused tensor holds several
	var specs []safetensors.Spec
	for _, p := range c.Params() {
		if stored[p.Name] == nil {
			specs = append(specs, safetensors.Spec{Name: p.Name, DType: dtype, Shape: p.Stored})
		}
		stored[p.Name] = append(stored[p.Name], p)
	}
	return safetensors.WriteModel(dir, specs, maxShard, func(s safetensors.Spec, sink *safetensors.Sink) error {
		v, err := join(s, stored[s.Name], values)
		if err != nil {
			return err
		}
		return sink.Float32s(v)
	})
}

// join makes a stored tensor of the parameters in it.
func join(s safetensors.Spec, params []hf.Param, values func(p hf.Param) ([]float32, error)) ([]float32, error) {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	var out []float32
	for _, p := range params {
		v, err := values(p)
		if err != nil {
			return nil, err
		}
		want := 1
		for _, d := range p.Shape {
			want *= d
		}
		if len(v) != want {
			return nil, fmt.Errorf("%s: got %d values, want %d", p.Ours(), len(v), want)
		}
		if p.Whole() {
			return v, nil
		}
		if out == nil {
			out = make([]float32, n)
		}
		hf.Scatter(p, out, v)
	}
	return out, nil
}
