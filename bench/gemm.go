package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heddle/cuda"
	"heddle/cuda/cublas"
	"heddle/cuda/nvml"
	"heddle/kernel/gemm"
	"heddle/kernel/ladder"
	"heddle/num"
)

// GEMM is a run of a kernel against cuBLAS.
type GEMM struct {
	Configs   []gemm.Config // our kernels, built by heddle/kernel/gemm, the judged one first; none measures the PTX file alone
	Rungs     []ladder.Rung // kernels of the ladder, measured behind Configs
	PTX, Tile string        // a kernel as PTX text, and its tile where the file's name does not say it; empty for none
	Driver    string        // the driver's library; empty for the usual one
	Device    int
	CuBLAS    []string // candidate folders of the peer, from cublas.Find
	Cache     string   // folder of compiled kernels; empty keeps none
	Command   string   // recorded in the result

	Sizes     []int   // squares for Single
	Sustained []int   // squares for Sustained
	Graphs    []int   // squares for Graph
	Shapes    []Shape // single launches, each on the kernel that gemm.Choose gives for it
	Pairs     int
	Rounds    int
	Launches  int // in one graph
	Idle      time.Duration
	Block     time.Duration

	Chosen bool                       // at each square, of Configs the one that gemm.Choose gives for it alone
	Search bool                       // of Shapes, measure each on all of Configs
	Quick  bool                       // compare samples only, and try half of the peer's algorithms: for a search among many configurations
	Done   []Row                      // rows of an earlier run of the same command, which are kept and not measured again
	Skip   map[string]bool            // names of kernels that are not to run
	Try    func(kernel string, n int) // called before a kernel's first launch at a size, and without a name when all have been launched; may be nil

	Progress func(format string, args ...any) // talk, one line a call
	Store    func(*Result) error              // called after every row, so that a hang loses one row
}

// session is a GEMM run's open handles.
type session struct {
	cfg      GEMM
	dev      *cuda.Device
	helpers  *helpers
	protocol *Protocol
	blas     *cublas.Handle
	own      []contender // ours, the judged one first
	run      *cuda.Runner
	result   *Result
}

// Run measures everything. It locks its goroutine to a thread; errors of one shape end up in its row, errors of the device end the run. At the deadline of ctx it ends after the
// pair or round that runs, without an error: the result says where.
func (g GEMM) Run(ctx context.Context) (*Result, error) {
	s, err := g.open()
	if err != nil {
		return nil, err
	}
	s.protocol.Stop = func() bool { return ctx.Err() != nil }
	err = s.everything(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.result.Stopped = err.Error()
		g.Progress("out of time: %v", err)
		return s.result, g.Store(s.result)
	}
	return s.result, err
}

// Once launches every kernel once on a square, in the order of Configs, for a profiler to look at.
func (g GEMM) Once(n int) error {
	g.Sizes = []int{n} // so that the kernels are loaded
	s, err := g.open()
	if err != nil {
		return err
	}
	o, err := newOperands(s.helpers, n, n, n, num.BF16)
	if err != nil {
		return err
	}
	defer o.free()
	for _, c := range s.own {
		side, err := s.ours(c, o)
		if err == nil {
			err = side.Launch(0)
		}
		if err == nil {
			err = s.helpers.stream.Synchronize()
		}
		if err != nil {
			return fmt.Errorf("%w (kernel %s)", err, c.name())
		}
		g.Progress("launched %s", c.name())
	}
	return nil
}

func (s *session) everything(ctx context.Context) error {
	for _, n := range s.cfg.order() {
		if err := s.shape(ctx, n); err != nil {
			return fmt.Errorf("%w (at %d)", err, n)
		}
	}
	return s.shapes(ctx)
}

// order is every size once, small ones first.
func (g *GEMM) order() []int {
	all := slices.Concat(g.Sizes, g.Sustained, g.Graphs)
	slices.Sort(all)
	return slices.Compact(all)
}

func (g GEMM) open() (*session, error) {
	s := &session{cfg: g}
	file, err := g.read() // before the device: a wrong file name costs no start
	if err != nil {
		return nil, err
	}
	driver, err := cuda.Open(g.Driver)
	if err != nil {
		return nil, err
	}
	if s.dev, err = driver.Device(g.Device); err != nil {
		return nil, err
	}
	if err := s.dev.Bind(); err != nil {
		return nil, err
	}
	stream, err := s.dev.NewStream()
	if err != nil {
		return nil, err
	}
	s.result = &Result{Rows: slices.Clone(g.Done), Command: g.Command, Date: time.Now().UTC().Format(time.RFC3339), Device: s.dev.Facts}
	cache := &cuda.Cache{Dir: g.Cache}
	if s.helpers, err = loadHelpers(s.dev, stream, cache); err != nil {
		return nil, err
	}
	s.run = cuda.NewRunner(s.dev, stream, cache)
	if err := s.load(file, s.run); err != nil {
		return nil, err
	}
	if err := s.openPeer(stream); err != nil {
		return nil, err
	}
	s.protocol, err = NewProtocol(s.dev, stream, s.openNVML(), s.helpers.Delay)
	if err == nil {
		s.protocol.Done = func(side string, us float64) { g.Progress("       sustained block of %s: %.1f us a launch", side, us) }
	}
	return s, err
}

// read parses the PTX file, where one is given.
func (g *GEMM) read() (*TilePTX, error) {
	if g.PTX == "" {
		return nil, nil
	}
	return ReadTilePTX(g.PTX, g.Tile)
}

// load compiles our kernels. One that cannot be built or compiled becomes a failed row.
func (s *session) load(file *TilePTX, run *cuda.Runner) error {
	var all []contender
	configs := s.cfg.Configs
	if len(s.cfg.order()) == 0 {
		configs = nil // shapes load what they use, in their layout
	}
	for _, c := range configs {
		b, err := gemm.New(c)
		if err != nil {
			if err := s.fail("heddle "+c.String(), 0, err); err != nil {
				return err
			}
			continue
		}
		all = append(all, &builtGEMM{Gemm: b, run: run})
	}
	for _, r := range s.cfg.Rungs {
		rung, err := newRung(r, run)
		if err != nil {
			return err
		}
		all = append(all, rung)
	}
	if file != nil {
		all = append(all, file)
	}
	for _, c := range all {
		if s.cfg.Skip[c.name()] {
			continue
		}
		begin := time.Now()
		k, err := c.load(s.dev, &cuda.Cache{Dir: s.cfg.Cache})
		if err != nil {
			if err := s.fail(c.name(), 0, err); err != nil {
				return err
			}
			continue
		}
		s.own = append(s.own, c)
		k.Name, k.CompileMs = c.name(), time.Since(begin).Seconds()*1e3
		s.result.Kernels = append(s.result.Kernels, k)
		s.cfg.Progress("kernel %s: %d registers, %d bytes local, %.0f ms to compile and load", k.Name, k.Registers, k.Local, k.CompileMs)
	}
	if len(s.own) == 0 && len(s.cfg.Shapes) == 0 {
		return fmt.Errorf("bench: nothing to measure: no configuration that builds, and no PTX file")
	}
	return nil
}

func (s *session) openPeer(stream *cuda.Stream) error {
	lib, err := cublas.Open(s.cfg.CuBLAS)
	if err != nil {
		return &cuda.Absent{What: err.Error()}
	}
	workspace, err := s.dev.Alloc(cublas.WorkspaceBytes)
	if err != nil {
		return err
	}
	if s.blas, err = lib.New(stream, workspace); err != nil {
		return err
	}
	v, err := s.blas.Version()
	s.result.Peer = fmt.Sprintf("cuBLAS %d (%s)", v, lib.Path)
	s.cfg.Progress("peer: %s", s.result.Peer)
	return err
}

// openNVML returns nil where there is no NVML: times are still good then, clocks and joules are missing.
func (s *session) openNVML() *nvml.GPU {
	lib, err := nvml.Open("")
	if err == nil {
		var gpu *nvml.GPU
		if gpu, err = lib.ByPCI(s.dev.PCIBus); err == nil {
			s.result.Driver, err = lib.DriverVersion()
			if err == nil {
				return gpu
			}
		}
	}
	s.cfg.Progress("no clocks and joules: %v", err)
	return nil
}

// done tells whether an earlier run has measured a size in a mode.
func (s *session) done(n int, mode string) bool {
	return slices.ContainsFunc(s.cfg.Done, func(r Row) bool { return r.N == n && r.Mode == mode })
}

// shape runs all modes that ask for n.
func (s *session) shape(ctx context.Context, n int) error {
	g := &s.cfg
	if !(slices.Contains(g.Sizes, n) && !s.done(n, "single") || slices.Contains(g.Sustained, n) && !s.done(n, "sustained") || slices.Contains(g.Graphs, n) && !s.done(n, "graph-warm")) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := newOperands(s.helpers, n, n, n, num.BF16)
	if err != nil {
		return err
	}
	defer o.free()
	s.protocol.Sets = len(o.sets)
	peers, times, err := s.peers(o)
	if err != nil {
		return s.fail("peer", n, err)
	}
	own, checks, err := s.checked(o, peers)
	if err != nil || len(own) == 0 {
		return err
	}
	if s.cfg.Try != nil {
		s.cfg.Try("", n)
	}
	sides := append(own, peers...)
	row := Row{M: n, N: n, K: n, Checks: checks, Recorded: times}
	for _, mode := range []struct {
		name  string
		sizes []int
		run   func() ([]Samples, error)
	}{
		{"single", s.cfg.Sizes, func() ([]Samples, error) { return s.protocol.Single(sides, s.cfg.Pairs, s.cfg.Idle) }},
		{"graph-rotating", s.cfg.Graphs, func() ([]Samples, error) { return s.protocol.Graph(sides, s.cfg.Launches, s.cfg.Pairs, s.cfg.Idle) }},
		{"graph-warm", s.cfg.Graphs, func() ([]Samples, error) {
			s.protocol.Sets = 1
			defer func() { s.protocol.Sets = len(o.sets) }()
			return s.protocol.Graph(sides, s.cfg.Launches, s.cfg.Pairs, s.cfg.Idle)
		}},
		{"sustained", s.cfg.Sustained, func() ([]Samples, error) {
			return s.protocol.Sustained(sides, s.cfg.Rounds, s.cfg.Block, s.cfg.Block/5)
		}},
	} {
		if !slices.Contains(mode.sizes, n) || s.done(n, mode.name) {
			continue
		}
		row.Mode = mode.name
		if row.Samples, err = mode.run(); err != nil {
			return err
		}
		if len(row.Samples[0].Micros) > 0 { // none where the time was out before the first pair
			if err := s.add(row); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w in %s", err, mode.name)
		}
		row.Checks, row.Recorded = nil, nil // once a shape
	}
	return nil
}

func (s *session) add(row Row) error {
	s.result.Rows = append(s.result.Rows, row)
	one := Result{Rows: []Row{row}}
	if s.cfg.Quick {
		for _, q := range one.Ranking() {
			s.cfg.Progress("%6d %-15s %-50s %.1f TFLOP/s, %.3f of the peer", q.N, q.Mode, q.Kernel, q.Rate, q.Speed)
		}
		return s.cfg.Store(s.result)
	}
	for _, q := range one.Summary() {
		s.cfg.Progress("%6d %-15s %-24s %.1f against %.1f TFLOP/s, %.3f (%.3f..%.3f)", q.N, q.Mode, q.Side, q.Ours, q.Theirs, q.Speed.Value, q.Speed.Low, q.Speed.High)
	}
	return s.cfg.Store(s.result)
}

// fail records a kernel that could not be measured at a size. Faults of the device are final: after one, no later number could be trusted.
func (s *session) fail(kernel string, n int, err error) error {
	s.cfg.Progress("%6d: %s: %v", n, kernel, err)
	if e := s.add(Row{M: n, N: n, K: n, Mode: "failed", Kernel: kernel, Failure: err.Error()}); e != nil {
		return e
	}
	return s.dev.Synchronize() // sticky errors come back here
}

// peers are cublasGemmEx and the fastest of cuBLASLt's heuristics, each prepared for every buffer set.
func (s *session) peers(o *operands) ([]Side, []float64, error) {
	if o.sets[0].In.Size() == 1 {
		return s.peers8(o)
	}
	classic := make([]*cublas.Gemm, len(o.sets))
	for i, p := range o.sets {
		classic[i] = s.blas.GemmEx(p.peer())
	}
	lt, times, err := s.fastest(o, false)
	return []Side{{"cublasGemmEx", false, func(set int) error { return classic[set].Launch() }}, lt}, times, err
}

// peers8 are cuBLASLt's fastest heuristics for fp8 with and without fast accumulation; ours is the fast one.
func (s *session) peers8(o *operands) ([]Side, []float64, error) {
	fast, times, err := s.fastest(o, true)
	if err != nil {
		return nil, nil, err
	}
	slow, _, err := s.fastest(o, false)
	fast.Name += ", fast accumulation"
	return []Side{fast, slow}, times, err
}

// ours is one of our kernels, prepared for every buffer set.
func (s *session) ours(c contender, o *operands) (Side, error) {
	launches, err := make([]*cuda.Prepared, len(o.sets)), error(nil)
	for i, p := range o.sets {
		if launches[i], err = c.prepare(s.dev, p); err != nil {
			return Side{}, err
		}
	}
	return Side{c.name(), true, func(set int) error { return launches[set].Launch(s.helpers.stream) }}, nil
}

// judged are our kernels that are measured at n.
func (s *session) judged(n int) []contender {
	c, err := gemm.Choose(n, n, n, s.dev.SMs, gemm.Config{})
	if err == nil && s.cfg.Chosen {
		for _, k := range s.own {
			if k.name() == "heddle "+c.String() {
				return []contender{k}
			}
		}
	}
	return s.own
}

// checked gives those of our kernels that do this shape right, and the checks of all sides. The others become failed rows.
func (s *session) checked(o *operands, peers []Side) (own []Side, checks []Check, err error) {
	n := o.sets[0].N
	_, reference, err := o.check(s.helpers.stream, peers[0], nil) // cublasGemmEx
	if err != nil {
		return nil, nil, s.fail("peer", n, err)
	}
	if s.cfg.Quick {
		reference = nil
	}
	for _, c := range s.judged(n) {
		if s.cfg.Try != nil {
			s.cfg.Try(c.name(), n)
		}
		var check Check
		side, err := s.ours(c, o)
		if check.Side = side.Name; err == nil && comparable(c) {
			check, _, err = o.check(s.helpers.stream, side, reference)
			if err == nil {
				err = check.verdict()
			}
		}
		if err != nil {
			if err := s.fail(c.name(), n, err); err != nil {
				return nil, nil, err
			}
			continue
		}
		own, checks = append(own, side), append(checks, check)
	}
	for _, p := range peers {
		check, _, err := o.check(s.helpers.stream, p, reference)
		if err == nil {
			err = check.verdict()
		}
		if err != nil {
			return nil, nil, s.fail(p.Name, n, err)
		}
		checks = append(checks, check)
	}
	return own, checks, nil
}

// fastest times cuBLASLt's 16 best heuristics by bursts, in turn, and prepares the fastest. An algorithm that refuses the shape counts as 0 in times.
func (s *session) fastest(o *operands, fast bool) (Side, []float64, error) {
	count := 16
	if s.cfg.Quick {
		count = 8
	}
	problem := o.sets[0].peer()
	problem.Fast = fast
	plan, err := s.blas.Plan(problem, count)
	if err != nil {
		return Side{}, nil, err
	}
	if plan.Algorithms == 0 {
		return Side{}, nil, fmt.Errorf("bench: cuBLASLt has no algorithm for %d", o.sets[0].N)
	}
	sides, times := make([]Side, plan.Algorithms), make([]float64, plan.Algorithms)
	for a := range sides {
		gemms := make([]*cublas.Gemm, len(o.sets))
		for i, p := range o.sets {
			gemms[i] = plan.Gemm(p.peer(), a)
		}
		sides[a] = Side{fmt.Sprintf("cublasLt algorithm %d", a), false, func(set int) error { return gemms[set].Launch() }}
	}
	s.protocol.Sets = len(o.sets)
	rounds, launches := 5, 4
	if p := o.sets[0]; float64(p.M)*float64(p.N)*float64(p.K) > 1e12 { // milliseconds a launch: noise is small beside it
		rounds, launches = 3, 1
	}
	for round := range rounds {
		for a := range sides {
			us, err := s.protocol.Burst(sides[a], launches)
			if round == 0 || err != nil { // warm-up; a refusal comes back in every round
				continue
			}
			if times[a] == 0 || us < times[a] {
				times[a] = us
			}
		}
	}
	best := -1
	for a, us := range times {
		if us > 0 && (best < 0 || us < times[best]) {
			best = a
		}
	}
	if best < 0 {
		return Side{}, nil, fmt.Errorf("bench: none of cuBLASLt's %d algorithms runs", plan.Algorithms)
	}
	return sides[best], times, s.helpers.stream.Synchronize()
}
