package elem

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Case is n elements of normal data, in buffers that begin 16 bytes in where the kernel is wide, one element in where it is not.
func (m *Map) Case(n int, seed int64) (kernel.Case, error) {
	r := rand.New(rand.NewSource(seed))
	fresh := func(name string, t num.DType, n int) *kernel.Sample {
		off := t.Size()
		if m.Wide {
			off = 16
		}
		return kernel.NewSample(name, t, n, off)
	}
	o, shared := Operands{N: n}, m.draw(r)[len(m.In):]
	in, out := make([]*kernel.Sample, len(m.In)), make([]*kernel.Sample, len(m.Out))
	for j, t := range m.In {
		in[j] = fresh(fmt.Sprintf("in%d", j), t, n)
		o.In = append(o.In, in[j].Place())
	}
	for j, t := range m.Out {
		out[j] = fresh(fmt.Sprintf("out%d", j), t, n)
		o.Out = append(o.Out, out[j].Place())
	}
	for j := range m.Ones {
		one := kernel.NewSample(m.Ones[j], num.F32, 1, 0)
		shared[j] = one.Set(0, shared[j])
		o.Ones = append(o.Ones, one.Place())
	}
	for j := range m.Scalars {
		s := float32(shared[len(m.Ones)+j])
		shared[len(m.Ones)+j] = float64(s)
		o.Scalars = append(o.Scalars, s)
	}
	x := make([][]float64, n)
	for i := range x {
		x[i] = append(m.draw(r)[:len(m.In)], shared...)
		for j := range in {
			x[i][j] = in[j].Set(i, x[i][j])
		}
	}
	l, args, err := m.Launch(o)
	return kernel.Case{Name: fmt.Sprint(n), Launch: l, Args: args, Check: func() error { return m.check(x, out) }}, err
}

func (m *Map) draw(r *rand.Rand) []float64 {
	if m.Sample != nil {
		return m.Sample(r.NormFloat64)
	}
	x := make([]float64, len(m.In)+len(m.Ones)+len(m.Scalars))
	for i := range x {
		x[i] = 2 * r.NormFloat64()
	}
	return x
}

// check allows what at most 16 roundings of float32 can do to numbers that are never larger than Π(1+|x|) over the inputs, and the rounding of the output.
func (m *Map) check(x [][]float64, out []*kernel.Sample) error {
	for j, s := range out {
		for i := range x {
			want, size := m.Ref(x[i])[j], 1.0
			for _, v := range x[i][:len(m.In)] {
				size *= 1 + math.Abs(v)
			}
			got, bound := s.At(i), 0x1p-20*size+kernel.Rounding(s.Type)*math.Abs(want)
			if !(math.Abs(got-want) <= bound) {
				return fmt.Errorf("elem: %s: output %d of element %d is %v, want %v ± %v", m.Name, j, i, got, want, bound)
			}
		}
		if !s.Intact() {
			return fmt.Errorf("elem: %s: output %d is written outside its elements", m.Name, j)
		}
	}
	return nil
}

// Cases are fewer elements than a thread takes, broken groups, and more than one CTA.
func (m *Map) Cases(int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, n := range []int{1, 8, 13, 2048, 4099} {
		c, err := m.Case(n, int64(i))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase is any: the kernel synchronises nothing.
func (m *Map) FaultCase() (kernel.Case, int, error) {
	c, err := m.Case(13, 1)
	return c, 1, err
}

// Equivalent knows the one mutant there is: the join that the builder puts behind the branch.
func (m *Map) Equivalent(x ptx.Mutant) string {
	if x.Op == ptx.OpWarpSync {
		return "the warp's join at the kernel's end: nothing but the end follows"
	}
	return ""
}
