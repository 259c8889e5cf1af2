// Package elem holds kernels that compute each element from the elements in the same place: activations, the optimiser, sums, casts.
//
// Start with Spec, which says what is computed; Map is the kernel made of it; specs.go lists the ones there are.
package elem

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Spec describes an elementwise kernel:
//
//	for i := range N { out[0][i], out[1][i], … = Body(in[0][i], in[1][i], …) }
//
// with float32 arithmetic, whatever the types. An output may be the same memory as an input.
type Spec struct {
	Name    string
	In, Out []num.DType
	Ones    []string // float32 in global memory that all elements share
	Scalars []string // float32 parameters

	// Body is one element: x the inputs, then the Ones, then the Scalars. It may compute more outputs than Out takes.
	Body func(k *ptx.Builder, x []ptx.F32) []ptx.F32
	// Ref is Body in float64.
	Ref func(x []float64) []float64
	// Sample draws one element's x for tests; nil draws from the normal distribution.
	Sample func(normal func() float64) []float64
}

// Map is a built kernel.
type Map struct {
	Spec
	Wide  bool // memory starts at multiples of 16 bytes
	Entry *ptx.Entry

	in, out, ones []ptx.ParamPtr
	scalars       []ptx.ParamF32
	n             ptx.ParamU32
}

const threads = 256

// New builds the kernel of a spec. A wide one takes eight neighbouring elements a thread and demands that all memory starts at multiples of 16 bytes; the
// other takes one.
func New(s Spec, wide bool) (*Map, error) {
	name := s.Name
	if !wide {
		name += "_narrow"
	}
	k := ptx.New(name, threads, 1)
	m := &Map{Spec: s, Wide: wide}
	for i := range s.In {
		m.in = append(m.in, k.ParamPtr(fmt.Sprintf("in%d", i)))
	}
	for i := range s.Out {
		m.out = append(m.out, k.ParamPtr(fmt.Sprintf("out%d", i)))
	}
	for _, one := range s.Ones {
		m.ones = append(m.ones, k.ParamPtr(one))
	}
	for _, x := range s.Scalars {
		m.scalars = append(m.scalars, k.ParamF32(x))
	}
	m.n = k.ParamU32("n")
	shared := m.shared(k)
	width := m.width()
	i := k.CTAIndex().Times(threads).Add(k.Tid()).Times(width)
	whole := i.Plus(width).Le(m.n.U32)
	k.IfElse(whole, func() { m.run(k, i, width, shared) }, func() {
		if !wide {
			return
		}
		k.For(i, m.n.U32, k.U32(1), func(j ptx.U32) { m.run(k, j, 1, shared) }) // the last, broken group, in the one thread that has it
	})
	var err error
	m.Entry, err = k.Build()
	return m, err
}

func (m *Map) width() int {
	if m.Wide {
		return kernel.Wide
	}
	return 1
}

// shared are the values that all elements have in common.
func (m *Map) shared(k *ptx.Builder) []ptx.F32 {
	var all []ptx.F32
	for _, p := range m.ones {
		all = append(all, p.LoadF32())
	}
	for _, s := range m.scalars {
		all = append(all, s.F32)
	}
	return all
}

// run computes n elements from i on.
func (m *Map) run(k *ptx.Builder, i ptx.U32, n int, shared []ptx.F32) {
	in := make([][]ptx.F32, len(m.in))
	for j, p := range m.in {
		in[j] = kernel.LoadSpan(k, m.In[j], kernel.At(k, m.In[j], p.GAddr, i), n)
	}
	out := make([][]ptx.F32, len(m.out))
	for e := range n {
		x := make([]ptx.F32, 0, len(in)+len(shared))
		for j := range in {
			x = append(x, in[j][e])
		}
		y := m.Body(k, append(x, shared...))
		for j := range out {
			out[j] = append(out[j], y[j])
		}
	}
	for j, p := range m.out {
		kernel.StoreSpan(k, m.Out[j], kernel.At(k, m.Out[j], p.GAddr, i), out[j])
	}
}

// Operands are what one launch works on, in the order of the spec.
type Operands struct {
	In, Out, Ones []kernel.Place
	Scalars       []float32
	N             int
}

// Launch describes the launch for N elements.
func (m *Map) Launch(o Operands) (ptx.Launch, *ptx.Args, error) {
	if len(o.In) != len(m.in) || len(o.Out) != len(m.out) || len(o.Ones) != len(m.ones) || len(o.Scalars) != len(m.scalars) || o.N < 1 || o.N >= 1<<31 {
		return ptx.Launch{}, nil, fmt.Errorf("elem: %s: %d inputs, %d outputs, %d and %d shared values, %d elements do not fit the kernel", m.Name, len(o.In), len(o.Out), len(o.Ones), len(o.Scalars), o.N)
	}
	a := m.Entry.NewArgs()
	put := func(ps []ptx.ParamPtr, ts []num.DType, at []kernel.Place) error {
		for i, p := range ps {
			if m.Wide && !at[i].Aligned() && ts != nil {
				return fmt.Errorf("elem: %s: operand %d starts at byte %d, want a multiple of 16", m.Name, i, at[i].Offset)
			}
			at[i].Put(a, p)
		}
		return nil
	}
	for _, err := range []error{put(m.in, m.In, o.In), put(m.out, m.Out, o.Out), put(m.ones, nil, o.Ones)} {
		if err != nil {
			return ptx.Launch{}, nil, err
		}
	}
	for i, s := range m.scalars {
		s.Put(a, o.Scalars[i])
	}
	m.n.Put(a, uint32(o.N))
	per := threads * m.width()
	return ptx.Launch{Entry: m.Entry.Name, Grid: ptx.Dim3{X: (o.N + per - 1) / per}}, a, nil
}

// Module is the kernel alone.
func (m *Map) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{m.Entry}} }
