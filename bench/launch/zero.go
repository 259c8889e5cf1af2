package launch

import (
	"heddle/kernel/gemm"
	"heddle/kernel/signature"
	"heddle/num"
	"heddle/ptx"
)

// zero is the chain's small kernel: x[i] = 0, 16 bytes a thread and turn.
//
// Barriers and shared memory: none. Under PDL every thread waits before it writes, although it reads nothing: the kernel in front may still read what is overwritten
// here, and whoever comes next counts on everything in front of it being done.
type zero struct {
	entry *ptx.Entry
	x     ptx.ParamPtr
	units ptx.ParamU32 // of 16 bytes
}

const zeroThreads = 256

// cleared is the argument of zero.
type cleared struct{ X signature.Tensor }

func newZero(o gemm.Overlap) (*zero, error) {
	k := ptx.New("zero", zeroThreads, 1)
	z := &zero{x: k.ParamPtr("x"), units: k.ParamU32("units")}
	if o != gemm.Serial {
		k.GridWait()
	}
	if o == gemm.Invites {
		k.GridLaunchDependents()
	}
	nothing := k.F32(0)
	k.For(k.CTAIndex().Times(zeroThreads), z.units.U32, k.NumCTAs().Times(zeroThreads), func(base ptx.U32) {
		i := base.Add(k.Tid())
		k.If(i.Lt(z.units.U32), func() {
			z.x.At(i.MulWide(k.U32(16))).StoreF32x4([4]ptx.F32{nothing, nothing, nothing, nothing})
		})
	})
	var err error
	z.entry, err = k.Build()
	return z, err
}

// module is the kernel alone.
func (z *zero) module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{z.entry}} }

// launch describes the launch for so many bytes, a multiple of 16, on a device of so many SMs.
func (z *zero) launch(x *ptx.Buffer, bytes, sms int) (ptx.Launch, *ptx.Args, error) {
	a := z.entry.NewArgs()
	z.x.Put(a, x, 0)
	z.units.Put(a, uint32(bytes/16))
	ctas := (bytes/16 + zeroThreads - 1) / zeroThreads
	return ptx.Launch{Entry: "zero", Grid: ptx.Dim3{X: min(ctas, 4*sms)}}, a, nil
}

// signature: x [m, n] bf16, packed, rows of whole 16 bytes.
func (z *zero) signature(sms int) *signature.Signature[cleared] {
	s := signature.New[cleared]("zero")
	m, n := s.Size("m", 1), s.Size("n", 8)
	x := s.Tensor("X", func(c *cleared) *signature.Tensor { return &c.X }, signature.Spec{Type: num.BF16, Dims: []signature.Size{m, n}, Align: 16})
	s.Plan(func(h *signature.Shape) (ptx.Launch, *ptx.Args, error) {
		return z.launch(h.Buffer(x), 2*h.Size(m)*h.Size(n), sms)
	})
	return s
}
