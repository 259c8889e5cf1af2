package conform

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"

	"heddle/num"
	"heddle/ptx"
)

// Product is D = A·Bᵀ of one 64 × N tile by wgmma, A and B brought by TMA under one swizzle.
type Product struct {
	Type    num.DType // BF16, F16, TF32, E4M3, E5M2
	N       int
	Swizzle ptx.Swizzle
	TransA  bool // A lies M-major in memory: [K, M]; 16-bit types only
	TransB  bool // B lies N-major: [K, N]
	Regs    bool // A comes from registers; 16-bit types only
	Reals   bool // normal numbers, compared by a bound; else small integers, which are exact
	Seed    int64
}

func (p Product) String() string {
	return fmt.Sprintf("product %v n%d %v transposed %t %t registers %t reals %t", p.Type, p.N, p.Swizzle, p.TransA, p.TransB, p.Regs, p.Reals)
}

// k is the depth of the tile: one swizzle width where a tile is K-major, else 64; four columns of 16 bytes where there is no swizzle.
func (p Product) k() int {
	switch {
	case p.Swizzle == ptx.SwizzleNone:
		return 64 / p.Type.Size()
	case p.TransA && p.TransB:
		return 64
	}
	return p.Swizzle.Width() / p.Type.Size()
}

// operand is one of the two tiles.
type operand struct {
	rows   int // along M or N
	trans  bool
	region ptx.SAddr
	m      ptx.ParamMap
}

// Program builds the product: one warpgroup.
func (p Product) Program() (Program, error) {
	kb := ptx.New("product", 128, 1)
	a := operand{64, p.TransA, kb.Shared("A", 64*p.k()*p.Type.Size(), 1024).Addr(), kb.ParamMap("A")}
	b := operand{p.N, p.TransB, kb.Shared("B", p.N*p.k()*p.Type.Size(), 1024).Addr(), kb.ParamMap("B")}
	out := kb.ParamPtr("out")
	bar := kb.Bars("bar", 1)
	kb.If(kb.Tid().Eq(kb.U32(0)), func() {
		bar.Init(1)
		kb.FenceMbarrierInit()
		bar.ArriveExpect((64 + p.N) * p.k() * p.Type.Size())
		p.load(kb, a, bar)
		p.load(kb, b, bar)
	})
	kb.SyncCTA()
	bar.Wait(kb.U32(0))
	acc := kb.NewAcc(p.N)
	p.multiply(kb, acc, a, b)
	thread := kb.Tid()
	row := thread.Shr(5).Shl(4).Add(thread.And(kb.U32(31)).Shr(2))
	for i := range acc.Len() {
		r := row.Plus(i / 2 % 2 * 8)
		c := thread.And(kb.U32(3)).Shl(1).Plus(i/4*8 + i%2)
		out.At(r.Times(p.N).Add(c).MulWide(kb.U32(4))).StoreF32(acc.F32(i))
	}
	e, err := kb.Build()
	if err != nil {
		return Program{}, err
	}
	return Program{
		Name: p.String(), Entry: e, Launch: ptx.Launch{Entry: "product", Grid: ptx.Dim3{X: 1}}, Floats: true, Within: p.within(),
		Args: func() (*ptx.Args, *ptx.Buffer) {
			args, dst := e.NewArgs(), words("out", make([]uint32, 64*p.N))
			x, y := p.matrices()
			a.m.Put(args, p.tensor("A", x, 64, p.TransA))
			b.m.Put(args, p.tensor("B", y, p.N, p.TransB))
			out.Put(args, dst, 0)
			return args, dst
		},
		Want: p.want,
	}, nil
}

// load copies one operand: K-major in one box, MN-major a box for each chunk of one swizzle width, without swizzle a box for each column of 16 bytes.
func (p Product) load(k *ptx.Builder, o operand, bar ptx.Bar) {
	if p.Swizzle == ptx.SwizzleNone {
		for c := range 4 {
			o.m.Load2(o.region.Plus(c*o.rows*16), k.U32(c*16/p.Type.Size()), k.U32(0), bar)
		}
		return
	}
	if !o.trans {
		o.m.Load2(o.region, k.U32(0), k.U32(0), bar)
		return
	}
	chunk := p.Swizzle.Width() / p.Type.Size()
	for c := range o.rows / chunk {
		o.m.Load2(o.region.Plus(c*p.k()*p.Swizzle.Width()), k.U32(c*chunk), k.U32(0), bar)
	}
}

func (p Product) layout(o operand) ptx.DescLayout {
	switch {
	case p.Swizzle == ptx.SwizzleNone:
		return ptx.DescLayout{Leading: 16 * o.rows, Stride: 128}
	case o.trans:
		return ptx.MNMajor(p.Swizzle, p.k())
	}
	return ptx.KMajor(p.Swizzle)
}

func (p Product) multiply(k *ptx.Builder, acc *ptx.Acc, a, b operand) {
	depth := 32 / p.Type.Size() // elements along K of one instruction
	da, db := k.Desc(a.region, p.layout(a)), k.Desc(b.region, p.layout(b))
	step := func(o operand, j int) int { // units of 16 bytes to k step j
		switch {
		case p.Swizzle == ptx.SwizzleNone: // two columns of 16 bytes
			return 2 * j * o.rows
		case o.trans:
			return j * depth * p.Swizzle.Width() / 16
		}
		return 2 * j
	}
	flag := func(t bool) int {
		if t {
			return 1
		}
		return 0
	}
	var fragments [][4]ptx.U32
	for j := range p.k() / depth {
		if p.Regs {
			fragments = append(fragments, p.fragment(k, a, j))
		}
	}
	k.WgmmaFence()
	for j := range p.k() / depth {
		x, y, more := da.Step(step(a, j)), db.Step(step(b, j)), k.Bool(j > 0)
		if p.Regs && p.Type == num.F16 {
			acc.MMAF16R(fragments[j], y, more, flag(b.trans))
			continue
		} else if p.Regs {
			acc.MMABF16R(fragments[j], y, more, flag(b.trans))
			continue
		}
		switch p.Type {
		case num.BF16:
			acc.MMABF16(x, y, more, flag(a.trans), flag(b.trans))
		case num.F16:
			acc.MMAF16(x, y, more, flag(a.trans), flag(b.trans))
		case num.TF32:
			acc.MMATF32(x, y, more)
		case num.E4M3:
			acc.MMAE4M3(x, y, more)
		case num.E5M2:
			acc.MMAE5M2(x, y, more)
		}
	}
	k.WgmmaCommit()
	k.WgmmaWait(0)
}

// fragment reads this thread's registers of A for k step j from the swizzled tile: rows l/4 and l/4+8 of its warp's sixteen, columns 2(l%4) and 2(l%4)+8.
func (p Product) fragment(k *ptx.Builder, a operand, j int) (regs [4]ptx.U32) {
	lane := k.Lane()
	for i := range regs {
		row := k.WarpIndex().Shl(4).Add(lane.Shr(2)).Plus(i % 2 * 8)
		at := row.Times(p.Swizzle.Width()).Add(lane.And(k.U32(3)).Shl(2)).Plus(32*j + i/2*16)
		at = at.Xor(at.Shr(7).And(k.U32(1<<p.Swizzle - 1)).Shl(4))
		regs[i] = a.region.At(at).LoadU32()
	}
	return regs
}

// matrices are A [64, k] and B [N, k] of small integers, exact in every type and in every sum, or of normal numbers rounded to the type.
func (p Product) matrices() (a, b []float32) {
	r := rand.New(rand.NewSource(p.Seed))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			if x[i] = float32(r.Intn(5) - 2); p.Reals {
				x[i] = p.round(float32(r.NormFloat64()))
			}
		}
		return x
	}
	return draw(64 * p.k()), draw(p.N * p.k())
}

func (p Product) round(x float32) float32 {
	switch p.Type {
	case num.BF16:
		return num.FromBF16(num.ToBF16(x))
	case num.F16:
		return num.FromF16(num.ToF16(x))
	case num.E4M3:
		return num.FromE4M3(num.ToE4M3(x))
	case num.E5M2:
		return num.FromE5M2(num.ToE5M2(x))
	}
	return num.ToTF32(x)
}

// within bounds the error of each sum: k roundings, and as many truncations of the aligned terms, each at most 2⁻²² of Σ|a||b| in an accumulator of 23 bits and
// more; fp8's keeps 13 bits (DeepSeek-V3, arXiv:2412.19437, section 3.3.2), and so each is 2⁻¹³ there.
func (p Product) within() func(int, float32) float64 {
	if !p.Reals {
		return nil
	}
	a, b := p.matrices()
	k, unit := p.k(), 0x1p-22
	if p.Type.Size() == 1 {
		unit = 0x1p-13
	}
	return func(word int, _ float32) float64 {
		i, j, sum := word/p.N, word%p.N, 0.0
		for c := range k {
			sum += math.Abs(float64(a[i*k+c]) * float64(b[j*k+c]))
		}
		return float64(k) * unit * sum
	}
}

// tensor lays a matrix [rows, k] out in memory, transposed where it is to be, and describes it.
func (p Product) tensor(name string, x []float32, rows int, trans bool) *ptx.Map {
	size, k := p.Type.Size(), p.k()
	buf := &ptx.Buffer{Name: name, Data: make([]byte, rows*k*size)}
	for r := range rows {
		for c := range k {
			at := r*k + c
			if trans {
				at = c*rows + r
			}
			p.put(buf.Data[at*size:], x[r*k+c])
		}
	}
	t := p.Type
	if size == 1 {
		t = num.U8
	}
	m := &ptx.Map{Type: t, Buffer: buf, Dims: []int{k, rows}, Strides: []int{k * size}, Box: []int{k, rows}, Swizzle: p.Swizzle}
	if p.Swizzle == ptx.SwizzleNone {
		m.Box[0] = 16 / size
	}
	if trans {
		m.Dims, m.Strides, m.Box = []int{rows, k}, []int{rows * size}, []int{p.Swizzle.Width() / size, k}
	}
	return m
}

func (p Product) put(b []byte, x float32) {
	switch p.Type {
	case num.BF16:
		binary.LittleEndian.PutUint16(b, num.ToBF16(x))
	case num.F16:
		binary.LittleEndian.PutUint16(b, num.ToF16(x))
	case num.TF32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(x))
	case num.E4M3:
		b[0] = num.ToE4M3(x)
	case num.E5M2:
		b[0] = num.ToE5M2(x)
	}
}

func (p Product) want() []byte {
	a, b := p.matrices()
	k := p.k()
	out := make([]byte, 4*64*p.N)
	for i := range 64 {
		for j := range p.N {
			var sum float32
			for c := range k {
				sum += a[i*k+c] * b[j*k+c]
			}
			binary.LittleEndian.PutUint32(out[4*(i*p.N+j):], math.Float32bits(sum))
		}
	}
	return out
}

// Products are every type × swizzle × N, and, for the types that have them, majors and A from registers over several N.
func Products() []Product {
	var all []Product
	for _, t := range []num.DType{num.BF16, num.F16, num.TF32, num.E4M3, num.E5M2} {
		for s := ptx.SwizzleNone; s <= ptx.Swizzle128; s++ {
			for n := 8; n <= 256; n += 8 {
				all = append(all, Product{Type: t, N: n, Swizzle: s, Reals: n%32 == 16, Seed: int64(n)})
			}
			if t.Size() != 2 || s == ptx.SwizzleNone {
				continue
			}
			for i, n := range []int{8, 40, 136, 256} {
				all = append(all, Product{Type: t, N: n, Swizzle: s, Regs: true, Reals: i%2 == 1, Seed: int64(i)})
			}
			all = append(all, Product{Type: t, N: 64, Swizzle: s, Regs: true, TransB: true})
			for i, n := range []int{64, 128, 192, 256} { // MN-major tiles are cut into whole chunks
				for major := 1; major < 4; major++ {
					all = append(all, Product{Type: t, N: n, Swizzle: s, TransA: major&1 != 0, TransB: major&2 != 0, Reals: i == 2, Seed: int64(i)})
				}
			}
		}
	}
	return all
}
