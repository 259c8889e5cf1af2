// Package launch is the launch lab: the chain zero, zero, gemm, gemm under every way of launching it, from re-encoding everything a call to one graph of many chains
// with programmatic edges. It measures what the host pays a launch, what a chain takes, and where between the kernels of a chain the device does nothing.
//
// Start with Lab.Run; variant.go lists the ways, chain.go is the chain, measure.go how times are taken.
package launch

import (
	"context"
	"fmt"
	"time"

	"heddle/bench"
	"heddle/cuda"
	"heddle/kernel/gemm"
	"heddle/ptx"
)

// Lab says what to measure.
type Lab struct {
	Driver  string // the driver's library; empty for the usual one
	Device  int
	Cache   string   // folder of compiled kernels; empty keeps none
	Command string   // recorded in the result
	Sizes   []int    // squares
	Rounds  int      // of each measurement; variants take turns in every round
	Chains  int      // queued at once, and in the graph of many
	Config  string   // of the GEMM; empty: what gemm.Choose gives for each size
	Only    []string // names of variants; none: all
	Torch   string   // a python with PyTorch, for the peer; empty: no peer

	Progress func(format string, args ...any) // talk, one line a call
	Store    func(*Result) error              // called after every size, so that a hang loses one
}

// session is a run's open handles.
type session struct {
	Lab
	dev        *cuda.Device
	stream     *cuda.Stream
	run        *cuda.Runner
	cache      *cuda.Cache
	start, end *cuda.Event
	fill, spin *cuda.Function
	functions  map[string]*cuda.Function // by text
	result     *Result
}

// Run measures every size. It locks its goroutine to a thread.
func (l Lab) Run(ctx context.Context) (*Result, error) {
	peers := map[int][]Peer{}
	if l.Torch != "" {
		var err error
		if peers, err = l.torch(ctx, l.Torch); err != nil {
			l.Progress("%v", err) // what it said until then is kept
		}
	}
	s, err := l.open()
	if err != nil {
		return nil, err
	}
	for _, n := range l.Sizes {
		if err := ctx.Err(); err != nil {
			s.result.Stopped = fmt.Sprintf("%v before %d", err, n)
			break
		}
		size, err := s.size(ctx, n)
		if ctx.Err() != nil {
			s.result.Stopped = fmt.Sprintf("%v at %d, which is left out", ctx.Err(), n)
			break
		}
		if err != nil {
			return s.result, fmt.Errorf("%w (at %d)", err, n)
		}
		size.Peers = peers[n]
		s.result.Sizes = append(s.result.Sizes, size)
		if err := l.Store(s.result); err != nil {
			return s.result, err
		}
	}
	return s.result, l.Store(s.result)
}

func (l Lab) open() (*session, error) {
	s := &session{Lab: l, cache: &cuda.Cache{Dir: l.Cache}, functions: map[string]*cuda.Function{}}
	driver, err := cuda.Open(l.Driver)
	if err != nil {
		return nil, err
	}
	if s.dev, err = driver.Device(l.Device); err != nil {
		return nil, err
	}
	if err := s.dev.Bind(); err != nil {
		return nil, err
	}
	if s.stream, err = s.dev.NewStream(); err != nil {
		return nil, err
	}
	if s.start, err = s.dev.NewEvent(); err != nil {
		return nil, err
	}
	if s.end, err = s.dev.NewEvent(); err != nil {
		return nil, err
	}
	s.run = cuda.NewRunner(s.dev, s.stream, s.cache)
	m, err := s.dev.Compile(bench.HelpersPTX(), s.cache)
	if err != nil {
		return nil, err
	}
	if s.fill, err = m.Function("fill_normal"); err != nil {
		return nil, err
	}
	if s.spin, err = m.Function("delay"); err != nil {
		return nil, err
	}
	s.result = &Result{Command: l.Command, Date: time.Now().UTC().Format(time.RFC3339), Device: s.dev.Facts, Rounds: l.Rounds, Chains: l.Chains}
	return s, nil
}

// config is the GEMM of a size, without its way of overlapping.
func (s *session) config(n int) (gemm.Config, error) {
	if s.Config != "" {
		return gemm.ParseConfig(s.Config)
	}
	return gemm.Choose(n, n, n, s.dev.SMs, gemm.Config{})
}

// hold keeps the stream busy for d, so that what is queued behind it is queued before it runs.
func (s *session) hold(d time.Duration) error {
	args := new(cuda.Args)
	args.U64(uint64(d))
	p, err := s.spin.Prepare(cuda.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, args)
	if err != nil {
		return err
	}
	return p.Launch(s.stream)
}

// normal fills count bf16 numbers, an even number, with normal(0,1).
func (s *session) normal(at cuda.Ptr, count int, seed uint64) error {
	args := new(cuda.Args)
	args.Ptr(at)
	args.U64(uint64(count / 2))
	args.U64(seed)
	p, err := s.fill.Prepare(cuda.Launch{Grid: [3]uint32{1024, 1, 1}, Block: [3]uint32{256, 1, 1}}, args)
	if err != nil {
		return err
	}
	return p.Launch(s.stream)
}

// compile makes a kernel from its description, with changes to its text.
func (s *session) compile(m *ptx.Module, changes ...func(string) (string, error)) (*cuda.Function, error) {
	text, err := m.PTX(), error(nil)
	for _, change := range changes {
		if text, err = change(text); err != nil {
			return nil, err
		}
	}
	if f := s.functions[text]; f != nil {
		return f, nil
	}
	loaded, err := s.dev.Compile(text, s.cache)
	if err != nil {
		return nil, err
	}
	s.functions[text], err = loaded.Function(m.Entries[0].Name)
	return s.functions[text], err
}
