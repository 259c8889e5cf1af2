//go:build linux && (amd64 || arm64) && !nogpu

package cuda

import (
	"fmt"
	"strings"
	"testing"

	"heddle/num"
	"heddle/ptx"
)

// entry has one parameter of each kind that the stand-in driver prints.
func entry(t *testing.T) (*ptx.Module, *ptx.Args, *ptx.Buffer) {
	t.Helper()
	k := ptx.New("k", 128, 2)
	n, p, f, m := k.ParamU32("n"), k.ParamPtr("p"), k.ParamF32("f"), k.ParamMap("m")
	e, err := k.Build()
	if err != nil {
		t.Fatal(err)
	}
	b := &ptx.Buffer{Name: "b", Data: []byte("some data, some more data, a lot of data, 128 bytes of data at least, which is what one row of a swizzled tile of bf16 takes up ......")}
	a := e.NewArgs()
	n.Put(a, 7)
	p.Put(a, b, 16)
	f.Put(a, 1.5)
	m.Put(a, &ptx.Map{Type: num.BF16, Buffer: b, Dims: []int{32, 2}, Strides: []int{64}, Box: []int{32, 2}, Swizzle: ptx.Swizzle64, L2: ptx.L2256B, NaNFill: true})
	return &ptx.Module{Entries: []*ptx.Entry{e}}, a, b
}

func TestRunnerTakesArgumentsAndBuffersAcross(t *testing.T) {
	dev, s, said := fakeDevice(t)
	r := NewRunner(dev, s, nil)
	mod, args, b := entry(t)
	before := string(b.Data)
	if err := r.Run(mod, ptx.Launch{Entry: "k", Grid: ptx.Dim3{X: 4}}, args); err != nil {
		t.Fatal(err)
	}
	if got := said(); !strings.HasPrefix(got, "k grid 4 1 1 block 128 1 1 shared 0 stream 0x57 args 7 ") || !strings.HasSuffix(got, " 1.5 abababababababab") {
		t.Errorf("launch %s", got)
	}
	if string(b.Data) != before {
		t.Errorf("data came back as %q", b.Data)
	}
	b.Device, b.Bytes = 0x100000, len(b.Data)
	p, err := r.Prepare(mod, ptx.Launch{Entry: "k", Grid: ptx.Dim3{X: 2}, PDL: true}, args)
	if err != nil {
		t.Fatal(err)
	}
	if want := "type 9 rank 2 addr 0x100000 dims 32 2 stride 64 box 32 2 steps 1 1 interleave 0 swizzle 2 l2 3 oob 1"; said() != want {
		t.Errorf("map  %s\nwant %s", said(), want)
	}
	if err := p.Launch(s); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("k grid 2 1 1 block 128 1 1 shared 0 stream 0x57 pdl 1 args 7 %d 1.5 abababababababab", 0x100010); said() != want {
		t.Errorf("got  %s\nwant %s", said(), want)
	}
	if f, err := r.Facts(mod, "k"); err != nil || f.Registers != 40 {
		t.Errorf("facts %+v, %v", f, err)
	}
}

func TestRunnerRefusesByName(t *testing.T) {
	dev, s, _ := fakeDevice(t)
	r := NewRunner(dev, s, nil)
	mod, args, b := entry(t)
	for want, l := range map[string]ptx.Launch{
		`no entry "other"`:         {Entry: "other", Grid: ptx.Dim3{X: 2}},
		"no multiple of cluster":   {Entry: "k", Grid: ptx.Dim3{X: 3}},
		"clusters of 2":            {Entry: "k", Grid: ptx.Dim3{X: 4}, Cluster: ptx.Dim3{X: 4}},
		"kernel k wants 999999 by": {Entry: "k", Grid: ptx.Dim3{X: 2}, Shared: 999999},
	} {
		if err := r.Run(mod, l, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	b.Data, b.Bytes = nil, 128
	if err := r.Run(mod, ptx.Launch{Entry: "k", Grid: ptx.Dim3{X: 2}}, args); err == nil || !strings.Contains(err.Error(), "buffer b has neither data nor a device address") {
		t.Errorf("got %v", err)
	}
	if err := r.Run(mod, ptx.Launch{Entry: "k"}, nil); err == nil {
		t.Error("a launch without arguments was accepted")
	}
}
