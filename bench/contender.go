package bench

import (
	"heddle/cuda"
	"heddle/kernel/gemm"
	"heddle/ptx"
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
	ctas int      // that run at once; 0 before the device was asked
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
	at := func(name string, p cuda.Ptr, bytes int) *ptx.Buffer {
		return &ptx.Buffer{Name: name, Device: uint64(p), Bytes: bytes}
	}
	size := p.In.Size()
	l, args, err := b.Launch(gemm.Problem{M: p.M, N: p.N, K: p.K, A: at("A", p.A, p.M*p.K*size), B: at("B", p.B, p.N*p.K*size), D: at("D", p.C, p.M*p.N*2), Work: b.workspace(ctas)}, ctas)
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
