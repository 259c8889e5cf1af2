package gemm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
	"heddle/tile"
)

// Exact is a product of random small integers, whose result is exact: |a|, |b| ≤ 2 and K ≤ 2²⁰ keep every sum below 2²⁴, and the
// reference rounds once to D's type as the kernel does. D is filled with NaN before, with small integers where the product is added; each buffer ends in a guard
// band. One Exact serves kernels of every type and layout, one case at a time.
type Exact struct {
	M, N, K int
	a, b    []float32 // [M, K], [N, K]
	before  []float32 // D, where the product is added
	product []float32 // once computed
	seed    int64
}

// NewExact draws one.
func NewExact(m, n, k int, seed int64) *Exact {
	r := rand.New(rand.NewSource(seed))
	return &Exact{M: m, N: n, K: k, a: integers(m*k, r), b: integers(n*k, r), before: integers(m*n, r), seed: seed}
}

func integers(n int, r *rand.Rand) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.Intn(5) - 2)
	}
	return x
}

// Case makes the buffers of g and describes the launch on a device that runs so many CTAs of it at once.
func (x *Exact) Case(g *Gemm, ctas int) (kernel.Case, error) {
	c := g.Config
	if c.Groups != Alone {
		return x.grouped(g, ctas)
	}
	a, b := x.a, x.b
	if c.TransA {
		a = transposed(a, x.M, x.K)
	}
	if c.TransB {
		b = transposed(b, x.N, x.K)
	}
	p := Problem{M: x.M, N: x.N, K: x.K, A: buffer("A", c.In, len(a)), B: buffer("B", c.In, len(b)), D: buffer("D", c.Out, x.M*c.Epi.Act.Columns(x.N))}
	fill(p.A, c.In, a)
	fill(p.B, c.In, b)
	if c.Add {
		fill(p.D, c.Out, x.before)
	}
	check := func() error { return x.check(c, p.D) }
	if c.Epi != (kernel.Epilogue{}) {
		check = x.epilogue(c, &p)
	}
	if c.Blocks {
		check = x.scaled(c, &p)
	}
	if n := g.Workspace(ctas); n > 0 {
		zero := c.flagBytes(ctas)
		if c.Dynamic {
			zero = n
		}
		p.Work = workspace(n, zero)
		plain := check
		check = func() error { return errors.Join(plain(), flagsDown(p.Work, zero)) }
	}
	if c.Order.Table {
		path, err := g.Path(x.M, x.N, tile.Hilbert)
		if err != nil {
			return kernel.Case{}, err
		}
		p.Table = &ptx.Buffer{Name: "table"}
		for _, t := range path {
			p.Table.Data = binary.LittleEndian.AppendUint32(p.Table.Data, t)
		}
	}
	l, args, err := g.Launch(p, ctas)
	return kernel.Case{Name: fmt.Sprintf("%dx%dx%d", x.M, x.N, x.K), Launch: l, Args: args, Check: check}, err
}

// CaseOf is Case for another kernel of the plain product, bf16 to bf16.
func (x *Exact) CaseOf(launch func(Problem) (ptx.Launch, *ptx.Args, error)) (kernel.Case, error) {
	c := Config{}.Full()
	p := Problem{M: x.M, N: x.N, K: x.K, A: buffer("A", c.In, len(x.a)), B: buffer("B", c.In, len(x.b)), D: buffer("D", c.Out, x.M*x.N)}
	fill(p.A, c.In, x.a)
	fill(p.B, c.In, x.b)
	l, args, err := launch(p)
	return kernel.Case{Name: fmt.Sprintf("%dx%dx%d", x.M, x.N, x.K), Launch: l, Args: args, Check: func() error { return x.check(c, p.D) }}, err
}

// workspace is flags that are down and sums that are NaN.
func workspace(n, flags int) *ptx.Buffer {
	b := &ptx.Buffer{Name: "workspace", Data: make([]byte, n)}
	for i := flags; i < n; i++ {
		b.Data[i] = 0xff
	}
	return b
}

// flagsDown checks that a launch has left the workspace as the next one needs it.
func flagsDown(b *ptx.Buffer, flags int) error {
	for i, x := range b.Data[:flags] {
		if x != 0 {
			return fmt.Errorf("gemm: flag %d of the workspace is up after the launch", i/4)
		}
	}
	return nil
}

const guard = 256 // bytes behind a buffer that nothing may touch

// buffer makes a buffer of n NaNs and a guard band of the same.
func buffer(name string, t num.DType, n int) *ptx.Buffer {
	b := &ptx.Buffer{Name: name, Data: make([]byte, n*t.Size()+guard)}
	for i := range len(b.Data) / t.Size() {
		put(b, t, i, float32(math.NaN()))
	}
	return b
}

func fill(b *ptx.Buffer, t num.DType, x []float32) {
	for i, v := range x {
		put(b, t, i, v)
	}
}

func put(b *ptx.Buffer, t num.DType, i int, x float32) {
	switch t {
	case num.BF16:
		binary.LittleEndian.PutUint16(b.Data[2*i:], num.ToBF16(x))
	case num.F16:
		binary.LittleEndian.PutUint16(b.Data[2*i:], num.ToF16(x))
	case num.E4M3:
		b.Data[i] = num.ToE4M3(x)
	case num.E5M2:
		b.Data[i] = num.ToE5M2(x)
	case num.F32, num.TF32:
		binary.LittleEndian.PutUint32(b.Data[4*i:], math.Float32bits(x))
	}
}

func at(b *ptx.Buffer, t num.DType, i int) float32 {
	switch t {
	case num.BF16:
		return num.FromBF16(binary.LittleEndian.Uint16(b.Data[2*i:]))
	case num.F16:
		return num.FromF16(binary.LittleEndian.Uint16(b.Data[2*i:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b.Data[4*i:]))
}

// transposed is [k, rows] of x [rows, k].
func transposed(x []float32, rows, k int) []float32 {
	y := make([]float32, len(x))
	for i := range rows {
		for j := range k {
			y[j*rows+i] = x[i*k+j]
		}
	}
	return y
}

// check compares D with the plain product.
func (x *Exact) check(c Config, d *ptx.Buffer) error {
	for i, sum := range x.reference() {
		if c.Add {
			sum += x.before[i]
		}
		if got, want := at(d, c.Out, i), num.Round(c.Out, sum); got != want {
			return fmt.Errorf("gemm: D[%d,%d] = %v, want %v", i/x.N, i%x.N, got, want)
		}
	}
	return untouched(d, c.Out, len(x.product))
}

// untouched checks the guard band behind n elements.
func untouched(d *ptx.Buffer, t num.DType, n int) error {
	for i := n; i < len(d.Data)/t.Size(); i++ {
		if v := at(d, t, i); !math.IsNaN(float64(v)) {
			return fmt.Errorf("gemm: %v written %d elements behind %s", v, i-n, d.Name)
		}
	}
	return nil
}

// reference is the product.
func (x *Exact) reference() []float32 {
	if x.product != nil {
		return x.product
	}
	d := make([]float32, x.M*x.N)
	for i := range d {
		a, b := x.a[i/x.N*x.K:][:x.K], x.b[i%x.N*x.K:][:x.K]
		var sum float32
		for k := range a {
			sum += a[k] * b[k]
		}
		d[i] = sum
	}
	x.product = d
	return d
}

// Sizes are M, N, K of whole and ragged products that the configuration can take: fewer and more tiles than CTAs, fewer and more k steps than stages.
func (c Config) Sizes() [][3]int {
	odd, deep := 1, 72
	if c.Blocks {
		odd = 4 // rows of scales are a multiple of 16 bytes
	}
	if c.TransA {
		odd = 8 // M is then the contiguous dim
		if c.TransB {
			deep = 71
		}
	}
	if c.Epi.Act == kernel.SwiGLU { // half of N is D's width
		return [][3]int{{256, 256, 256}, {136, 208, deep}, {512, 256, 1024}, {8, 16, 8}, {odd, 32, 24}, {304, 528, 640}}
	}
	if c.elem() == 1 {
		return [][3]int{{256, 256, 256}, {136, 200, 80}, {512, 256, 1024}, {8, 8, 16}, {odd, 16, 48}, {304, 520, 640}}
	}
	return [][3]int{{256, 256, 256}, {136, 200, deep}, {512, 256, 1024}, {8, 8, 8}, {odd, 16, 24}, {304, 520, 640}}
}

// Cases are products of all Sizes.
func (g *Gemm) Cases(ctas int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, s := range g.Config.Sizes() {
		c, err := NewExact(s[0], s[1], s[2], int64(i)).Case(g, ctas)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase gives one cluster two tiles of stages + 2 k steps each, four in ping-pong, where the consumers take turns; stream-K's three clusters share the last of
// four tiles, and two draw theirs.
func (g *Gemm) FaultCase() (kernel.Case, int, error) {
	c, tiles, clusters := g.Config, 2, 1
	switch {
	case c.StreamK:
		tiles, clusters = 4, 3
	case c.Dynamic:
		tiles, clusters = 4, 2
	case c.PingPong:
		tiles = 4
	}
	k, err := NewExact(c.BM*c.ClusterM, tiles*c.BN*c.ClusterN, (c.Stages+2)*c.BK, 7).Case(g, clusters*c.Cluster())
	return k, clusters * c.Cluster(), err
}
