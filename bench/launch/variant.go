package launch

import (
	"time"

	"heddle/cuda"
	"heddle/kernel/gemm"
)

// Variant is one way of launching the chain.
type Variant struct {
	Name    string
	Doc     string
	overlap gemm.Overlap
	pdl     bool
	encodes bool // everything anew a call
	graph   graph
}

// graph says what is replayed as one.
type graph uint8

const (
	noGraph graph = iota
	chainGraph
	manyGraph
)

// Variants are all ways, the slowest first.
func Variants() []Variant {
	return []Variant{
		{Name: "naive", Doc: "launch description, tensor maps and driver structs anew for every call", encodes: true},
		{Name: "handle", Doc: "compiled handles"},
		{Name: "handle-attribute", Doc: "control: the PDL attribute, and kernels that neither wait nor trigger", pdl: true},
		{Name: "handle-pdl-waits", Doc: "PDL; kernels wait, the trigger is their end", overlap: gemm.Waits, pdl: true},
		{Name: "handle-pdl", Doc: "PDL; kernels wait, and trigger right after", overlap: gemm.Invites, pdl: true},
		{Name: "graph", Doc: "a graph a chain", graph: chainGraph},
		{Name: "graph-pdl", Doc: "a graph a chain, with programmatic edges", overlap: gemm.Invites, pdl: true, graph: chainGraph},
		{Name: "graph-many", Doc: "one graph of all chains", graph: manyGraph},
		{Name: "graph-many-pdl-waits", Doc: "one graph of all chains, programmatic edges, the trigger is a kernel's end", overlap: gemm.Waits, pdl: true, graph: manyGraph},
		{Name: "graph-many-pdl", Doc: "one graph of all chains, with programmatic edges", overlap: gemm.Invites, pdl: true, graph: manyGraph},
	}
}

// burst is one variant ready to queue many chains.
type burst struct {
	Variant
	s      *session
	b      *build
	m      *memory
	chains int
	graphs []*cuda.Graph // one, or one for each set of operands
}

// ready builds a variant's kernels, meets every set of operands once, and captures its graphs.
func (s *session) ready(v Variant, c gemm.Config, m *memory, chains int, stamped bool) (*burst, error) {
	b, err := s.build(c, how{overlap: v.overlap, pdl: v.pdl, stamped: stamped})
	if err != nil {
		return nil, err
	}
	u := &burst{Variant: v, s: s, b: b, m: m, chains: chains}
	if stamped {
		if err := u.makeRoom(); err != nil {
			return nil, err
		}
	}
	return u, u.capture()
}

// makeRoom takes memory for the stamps of all chains.
func (u *burst) makeRoom() error {
	u.b.stamps.room = u.chains * kernelsPerChain
	var err error
	u.b.stamps.at, err = u.s.dev.Alloc(u.b.stamps.room * stampBytes)
	return err
}

// capture records the variant's graphs. Stamped chains have a graph each: their places differ.
func (u *burst) capture() error {
	per, count := 1, len(u.m.chains)
	switch {
	case u.graph == noGraph:
		return nil
	case u.graph == manyGraph:
		per, count = u.chains, 1
	case u.b.stamps != nil:
		count = u.chains
	}
	for g := range count {
		captured, err := u.s.stream.Capture(func() error {
			for i := range per {
				if err := u.b.launch(u.s.stream, u.m, u.m.of(g*per+i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		u.graphs = append(u.graphs, captured)
		if err := captured.Upload(u.s.stream); err != nil {
			return err
		}
	}
	return u.s.stream.Synchronize()
}

// queue launches all chains.
func (u *burst) queue() error {
	if u.b.stamps != nil && u.graph == noGraph {
		u.b.stamps.next = 0
	}
	if u.graph == manyGraph {
		return u.graphs[0].Launch(u.s.stream)
	}
	for i := range u.chains {
		var err error
		switch {
		case u.graph == chainGraph:
			err = u.graphs[i%len(u.graphs)].Launch(u.s.stream)
		case u.encodes:
			err = u.b.encode(u.s, u.m, u.m.of(i))
		default:
			err = u.b.launch(u.s.stream, u.m, u.m.of(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// calls is how many driver calls queue makes.
func (u *burst) calls() int {
	switch u.graph {
	case chainGraph:
		return u.chains
	case manyGraph:
		return 1
	}
	return u.chains * kernelsPerChain
}

// holdFor is longer than queueing takes.
func (u *burst) holdFor() time.Duration {
	each := 12 * time.Microsecond
	if u.encodes {
		each = 60 * time.Microsecond
	}
	return time.Duration(u.calls())*each + 200*time.Microsecond
}

// close gives back graphs and stamps.
func (u *burst) close() error {
	for _, g := range u.graphs {
		if err := g.Close(); err != nil {
			return err
		}
	}
	if u.b.stamps != nil {
		return u.s.dev.Free(u.b.stamps.at)
	}
	return nil
}
