package launch

import (
	"heddle/cuda"
	"heddle/kernel/gemm"
	"heddle/kernel/signature"
	"heddle/num"
	"heddle/ptx"
)

// The chain is
//
//	C = 0; E = 0; C = A·Bᵀ; E = C·Dᵀ
//
// over squares of bf16. The zeros are dead work on purpose: small kernels such as real chains are full of. All chains share C, as workspace is shared in earnest: a
// chain that begins before the one in front of it is done spoils that one's E.
const kernelsPerChain = 4

// operands are one chain's matrices, each [n, n] bf16.
type operands struct{ a, b, c, d, e cuda.Ptr }

// memory is as many chains' operands as fit, in one allocation, and the stamps of all their launches.
type memory struct {
	n      int
	block  cuda.Ptr
	chains []operands
}

// maxSets bounds the sets of operands: chains beyond take them in turn. Every set has inputs of its own, so that a result of one is wrong for another.
const maxSets = 16

// allocate makes the sets and fills A, B and D.
func (s *session) allocate(n int) (*memory, error) {
	bytes := (2*n*n + 1023) &^ 1023
	sets := max(2, min(maxSets, s.Chains, 4<<30/(4*bytes)))
	m := &memory{n: n}
	var err error
	if m.block, err = s.dev.Alloc((1 + 4*sets) * bytes); err != nil {
		return nil, err
	}
	for i := range sets {
		at := func(j int) cuda.Ptr { return m.block + cuda.Ptr((1+4*i+j)*bytes) }
		o := operands{a: at(0), b: at(1), c: m.block, d: at(2), e: at(3)}
		for j, p := range []cuda.Ptr{o.a, o.b, o.d} {
			if err := s.normal(p, n*n, uint64(3*i+j+1)); err != nil {
				return nil, err
			}
		}
		m.chains = append(m.chains, o)
	}
	return m, s.stream.Synchronize()
}

// of is the operands of chain number i.
func (m *memory) of(i int) operands { return m.chains[i%len(m.chains)] }

func (m *memory) matrix(at cuda.Ptr) signature.Tensor {
	return signature.Packed(uint64(at), num.BF16, m.n, m.n)
}

// build is the chain's two kernels, built one way.
type build struct {
	zero     *zero
	gemm     *gemm.Gemm
	zeroFunc *cuda.Function
	gemmFunc *cuda.Function
	zeros    *signature.Handle[cleared]
	gemms    *signature.Handle[gemm.Matrices]
	ctas     int
	stamps   *stamps // nil: the kernels take no stamps
}

// how a build is made.
type how struct {
	overlap gemm.Overlap // whether kernels wait and trigger
	pdl     bool         // whether launches say that they may start early
	stamped bool
	waits   waits
}

// waits say which kernels have their waits taken out, to see whether the check notices.
type waits uint8

const (
	allWait waits = iota
	noneWaits
	zerosDoNot
)

// build compiles the chain and binds its handles.
func (s *session) build(c gemm.Config, h how) (*build, error) {
	b := new(build)
	var err error
	if b.zero, err = newZero(h.overlap); err != nil {
		return nil, err
	}
	c.Overlap = h.overlap
	if b.gemm, err = gemm.New(c); err != nil {
		return nil, err
	}
	var zeroChanges, gemmChanges []func(string) (string, error)
	if h.waits != allWait {
		zeroChanges = append(zeroChanges, unwaited)
	}
	if h.waits == noneWaits {
		gemmChanges = append(gemmChanges, unwaited)
	}
	if h.stamped {
		b.stamps = new(stamps)
		zeroChanges = append(zeroChanges, func(text string) (string, error) { return stamped(text, someEnd) })
		gemmChanges = append(gemmChanges, func(text string) (string, error) { return stamped(text, allEnd) })
	}
	if b.zeroFunc, err = s.compile(b.zero.module(), zeroChanges...); err != nil {
		return nil, err
	}
	if b.gemmFunc, err = s.compile(b.gemm.Module(), gemmChanges...); err != nil {
		return nil, err
	}
	if b.ctas, err = s.resident(b); err != nil {
		return nil, err
	}
	if b.zeros, err = b.zero.signature(s.dev.SMs).Bind(b.zero.entry, s.loader(b, b.zeroFunc, b.zero.entry)); err != nil {
		return nil, err
	}
	if b.gemms, err = b.gemm.Signature(b.ctas).Bind(b.gemm.Entry, s.loader(b, b.gemmFunc, b.gemm.Entry)); err != nil {
		return nil, err
	}
	b.zeros.PDL, b.gemms.PDL = h.pdl, h.pdl
	return b, nil
}

// loader lays launches of a compiled kernel out.
func (s *session) loader(b *build, f *cuda.Function, e *ptx.Entry) signature.Load {
	return func(l ptx.Launch, args *ptx.Args) (signature.Block, error) {
		at := 0
		extra := func(a *cuda.Args) { at = a.U64(0) }
		if b.stamps == nil {
			extra = nil
		}
		p, err := s.run.PrepareText(f, e, l, args, extra)
		if err != nil || b.stamps == nil {
			return p, err
		}
		return &stampedLaunch{p, b.stamps, at}, nil
	}
}

// resident is how many CTAs of the GEMM the device runs at once, which only a launch tells.
func (s *session) resident(b *build) (int, error) {
	some := func(name string) *ptx.Buffer { return &ptx.Buffer{Name: name, Device: 1 << 20, Bytes: 1 << 20} }
	l, args, err := b.gemm.Launch(gemm.Problem{M: 256, N: 256, K: 256, A: some("A"), B: some("B"), D: some("D")}, s.dev.SMs)
	if err != nil {
		return 0, err
	}
	extra := func(a *cuda.Args) { a.U64(0) }
	p, err := s.run.PrepareText(b.gemmFunc, b.gemm.Entry, l, args, extra)
	if err != nil {
		return 0, err
	}
	if b.gemm.Config.Cluster() == 1 {
		return p.MaxCTAs()
	}
	n, err := p.MaxClusters()
	return n * b.gemm.Config.Cluster(), err
}

// launch queues a chain through the handles.
func (b *build) launch(to *cuda.Stream, m *memory, o operands) error {
	if err := b.zeros.Launch(to, &cleared{m.matrix(o.c)}); err != nil {
		return err
	}
	if err := b.zeros.Launch(to, &cleared{m.matrix(o.e)}); err != nil {
		return err
	}
	if err := b.gemms.Launch(to, &gemm.Matrices{A: m.matrix(o.a), B: m.matrix(o.b), D: m.matrix(o.c)}); err != nil {
		return err
	}
	return b.gemms.Launch(to, &gemm.Matrices{A: m.matrix(o.c), B: m.matrix(o.d), D: m.matrix(o.e)})
}

// encode queues a chain as somebody would who knows of no handles: launch description, tensor maps and driver structs are made anew for every call.
func (b *build) encode(s *session, m *memory, o operands) error {
	n := m.n
	at := func(name string, p cuda.Ptr) *ptx.Buffer {
		return &ptx.Buffer{Name: name, Device: uint64(p), Bytes: 2 * n * n}
	}
	for _, x := range []cuda.Ptr{o.c, o.e} {
		l, args, err := b.zero.launch(at("X", x), 2*n*n, s.dev.SMs)
		if err != nil {
			return err
		}
		if err := s.anew(b, b.zeroFunc, b.zero.entry, l, args); err != nil {
			return err
		}
	}
	for _, p := range [][3]cuda.Ptr{{o.a, o.b, o.c}, {o.c, o.d, o.e}} {
		l, args, err := b.gemm.Launch(gemm.Problem{M: n, N: n, K: n, A: at("A", p[0]), B: at("B", p[1]), D: at("D", p[2])}, b.ctas)
		if err != nil {
			return err
		}
		if err := s.anew(b, b.gemmFunc, b.gemm.Entry, l, args); err != nil {
			return err
		}
	}
	return nil
}

// anew lays a launch out and queues it.
func (s *session) anew(b *build, f *cuda.Function, e *ptx.Entry, l ptx.Launch, args *ptx.Args) error {
	p, err := s.loader(b, f, e)(l, args)
	if err != nil {
		return err
	}
	return p.Queue(s.stream.Handle())
}
