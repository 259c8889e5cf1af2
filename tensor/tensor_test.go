package tensor

import (
	"testing"
	"unsafe"
)

func host(n int) (Tensor, []float32) {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return Tensor{Letters: "x", Dims: []int{n}, Type: F32, Alloc: 1, Mem: Mem{Ptr: unsafe.Pointer(&x[0])}}, x
}

func TestViewsShareMemoryAtTheirOffset(t *testing.T) {
	base, x := host(24)
	for off := 0; off+6 <= 24; off++ {
		v := base.As("ab", []int{2, 3}, off)
		for i, got := range View[float32](v) {
			if got != float32(off+i) {
				t.Fatalf("offset %d element %d is %v", off, i, got)
			}
		}
		if v.Elems() != 6 || v.Bytes() != 24 || v.Dim('b') != 3 || v.Index('a') != 0 || v.Has('c') || v.Alloc != 1 {
			t.Fatalf("view %+v", v)
		}
	}
	inner := base.As("ab", []int{4, 4}, 8).As("c", []int{3}, 5)
	View[float32](inner)[1] = -1
	if x[14] != -1 {
		t.Errorf("a view of a view does not reach its element: %v", x)
	}
}

func TestViewsOutOfBoundsPanic(t *testing.T) {
	base, _ := host(10)
	for _, f := range []func(){
		func() { base.As("x", []int{11}, 0) },
		func() { base.As("x", []int{1}, 10) },
		func() { base.As("x", []int{1}, -1) },
		func() { base.As("xy", []int{1}, 0) },
		func() { base.As("x", []int{4}, 2).As("x", []int{3}, 2) }, // inside the memory, outside the view
		func() { base.Dim('q') },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
	if v := base.As("x", []int{0}, 10); len(View[float32](v)) != 0 { // empty at the end is inside
		t.Error("empty view is not empty")
	}
}

func TestDryTensorsHaveNoData(t *testing.T) {
	d := Tensor{Letters: "", Type: F64}
	if d.Elems() != 1 || d.Bytes() != 8 || View[float64](d) != nil || View[float64](d.As("", nil, 0)) != nil {
		t.Error("a scalar without data")
	}
}
