package compute_test

import (
	"testing"

	"heddle/compute"
	"heddle/compute/cpu"
	"heddle/compute/cpu/blas"
	"heddle/mesh"
	"heddle/tensor"
)

// counting counts what the leaf below has live.
type counting struct {
	compute.Leaf
	live, most int
}

func (c *counting) Alloc(bytes int) tensor.Mem {
	c.live += bytes
	c.most = max(c.most, c.live)
	return c.Leaf.Alloc(bytes)
}

func (c *counting) Free(m tensor.Mem, bytes int) {
	c.live -= bytes
	c.Leaf.Free(m, bytes)
}

func single(t *testing.T) (*compute.Device, *counting) {
	t.Helper()
	m, err := mesh.New()
	if err != nil {
		t.Fatal(err)
	}
	pool := blas.NewPool(1)
	t.Cleanup(pool.Close)
	leaf := &counting{Leaf: cpu.New[float64](pool)}
	return compute.New(m, 0, tensor.F64, leaf), leaf
}

func TestScopesFreeWhatTheyOwnAndKeepWhatIsKept(t *testing.T) {
	d, leaf := single(t)
	make8 := func(n int) tensor.Tensor { return d.New(tensor.F64, "x", []int{n}, mesh.Places{}) }
	outer := d.Open()
	a := make8(10)
	inner := d.Open()
	b, c := make8(20), make8(40)
	d.Free(c) // before its scope ends
	e := make8(5)
	view := b.As("y", []int{3}, 2) // a view keeps its allocation
	d.Close(inner, view)
	if m := d.Memory(); m.Held != 8*(10+20) || leaf.live != m.Held {
		t.Errorf("held %d, leaf has %d, want %d", m.Held, leaf.live, 8*30)
	}
	d.Retag(compute.Saved, a)
	if m := d.Memory(); m.Max[compute.Saved] != 80 || m.Held != 240 || m.Peak != 8*(10+20+40) || leaf.most != m.Peak {
		t.Errorf("after retag: %+v, leaf's most %d", m, leaf.most)
	}
	d.Close(outer)
	if m := d.Memory(); m.Held != 0 || leaf.live != 0 || m.Max[compute.Scratch] != 8*70 || m.AtPeak[compute.Scratch] != 8*70 {
		t.Errorf("after all: %+v, leaf has %d", m, leaf.live)
	}
	_ = e
}

func TestMisuseOfScopesPanics(t *testing.T) {
	for name, f := range map[string]func(d *compute.Device){
		"outer closed first": func(d *compute.Device) { o := d.Open(); d.Open(); d.Close(o) },
		"closed twice":       func(d *compute.Device) { o := d.Open(); d.Close(o); d.Close(o) },
		"freed twice": func(d *compute.Device) {
			x := d.New(tensor.F64, "x", []int{1}, mesh.Places{})
			d.Free(x)
			d.Free(x)
		},
		"freed after its scope": func(d *compute.Device) {
			o := d.Open()
			x := d.New(tensor.F64, "x", []int{1}, mesh.Places{})
			d.Close(o)
			d.Free(x)
		},
	} {
		func() {
			d, _ := single(t)
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(d)
		}()
	}
}

func TestPeaksAreKeptByPhase(t *testing.T) {
	d, _ := single(t)
	d.At("forward", 0)
	x := d.New(tensor.F64, "x", []int{100}, mesh.Places{})
	d.Free(x)
	d.At("backward", 0)
	d.New(tensor.F64, "x", []int{10}, mesh.Places{})
	m := d.Memory()
	if m.Phases["forward"] != 800 || m.Phases["backward"] != 80 || m.Peak != 800 || m.Held != 80 {
		t.Errorf("%+v", m)
	}
}
