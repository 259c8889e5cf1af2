package parity

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/checkpoint/safetensors"
	"heddle/internal/golden"
	"heddle/parallel"
	"heddle/tensor"
	"heddle/train"
)

// The peer is transformers in float64 (with norms, RoPE and softmax in float32); limits are in verify.go.
func TestFamiliesAgreeWithTransformersUnderEveryScheme(t *testing.T) {
	layouts := map[string][]parallel.Layout{
		"qwen3-gqa": {{}, {TP: 2}, {TP: 2, SP: "megatron"}, {CP: 2, SP: "ulysses"}, {FSDP: 2}, {DP: 2}, {TP: 8, SP: "megatron"}},
		"llama":     {{}, {FSDP: 2}, {DP: 2}},
		"gpt2":      {{}, {TP: 2}, {TP: 2, SP: "megatron"}, {CP: 2, SP: "ulysses"}, {FSDP: 2}, {DP: 2}, {FSDP: 2, TP: 4, SP: "megatron"}, {TP: 2, CP: 2, SP: "megatron"}},
	}
	layouts["qwen2"] = layouts["gpt2"]
	layouts["llama-scaled"] = layouts["gpt2"]
	for name, list := range layouts {
		dir := golden.Dir(t, name)
		for _, l := range list {
			for _, dtype := range []tensor.DType{tensor.F64, tensor.F32} {
				v, err := Verify(dir, l, train.Machine{Type: dtype})
				if err != nil {
					t.Fatalf("%s %+v: %v", name, l, err)
				}
				t.Logf("%s %s %+v: logits %.1e loss %.1e norm %.1e losses %.1e grad %.1e (%s) after %.1e (%s) over %.3f of elements, rest %.1e",
					name, dtype, l, v.Logits, v.Loss, v.GradNorm, v.Losses, v.Grad.Error, v.Grad.Name, v.After.Error, v.After.Name, v.Share, v.Rest)
				if !v.Within(0) {
					t.Errorf("%s %s %+v is beyond the rule", name, dtype, l)
				}
			}
		}
	}
}

// Five heads have no half: every way to cut them in two is refused, with the sizes that would do.
func TestFiveHeadsAreRefusedWhereTheyWouldBeCut(t *testing.T) {
	dir := golden.Dir(t, "llama")
	for l, hint := range map[parallel.Layout]string{{TP: 2}: "tp may be 1 or 5", {TP: 2, SP: "megatron"}: "tp may be 1 or 5", {CP: 2, SP: "ulysses"}: "cp may be 1 or 5"} {
		if v, err := Verify(dir, l, train.Machine{Type: tensor.F64}); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%+v: %+v, %v; want %q", l, v, err, hint)
		}
	}
}

// A folder that has logits and loss alone is compared by them, and what a NaN touches is infinitely wrong.
func TestAFolderMayHoldLogitsAlone(t *testing.T) {
	src, dir := golden.Open(t, "llama"), t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		text, err := os.ReadFile(filepath.Join(src.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var specs []safetensors.Spec
	for _, x := range src.Expected.Tensors() {
		if x.Name == "input_ids" || x.Name == "labels" || x.Name == "logits" || x.Name == "loss" {
			specs = append(specs, safetensors.Spec{Name: x.Name, DType: x.DType, Shape: x.Shape})
		}
	}
	write := func(bad bool) {
		err := safetensors.WriteFile(filepath.Join(dir, "expected.safetensors"), specs, nil, func(s safetensors.Spec, sink *safetensors.Sink) error {
			if s.DType == safetensors.I64 {
				return sink.Int64s(golden.Int64s(t, src.Expected, s.Name))
			}
			v := golden.Float64s(t, src.Expected, s.Name)
			if bad {
				v[len(v)-1] += 1e-3
			}
			return sink.Float64s(v)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []bool{false, true} {
		write(bad)
		v, err := Verify(dir, parallel.Layout{FSDP: 2}, train.Machine{Type: tensor.F64})
		if err != nil || v.Within(0) == bad || v.Logits == 0 || v.Steps || len(v.Tensors) != 0 {
			t.Errorf("bad %v: %+v, %v", bad, v, err)
		}
	}
	if !math.IsInf(relative([]float64{math.NaN(), 1}, []float64{1, 1}), 1) {
		t.Error("NaN is near 1")
	}
}
