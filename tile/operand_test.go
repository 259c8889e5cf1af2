package tile

import (
	"slices"
	"strings"
	"testing"
)

// The fields are those of kernels that ran: K-major stride 1024/512/256, +32 bytes a k step, the next slab after rows × width; M-major leading
// BK × width, +16 rows a k step.
func TestDescriptorsOfTMATiles(t *testing.T) {
	for _, c := range []struct {
		rows, k, elem   int
		mode            SwizzleMode
		mn              bool
		leading, stride int
		steps           []int
	}{
		{128, 64, 2, Swizzle128, false, 0, 1024, []int{0, 32, 64, 96}},
		{256, 128, 2, Swizzle128, false, 0, 1024, []int{0, 32, 64, 96, 32768, 32800, 32832, 32864}},
		{64, 32, 2, Swizzle64, false, 0, 512, []int{0, 32}},
		{64, 32, 2, Swizzle32, false, 0, 256, []int{0, 2048}},
		{64, 32, 4, Swizzle128, false, 0, 1024, []int{0, 32, 64, 96}},
		{64, 128, 1, Swizzle128, false, 0, 1024, []int{0, 32, 64, 96}},
		{64, 32, 2, SwizzleNone, false, 1024, 128, []int{0, 2048}},
		{128, 64, 2, Swizzle128, true, 8192, 1024, []int{0, 2048, 4096, 6144}},
		{128, 64, 2, Swizzle64, true, 4096, 512, []int{0, 1024, 2048, 3072}},
		{128, 64, 2, Swizzle32, true, 2048, 256, []int{0, 512, 1024, 1536}},
		{64, 32, 2, SwizzleNone, true, 128, 512, []int{0, 256}},
	} {
		o, err := Describe(Must(OperandLayout(c.rows, c.k, c.elem, c.mode, c.mn)), c.elem, c.mode)
		if err != nil || o.MNMajor != c.mn || o.Leading != c.leading || o.Stride != c.stride || !slices.Equal(o.Steps, c.steps) {
			t.Errorf("%+v: got %+v, %v", c, o, err)
		}
	}
	// The descriptor of the GEMM that ran at cuBLAS speed, without its address.
	o := Must(Describe(Must(OperandLayout(128, 64, 2, Swizzle128, false)), 2, Swizzle128))
	if got, want := o.Fields(), uint64(0x4000004000010000); got != want {
		t.Errorf("fields %#x, want %#x", got, want)
	}
}

// A tile need not be packed: a stride between groups of 8 rows is a field like any other, and multicast halves are found where they are.
func TestDescribeReadsPaddedGroups(t *testing.T) {
	l := Must(Parse("((8,8),64):((64,1024),1)"))
	if o, err := Describe(l, 2, Swizzle128); err != nil || o.Stride != 2048 {
		t.Errorf("got %+v, %v, want a stride of 2048", o, err)
	}
}

func TestUndescribableOperandsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		layout string
		elem   int
		mode   SwizzleMode
		want   string
	}{
		"row-major without slabs": {"(64,128):(128,1)", 2, Swizzle128, "element (1,0) lies at byte 256"},
		"wrong mode":              {"(64,64):(64,1)", 2, Swizzle64, "element (1,0) lies at byte 128"},
		"irregular groups":        {"((8,2,4),64):((64,512,2048),1)", 2, Swizzle128, "element (16,0)"},
		"mn-major tf32":           {"((32,2),32):((1,1024),32)", 4, Swizzle128, "only of 2-byte"},
		"nothing contiguous":      {"(64,64):(128,2)", 2, Swizzle128, "element"},
		"seven rows":              {"(7,64):(64,1)", 2, Swizzle128, "whole groups of 8"},
		"half a k step":           {"(64,8):(8,1)", 2, SwizzleNone, "steps of 16"},
		"three modes":             {"(8,8,16):(1,8,64)", 2, Swizzle128, "want (rows, k)"},
		"far apart":               {"((8,2),64):((64,262144),1)", 2, Swizzle128, "below 262144"},
		"step inside an atom":     {"((8,8),(16,2)):((64,512),(1,64))", 2, Swizzle128, "first row"},
	} {
		if o, err := Describe(Must(Parse(c.layout)), c.elem, c.mode); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, %v, want an error with %q", name, o, err, c.want)
		}
	}
	if _, err := Describe(Rows(64, 64), 2, 48); err == nil {
		t.Error("a swizzle of 48 bytes: no error")
	}
	if _, err := OperandLayout(64, 64, 2, 0, false); err == nil {
		t.Error("a swizzle of 0 bytes: no error")
	}
	for _, c := range [][3]int{{64, 24, 2}, {0, 64, 2}, {64, 64, 3}, {64, 84, 3}, {64, 64, 0}} {
		if l, err := OperandLayout(c[0], c[1], c[2], Swizzle128, false); err == nil {
			t.Errorf("operand layout %v: got %v", c, l)
		}
	}
}
