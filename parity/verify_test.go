package parity

import (
	"testing"

	"heddle/internal/golden"
	"heddle/parallel"
	"heddle/tensor"
)

// The peer is transformers' Qwen3 in float64 (with norms, RoPE and softmax in float32); limits are in verify.go.
func TestQwen3AgreesWithTransformersUnderEveryScheme(t *testing.T) {
	dir := golden.Dir(t, "qwen3-gqa")
	for _, l := range []parallel.Layout{{}, {TP: 2}, {TP: 2, SP: "megatron"}, {CP: 2, SP: "ulysses"}, {FSDP: 2}, {TP: 8, SP: "megatron"}} {
		for _, dtype := range []tensor.DType{tensor.F64, tensor.F32} {
			v, err := Verify(dir, l, dtype)
			if err != nil {
				t.Fatalf("%+v: %v", l, err)
			}
			t.Logf("%s %+v: logits %.1e loss %.1e norm %.1e losses %.1e grad %.1e (%s) after %.1e (%s) over %.3f of elements, rest %.1e",
				dtype, l, v.Logits, v.Loss, v.GradNorm, v.Losses, v.Grad.Error, v.Grad.Name, v.After.Error, v.After.Name, v.Share, v.Rest)
			if !v.Within() {
				t.Errorf("%s %+v is beyond the rule", dtype, l)
			}
		}
	}
}
