package gemm

import (
	"strings"
	"testing"

	"heddle/kernel/signature"
	"heddle/num"
	"heddle/ptx"
)

type recorded struct {
	launch ptx.Launch
	args   *ptx.Args
	maps   map[int]uint64
}

func (r *recorded) SetWord(int, uint64)           {}
func (r *recorded) SetMap(i int, at uint64) error { r.maps[i] = at; return nil }
func (r *recorded) Queue(uintptr) error           { return nil }

type nowhere struct{}

func (nowhere) Handle() uintptr { return 0 }

// A launch through the handle is the launch that Launch describes, for every layout and type.
func TestHandleLaunchesWhatLaunchDescribes(t *testing.T) {
	const m, n, k, ctas = 192, 320, 128, 4
	for _, name := range []string{"", "ta", "tb", "ta-tb", "tof32-add"} {
		c, err := ParseConfig(strings.TrimSuffix("64x64x64-w1-c1x1-s4-g8-"+name, "-"))
		if err != nil {
			t.Fatal(err)
		}
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		var r *recorded
		h, err := g.Signature(ctas).Bind(g.Entry, func(l ptx.Launch, a *ptx.Args) (signature.Block, error) {
			r = &recorded{launch: l, args: a, maps: map[int]uint64{}}
			return r, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		o := operands(c, m, n, k)
		if err := h.Launch(nowhere{}, &o); err != nil {
			t.Fatal(err)
		}
		l, args, err := g.Launch(Problem{M: m, N: n, K: k, A: placed(0x1000), B: placed(0x2000), D: placed(0x4000)}, ctas)
		if err != nil {
			t.Fatal(err)
		}
		if r.launch != l || args.Len() != r.args.Len() {
			t.Errorf("%s: launch %+v, want %+v", name, r.launch, l)
		}
		for i := range args.Len() {
			got, want := r.args.At(i), args.At(i)
			if got.Bits != want.Bits || got.Map != nil && (got.Map.Buffer.Device != want.Map.Buffer.Device || got.Map.Dims[0] != want.Map.Dims[0] || got.Map.Dims[1] != want.Map.Dims[1]) {
				t.Errorf("%s: argument %d is %+v, want %+v", name, i, got, want)
			}
		}
		o.B.Addr = 0x8000
		if err := h.Launch(nowhere{}, &o); err != nil || r.args.At(1).Map.Buffer.Device != 0x8000 && r.maps[1] != 0x8000 {
			t.Errorf("%s: %v, moved %v", name, err, r.maps)
		}
		for _, x := range []*signature.Tensor{&o.A, &o.B, &o.D} {
			before := *x
			x.Dims[0]++
			if err := h.Launch(nowhere{}, &o); err == nil {
				t.Errorf("%s: a tensor with a row too many was taken", name)
			}
			*x = before
		}
		odd := operands(c, 20, 24, 36)
		if err := h.Launch(nowhere{}, &odd); name == "" && (err == nil || !strings.Contains(err.Error(), "k is 36 in A [m, k], want a multiple of 8")) {
			t.Errorf("got %v", err)
		}
	}
}

func placed(addr uint64) *ptx.Buffer { return &ptx.Buffer{Device: addr, Bytes: 1 << 20} }

func operands(c Config, m, n, k int) Matrices {
	o := Matrices{A: signature.Packed(0x1000, num.BF16, m, k), B: signature.Packed(0x2000, num.BF16, n, k), D: signature.Packed(0x4000, c.Out, m, n)}
	if c.TransA {
		o.A = signature.Packed(0x1000, num.BF16, k, m)
	}
	if c.TransB {
		o.B = signature.Packed(0x2000, num.BF16, k, n)
	}
	return o
}
