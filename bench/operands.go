package bench

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"heddle/cuda"
	"heddle/cuda/cublas"
	"heddle/num"
)

//go:embed helpers.ptx
var helpersPTX string

// Product is C = A·Bᵀ in row-major bf16 on the device: A [M, K], or [K, M] where it is transposed, B [N, K], or [K, N], C [M, N].
type Product struct {
	M, N, K        int
	A, B, C        cuda.Ptr
	TransA, TransB bool
	In             num.DType // of A and B: BF16, E4M3 or E5M2
}

// peer is the product as cuBLAS takes it.
func (p Product) peer() cublas.Problem {
	q := cublas.Problem{M: p.M, N: p.N, K: p.K, A: p.A, B: p.B, C: p.C, TransA: p.TransA, TransB: p.TransB}
	switch p.In {
	case num.E4M3:
		q.Type = cublas.E4M3
	case num.E5M2:
		q.Type = cublas.E5M2
	}
	return q
}

// operands are sets of A, B and C of one shape in one allocation, A and B normal(0,1).
type operands struct {
	dev   *cuda.Device
	block cuda.Ptr
	sets  []Product
}

// helpers are this package's own small kernels.
type helpers struct {
	dev         *cuda.Device
	stream      *cuda.Stream
	fill, delay *cuda.Function
	pause       *cuda.Prepared
}

// delayNanoseconds covers the host's time to queue two events and a cuBLAS call: 15 µs when warm, 60 to 120 µs after idle on a slow host. Protocol.held checks that it did.
const delayNanoseconds = 500_000

func loadHelpers(dev *cuda.Device, s *cuda.Stream, cache *cuda.Cache) (*helpers, error) {
	m, err := dev.Compile(helpersPTX, cache)
	if err != nil {
		return nil, err
	}
	h := &helpers{dev: dev, stream: s}
	if h.fill, err = m.Function("fill_normal"); err != nil {
		return nil, err
	}
	if h.delay, err = m.Function("delay"); err != nil {
		return nil, err
	}
	args := new(cuda.Args)
	args.U64(delayNanoseconds)
	h.pause, err = h.delay.Prepare(cuda.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, args)
	return h, err
}

// Delay keeps the stream busy for delayNanoseconds.
func (h *helpers) Delay() error { return h.pause.Launch(h.stream) }

// normal fills count bf16 numbers, an even number, with normal(0,1).
func (h *helpers) normal(at cuda.Ptr, count int, seed uint64) error {
	args := new(cuda.Args)
	args.Ptr(at)
	args.U64(uint64(count / 2))
	args.U64(seed)
	p, err := h.fill.Prepare(cuda.Launch{Grid: [3]uint32{1024, 1, 1}, Block: [3]uint32{256, 1, 1}}, args)
	if err != nil {
		return err
	}
	return p.Launch(h.stream)
}

// normal8 fills count fp8 numbers with normal(0,1): four million of them drawn on the host, again and again.
func (h *helpers) normal8(at cuda.Ptr, count int, seed uint64, t num.DType) error {
	rng, block := rand.New(rand.NewPCG(seed, 8)), make([]byte, min(count, 1<<22-3)) // an odd period: rows differ
	for i := range block {
		x := float32(rng.NormFloat64())
		if block[i] = num.ToE4M3(x); t == num.E5M2 {
			block[i] = num.ToE5M2(x)
		}
	}
	for ; count > 0; count -= len(block) {
		block = block[:min(count, len(block))]
		if err := h.dev.CopyIn(at, block); err != nil {
			return err
		}
		at += cuda.Ptr(len(block))
	}
	return nil
}

// newOperands makes enough sets that their inputs exceed the L2 three times, and two at least.
func newOperands(h *helpers, m, n, k int, in num.DType) (*operands, error) {
	fill, size := h.normal, in.Size()
	if size == 1 {
		fill = func(at cuda.Ptr, count int, seed uint64) error { return h.normal8(at, count, seed, in) }
	}
	a, b, c := align(m*k*size), align(n*k*size), align(m*n*2)
	count := max(2, (3*h.dev.L2Bytes+a+b-1)/(a+b))
	block, err := h.dev.Alloc(count * (a + b + c))
	if err != nil {
		return nil, err
	}
	o := &operands{dev: h.dev, block: block}
	for i := range count {
		at := block + cuda.Ptr(i*(a+b+c))
		p := Product{M: m, N: n, K: k, A: at, B: at + cuda.Ptr(a), C: at + cuda.Ptr(a+b), In: in}
		o.sets = append(o.sets, p)
		if err := fill(p.A, m*k, uint64(2*i+1)); err != nil {
			return nil, err
		}
		if err := fill(p.B, n*k, uint64(2*i+2)); err != nil {
			return nil, err
		}
	}
	return o, h.stream.Synchronize()
}

func align(bytes int) int { return (bytes + 1023) &^ 1023 }

func (o *operands) free() error { return o.dev.Free(o.block) }

// Check is what comparing one side's output found.
type Check struct {
	Side      string  `json:"side"`
	Sampled   int     `json:"sampled"`             // elements compared with float64
	Worst     float64 `json:"worst_over_bound"`    // largest error over its bound; above 1 is wrong
	Compared  int     `json:"compared,omitempty"`  // elements compared with the peer
	Different int     `json:"different,omitempty"` // of those, further apart than the bound
	Norm      float64 `json:"relative_norm"`       // ‖out − ref‖/‖ref‖ over the sampled elements
	InputMean float64 `json:"input_mean"`
	InputStd  float64 `json:"input_std"`
}

// bound is the error allowed for one element: half a unit in the last place of bf16 (8 significant bits: 2⁻⁸ of the value at most), and the f32 accumulation of K products of normal(0,1) numbers.
// Its partial sums grow like √k and the tensor core truncates, so each of K steps loses up to 2⁻²⁴·√K on average in one direction: K·√K·2⁻²⁴. At K = 16384 that is 0.125 where results have
// spread 128, and losing one k-block of 64 shifts results by 8.
//
// The tensor core sums fp8 with about 14 bits (arXiv 2412.19437, section 3.3.2), once for each 32 products: K/32·√K·2⁻¹³.
func (p Product) bound(ref float64) float64 {
	if p.In.Size() == 1 {
		return math.Abs(ref)/256 + float64(p.K)/32*math.Sqrt(float64(p.K))/(1<<13)
	}
	return bound(ref, p.K)
}

func bound(ref float64, k int) float64 {
	return math.Abs(ref)/256 + float64(k)*math.Sqrt(float64(k))/(1<<24)
}

// check poisons C, runs a side on set 0 and compares random elements with float64, and all of them with peer's, where given. It returns C.
func (o *operands) check(s *cuda.Stream, side Side, peer []byte) (c Check, out []byte, err error) {
	p := o.sets[0]
	c.Side = side.Name
	if err := s.Fill(p.C, 0xff, p.M*p.N*2); err != nil { // bf16 NaN everywhere
		return c, nil, err
	}
	if err := side.Launch(0); err != nil {
		return c, nil, err
	}
	if err := s.Synchronize(); err != nil {
		return c, nil, err
	}
	out = make([]byte, p.M*p.N*2)
	if err := o.dev.CopyOut(out, p.C); err != nil {
		return c, nil, err
	}
	if err := o.sample(&c, out); err != nil {
		return c, nil, err
	}
	for i := 0; i < len(peer); i += 2 {
		a, b := bf16(out[i:]), bf16(peer[i:])
		c.Compared++
		if d := math.Abs(a - b); !(d <= 2*p.bound(max(math.Abs(a), math.Abs(b)))) { // a NaN differs
			c.Different++
		}
	}
	return c, out, nil
}

// sample compares corners and random elements with a float64 sum of the bf16 inputs.
func (o *operands) sample(c *Check, out []byte) error {
	p, rng := o.sets[0], rand.New(rand.NewPCG(1, uint64(len(out))))
	row, col := make([]byte, p.K*2), make([]byte, p.K*2)
	var sum, squares, errs, refs float64
	const count = 200
	for t := range count {
		i, j := rng.IntN(p.M), rng.IntN(p.N)
		if t < 4 {
			i, j = t/2*(p.M-1), t%2*(p.N-1)
		}
		if err := o.dev.CopyOut(row, p.A+cuda.Ptr(i*p.K*2)); err != nil {
			return err
		}
		if err := o.dev.CopyOut(col, p.B+cuda.Ptr(j*p.K*2)); err != nil {
			return err
		}
		var ref float64
		for k := 0; k < len(row); k += 2 {
			a, b := bf16(row[k:]), bf16(col[k:])
			ref += a * b
			sum += a + b
			squares += a*a + b*b
		}
		d := math.Abs(bf16(out[(i*p.N+j)*2:]) - ref)
		if r := d / p.bound(ref); !(r <= c.Worst) {
			c.Worst = r
		}
		errs, refs = errs+d*d, refs+ref*ref
	}
	n := float64(count * 2 * p.K)
	c.Sampled, c.Norm, c.InputMean = count, math.Sqrt(errs/refs), sum/n
	c.InputStd = math.Sqrt(squares/n - c.InputMean*c.InputMean)
	return nil
}

// verdict turns a Check into an error where it found a fault.
func (c *Check) verdict() error {
	switch {
	case !(c.Worst <= 1):
		return fmt.Errorf("bench: %s is wrong: largest error %.3g times the bound, relative norm %.3g", c.Side, c.Worst, c.Norm)
	case c.Different > 0:
		return fmt.Errorf("bench: %s is wrong: %d of %d elements differ from the peer's", c.Side, c.Different, c.Compared)
	case !(math.Abs(c.InputMean) < 0.05 && math.Abs(c.InputStd-1) < 0.05):
		return fmt.Errorf("bench: inputs are not normal(0,1): mean %.3g, deviation %.3g", c.InputMean, c.InputStd)
	}
	return nil
}

func bf16(b []byte) float64 {
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
}
