package bench

import (
	"encoding/binary"

	"heddle/cuda"
	"heddle/kernel"
	"heddle/kernel/gemm"
	"heddle/kernel/ladder"
	"heddle/ptx"
	"heddle/tile"
)

// contender is one of our GEMMs: compiled once, then laid out for each product.
type contender interface {
	name() string
	load(*cuda.Device, *cuda.Cache) (Kernel, error)
	prepare(*cuda.Device, Product) (*cuda.Prepared, error)
}

// builtGEMM is a kernel of heddle/kernel/gemm.
type builtGEMM struct {
	*gemm.Gemm
	run  *cuda.Runner
	ctas int // that run at once; 0 before the device was asked
	dev  *cuda.Device
	work cuda.Ptr // workspace of stream-K, for the one stream that launches
}

func (b *builtGEMM) name() string { return "heddle " + b.Config.String() }

func (b *builtGEMM) load(*cuda.Device, *cuda.Cache) (Kernel, error) {
	f, err := b.run.Facts(b.Module(), b.Entry.Name)
	return Kernel{FunctionFacts: f}, err
}

// prepare lays the launch out twice the first time: only a launch tells how many of its clusters the device holds, and that decides the grid.
func (b *builtGEMM) prepare(dev *cuda.Device, p Product) (*cuda.Prepared, error) {
	if b.ctas > 0 {
		return b.launch(p, b.ctas)
	}
	b.dev = dev
	if n := b.Workspace(dev.SMs * maxPerSM); n > 0 {
		var err error
		if b.work, err = dev.Alloc(n); err != nil {
			return nil, err
		}
		if err := b.run.Stream().Fill(b.work, 0, n); err != nil {
			return nil, err
		}
	}
	l, err := b.launch(p, dev.SMs)
	if err != nil {
		return nil, err
	}
	if b.Config.Cluster() == 1 {
		b.ctas, err = l.MaxCTAs()
	} else {
		b.ctas, err = l.MaxClusters()
		b.ctas *= b.Config.Cluster()
	}
	if err != nil {
		return nil, err
	}
	return b.launch(p, b.ctas)
}

// maxPerSM is the CTAs of the smallest kernel that an SM holds: 2,048 threads, 256 a CTA at least.
const maxPerSM = 8

func (b *builtGEMM) launch(p Product, ctas int) (*cuda.Prepared, error) {
	q := p.problem()
	q.Work = b.workspace(ctas)
	if err := b.epilogue(&q); err != nil {
		return nil, err
	}
	if err := b.scales(&q); err != nil {
		return nil, err
	}
	if b.Config.Order.Table {
		var err error
		if q.Table, err = b.table(p); err != nil {
			return nil, err
		}
	}
	l, args, err := b.Launch(q, ctas)
	if err != nil {
		return nil, err
	}
	return b.run.Prepare(b.Module(), l, args)
}

func (b *builtGEMM) workspace(ctas int) *ptx.Buffer {
	if b.work == 0 {
		return nil
	}
	return &ptx.Buffer{Name: "workspace", Device: uint64(b.work), Bytes: b.Workspace(ctas)}
}

// problem is the product as our kernels take it.
func (p Product) problem() gemm.Problem {
	at := func(name string, p cuda.Ptr, bytes int) *ptx.Buffer {
		return &ptx.Buffer{Name: name, Device: uint64(p), Bytes: bytes}
	}
	size := p.In.Size()
	return gemm.Problem{M: p.M, N: p.N, K: p.K, A: at("A", p.A, p.M*p.K*size), B: at("B", p.B, p.N*p.K*size), D: at("D", p.C, p.M*p.N*2)}
}

// table is a Hilbert path on the device; it stays there until the process ends.
func (b *builtGEMM) table(p Product) (*ptx.Buffer, error) {
	path, err := b.Path(p.M, p.N, tile.Hilbert)
	if err != nil {
		return nil, err
	}
	var data []byte
	for _, x := range path {
		data = binary.LittleEndian.AppendUint32(data, x)
	}
	at, err := b.dev.Alloc(len(data))
	if err != nil {
		return nil, err
	}
	return &ptx.Buffer{Name: "table", Device: uint64(at), Bytes: len(data)}, b.dev.CopyIn(at, data)
}

// epilogue gives a configuration's epilogue operands that leave the product as it is, where it has no activation: factors 1, summands 0. They stay until the process ends.
func (b *builtGEMM) epilogue(q *gemm.Problem) error {
	e := b.Config.Epi
	if e == (kernel.Epilogue{}) {
		return nil
	}
	d := q.M * e.Act.Columns(q.N) * 2
	sizes := []int{q.M * 4, q.N * 4, q.N * 4, 4, d, q.M * q.N * 2, d}
	total := 0
	for _, n := range sizes {
		total += align(n)
	}
	block, err := b.dev.Alloc(total)
	if err != nil {
		return err
	}
	if err := b.run.Stream().Fill(block, 0, total); err != nil {
		return err
	}
	const one = 0x3f800000
	if err := b.run.Stream().FillWords(block, one, (align(sizes[0])+align(sizes[1]))/4); err != nil {
		return err
	}
	var buffers []*ptx.Buffer
	for _, n := range sizes {
		buffers = append(buffers, &ptx.Buffer{Name: "epilogue", Device: uint64(block), Bytes: n})
		block += cuda.Ptr(align(n))
	}
	q.Epi = gemm.Operands{Alpha: 1, Beta: 0, Rows: buffers[0], Columns: buffers[1], Bias: buffers[2], AMax: buffers[3], C: buffers[4], Kept: buffers[5]}
	if e.Act != kernel.Linear {
		q.D = buffers[6]
	}
	return nil
}

// scales gives a block-scaled kernel factors of 1. They stay until the process ends.
func (b *builtGEMM) scales(q *gemm.Problem) error {
	if !b.Config.Blocks {
		return nil
	}
	steps := (q.K + 127) / 128
	for _, s := range []struct {
		to **ptx.Buffer
		n  int
	}{{&q.ScaleA, steps * q.M}, {&q.ScaleB, (q.N + 127) / 128 * steps}} {
		at, err := b.dev.Alloc(4 * s.n)
		if err != nil {
			return err
		}
		const one = 0x3f800000
		if err := b.run.Stream().FillWords(at, one, s.n); err != nil {
			return err
		}
		*s.to = &ptx.Buffer{Name: "scales", Device: uint64(at), Bytes: 4 * s.n}
	}
	return nil
}

// comparable tells whether a contender computes the plain product into the peer's buffer.
func comparable(c contender) bool {
	b, ok := c.(*builtGEMM)
	return !ok || b.Config.Epi.Act == kernel.Linear
}

// rung is a kernel of the ladder.
type rung struct {
	ladder.Rung
	module *ptx.Module
	launch ladder.Launcher
	run    *cuda.Runner
	work   *ptx.Buffer
}

func newRung(r ladder.Rung, run *cuda.Runner) (*rung, error) {
	e, launch, err := r.Build()
	return &rung{Rung: r, module: &ptx.Module{Entries: []*ptx.Entry{e}}, launch: launch, run: run}, err
}

func (r *rung) name() string { return "heddle ladder " + r.Name }

func (r *rung) load(dev *cuda.Device, _ *cuda.Cache) (Kernel, error) {
	if r.Workspace != nil {
		n := r.Workspace(dev.SMs)
		at, err := dev.Alloc(n)
		if err != nil {
			return Kernel{}, err
		}
		if err := r.run.Stream().Fill(at, 0, n); err != nil {
			return Kernel{}, err
		}
		r.work = &ptx.Buffer{Name: "workspace", Device: uint64(at), Bytes: n}
	}
	f, err := r.run.Facts(r.module, r.module.Entries[0].Name)
	return Kernel{FunctionFacts: f}, err
}

func (r *rung) prepare(dev *cuda.Device, p Product) (*cuda.Prepared, error) {
	q := p.problem()
	q.Work = r.work
	l, args, err := r.launch(q, dev.SMs)
	if err != nil {
		return nil, err
	}
	return r.run.Prepare(r.module, l, args)
}
