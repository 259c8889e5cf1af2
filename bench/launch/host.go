package launch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"heddle/kernel/signature"
	"heddle/num"
	"heddle/ptx"
)

// hostBatch is how many launches are timed as one: far below what the driver queues before it makes the host wait.
const hostBatch = 300

// empty is a kernel that does nothing, with the parameters of a GEMM, so that only the launch is left.
type empty struct {
	entry *ptx.Entry
	maps  [3]ptx.ParamMap
	words [3]ptx.ParamU32
}

type emptyArgs struct{ A, B, D signature.Tensor }

func newEmpty() (*empty, error) {
	k := ptx.New("empty", 32, 1)
	e := &empty{}
	for i, name := range []string{"A", "B", "D"} {
		e.maps[i] = k.ParamMap(name)
	}
	for i, name := range []string{"tilesM", "tilesN", "steps"} {
		e.words[i] = k.ParamU32(name)
	}
	var err error
	e.entry, err = k.Build()
	return e, err
}

func (e *empty) module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{e.entry}} }

// launch describes a launch with maps of squares.
func (e *empty) launch(n int, buffers ...*ptx.Buffer) (ptx.Launch, *ptx.Args, error) {
	a := e.entry.NewArgs()
	for i, b := range buffers {
		e.maps[i].Put(a, &ptx.Map{Type: num.BF16, Buffer: b, Dims: []int{n, n}, Strides: []int{2 * n}, Box: []int{64, 64}, Swizzle: ptx.Swizzle128})
		e.words[i].Put(a, uint32(n))
	}
	return ptx.Launch{Entry: "empty", Grid: ptx.Dim3{X: 1}}, a, nil
}

// handle binds the kernel as a GEMM is bound; with no session its launches reach no driver.
func (e *empty) handle(s *session, pdl bool) (*signature.Handle[emptyArgs], error) {
	g := signature.New[emptyArgs]("empty")
	n := g.Size("n", 8)
	var slots [3]signature.Slot
	for i, field := range []func(*emptyArgs) *signature.Tensor{
		func(a *emptyArgs) *signature.Tensor { return &a.A }, func(a *emptyArgs) *signature.Tensor { return &a.B }, func(a *emptyArgs) *signature.Tensor { return &a.D },
	} {
		slots[i] = g.Tensor([]string{"A", "B", "D"}[i], field, signature.Spec{Type: num.BF16, Dims: []signature.Size{n, n}, Align: 16})
	}
	g.Plan(func(x *signature.Shape) (ptx.Launch, *ptx.Args, error) {
		return e.launch(x.Size(n), x.Buffer(slots[0]), x.Buffer(slots[1]), x.Buffer(slots[2]))
	})
	load := func(l ptx.Launch, a *ptx.Args) (signature.Block, error) { return s.run.Prepare(e.module(), l, a) }
	if s == nil {
		load = func(ptx.Launch, *ptx.Args) (signature.Block, error) { return new(nothing), nil }
	}
	h, err := g.Bind(e.entry, load)
	if err == nil {
		h.PDL = pdl
	}
	return h, err
}

// nothing is a launch that is left out.
type nothing struct{ word uint64 }

func (n *nothing) SetWord(_ int, v uint64)      { n.word = v }
func (n *nothing) SetMap(_ int, v uint64) error { n.word = v; return nil }
func (n *nothing) Queue(uintptr) error          { return nil }

// side is one way to launch the empty kernel.
type side struct {
	name, doc string
	launch    func(i int) error
	micros    []float64
}

// Host measures what one launch costs the host, ours beside the same from C where c names a program built from testdata/host.c. Batches alternate.
func (l Lab) Host(ctx context.Context, c string) (*Result, error) {
	s, err := l.open()
	if err != nil {
		return nil, err
	}
	e, err := newEmpty()
	if err != nil {
		return nil, err
	}
	sides, err := s.hostSides(e)
	if err != nil {
		return nil, err
	}
	peer, err := s.startC(ctx, c, e)
	if err != nil {
		return nil, err
	}
	defer peer.close()
	for round := range l.Rounds + 1 {
		if ctx.Err() != nil {
			break
		}
		if err := peer.batch(round > 0); err != nil {
			return nil, err
		}
		for i := range sides {
			x := &sides[(i+round)%len(sides)]
			us, err := s.batch(x)
			if err != nil {
				return nil, fmt.Errorf("%w (%s)", err, x.name)
			}
			if round > 0 {
				x.micros = append(x.micros, us)
			}
		}
	}
	for _, x := range sides {
		s.result.Host = append(s.result.Host, Host{Name: x.name, Doc: x.doc, Micros: spread(x.micros), Allocs: allocs(func() error { return x.launch(0) })})
	}
	s.result.Host = append(s.result.Host, peer.results()...)
	for _, h := range s.result.Host {
		l.Progress("%-14s %s µs, %v allocations", h.Name, h.Micros, h.Allocs)
	}
	if err := s.stream.Synchronize(); err != nil {
		return nil, err
	}
	return s.result, l.Store(s.result)
}

// batch is the host's time for one of hostBatch launches, in µs.
func (s *session) batch(x *side) (float64, error) {
	begin := time.Now()
	for i := range hostBatch {
		if err := x.launch(i); err != nil {
			return 0, err
		}
	}
	us := time.Since(begin).Seconds() * 1e6 / hostBatch
	return us, s.stream.Synchronize()
}

// allocs is the allocations of one call, on average.
func allocs(call func() error) float64 {
	var before, after runtime.MemStats
	const n = 200
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		if call() != nil {
			return -1
		}
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / n)
}

func (s *session) hostSides(e *empty) ([]side, error) {
	block, err := s.dev.Alloc(1 << 20)
	if err != nil {
		return nil, err
	}
	const n = 64
	at := func(i int) *ptx.Buffer {
		return &ptx.Buffer{Name: "x", Device: uint64(block) + uint64(i*2*n*n), Bytes: 2 * n * n}
	}
	tensors := func(first int) *emptyArgs {
		x := func(i int) signature.Tensor { return signature.Packed(at(first+i).Device, num.BF16, n, n) }
		return &emptyArgs{x(0), x(1), x(2)}
	}
	far := tensors(0)
	next := func(at uint64) uint64 { return uint64(block) + (at-uint64(block)+256)%(1<<19) }
	alone, err := e.handle(nil, false)
	if err != nil {
		return nil, err
	}
	sets := [2]*emptyArgs{tensors(0), tensors(3)}
	all := []side{{name: "own", doc: "our side alone: two sets of tensors in turn, the driver left out", launch: func(i int) error { return alone.Launch(s.stream, sets[i&1]) }}}
	for _, pdl := range []bool{false, true} {
		suffix := map[bool]string{true: "-pdl"}[pdl]
		l, args, err := e.launch(n, at(0), at(1), at(2))
		if err != nil {
			return nil, err
		}
		l.PDL = pdl
		p, err := s.run.Prepare(e.module(), l, args)
		if err != nil {
			return nil, err
		}
		h, err := e.handle(s, pdl)
		if err != nil {
			return nil, err
		}
		all = append(all,
			side{name: "prepared" + suffix, doc: "a launch laid out once", launch: func(int) error { return p.Launch(s.stream) }},
			side{name: "handle" + suffix, doc: "a compiled handle, the same tensors every time: checked, nothing to move", launch: func(int) error { return h.Launch(s.stream, sets[0]) }},
			side{name: "turns" + suffix, doc: "a compiled handle, two sets of tensors in turn: checked and found", launch: func(i int) error { return h.Launch(s.stream, sets[i&1]) }},
			side{name: "moved" + suffix, doc: "a compiled handle, tensors where they never were: checked, three tensor maps moved", launch: func(int) error {
				far.A.Addr, far.B.Addr, far.D.Addr = next(far.A.Addr), next(far.B.Addr), next(far.D.Addr)
				return h.Launch(s.stream, far)
			}},
			side{name: "naive" + suffix, doc: "launch description, three tensor maps and driver structs anew", launch: func(int) error {
				l, args, err := e.launch(n, at(0), at(1), at(2))
				if err != nil {
					return err
				}
				l.PDL = pdl
				p, err := s.run.Prepare(e.module(), l, args)
				if err != nil {
					return err
				}
				return p.Launch(s.stream)
			}})
	}
	return all, nil
}

// cPeer is the same from C, in a process of its own.
type cPeer struct {
	cmd    *exec.Cmd
	ask    io.WriteCloser
	answer *bufio.Scanner
	stop   func()
	micros [2][]float64
}

// startC starts the program; without one, batches do nothing.
func (s *session) startC(ctx context.Context, program string, e *empty) (*cPeer, error) {
	p := &cPeer{stop: func() {}}
	if program == "" {
		return p, nil
	}
	dir, err := os.MkdirTemp("", "heddle-launch")
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	file := filepath.Join(dir, "empty.ptx")
	if err := os.WriteFile(file, []byte(e.module().PTX()), 0o600); err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	library := s.Driver
	if library == "" {
		library = "libcuda.so.1"
	}
	p.cmd = exec.CommandContext(ctx, program, library, file, fmt.Sprint(hostBatch))
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("launch: the C program does not start: %w", err)
	}
	p.ask, p.answer = in, bufio.NewScanner(out)
	p.stop = func() {
		p.ask.Close()
		p.cmd.Wait()
		os.RemoveAll(dir)
	}
	return p, nil
}

func (p *cPeer) close() { p.stop() }

// batch asks for one batch each.
func (p *cPeer) batch(counts bool) error {
	if p.cmd == nil {
		return nil
	}
	if _, err := io.WriteString(p.ask, "\n"); err != nil {
		return fmt.Errorf("launch: the C program: %w", err)
	}
	var ns [2]float64
	if !p.answer.Scan() {
		return fmt.Errorf("launch: the C program ended early")
	}
	if _, err := fmt.Sscan(p.answer.Text(), &ns[0], &ns[1]); err != nil {
		return fmt.Errorf("launch: the C program says %q: %w", p.answer.Text(), err)
	}
	for i := range ns {
		if counts {
			p.micros[i] = append(p.micros[i], ns[i]/1e3)
		}
	}
	return nil
}

func (p *cPeer) results() []Host {
	if p.cmd == nil {
		return nil
	}
	return []Host{{Name: "c", Doc: "cuLaunchKernelEx from C", Micros: spread(p.micros[0])}, {Name: "c-pdl", Doc: "the same with the PDL attribute", Micros: spread(p.micros[1])}}
}
