package cuda

import (
	"fmt"
	"unsafe"

	"heddle/internal/dl"
)

// Graph is recorded work, ready to be replayed with one call.
type Graph struct {
	Nodes        int
	Edges        int // of which …
	Programmatic int // … so many let a kernel start before the one in front of it has ended; 0 where the driver is older than CUDA 12.3 and cannot tell
	dev          *Device
	exec         uintptr
	launch       *dl.Prepared
}

// Capture records what record queues on s, without running it. Until it returns, other goroutines must neither synchronise the device nor use s. PDL launches keep their programmatic edges.
func (s *Stream) Capture(record func() error) (*Graph, error) {
	graph, nodes, err := s.record(record)
	if err != nil {
		return nil, err
	}
	d, a := s.dev.driver, &s.dev.driver.api
	defer a.graphDestroy.Call(graph)
	g := &Graph{dev: s.dev, Nodes: nodes}
	if err := g.countEdges(graph); err != nil {
		return nil, err
	}
	if err := d.check("cuGraphInstantiate", a.graphInstantiate, uintptr(unsafe.Pointer(&g.exec)), graph, 0); err != nil {
		return nil, err
	}
	g.launch = dl.Prepare(a.graphLaunch, g.exec, 0)
	return g, nil
}

// countEdges looks at what was captured.
func (g *Graph) countEdges(graph uintptr) error {
	d, a := g.dev.driver, &g.dev.driver.api
	if a.graphGetEdges == 0 {
		return nil
	}
	var n uint64
	if err := d.check("cuGraphGetEdges", a.graphGetEdges, graph, 0, 0, 0, uintptr(unsafe.Pointer(&n))); err != nil || n == 0 {
		return err
	}
	from, to := make([]uintptr, n), make([]uintptr, n)
	data := make([][8]byte, n) // CUgraphEdgeData: from port, to port, type
	const programmatic = 1
	err := d.check("cuGraphGetEdges", a.graphGetEdges, graph, uintptr(unsafe.Pointer(&from[0])), uintptr(unsafe.Pointer(&to[0])), uintptr(unsafe.Pointer(&data[0])), uintptr(unsafe.Pointer(&n)))
	for _, e := range data[:min(n, uint64(len(data)))] {
		g.Edges++
		if e[2] == programmatic {
			g.Programmatic++
		}
	}
	return err
}

// record returns the captured CUgraph, which the caller destroys.
func (s *Stream) record(record func() error) (graph uintptr, nodes int, err error) {
	const relaxed = 2 // the mode in which other threads may go on allocating
	d, a := s.dev.driver, &s.dev.driver.api
	if err := d.check("cuStreamBeginCapture", a.streamBeginCapture, s.handle, relaxed); err != nil {
		return 0, 0, err
	}
	err = record()
	end := d.check("cuStreamEndCapture", a.streamEndCapture, s.handle, uintptr(unsafe.Pointer(&graph)))
	if err == nil {
		err = end
	}
	var n uint64
	if err == nil {
		err = d.check("cuGraphGetNodes", a.graphGetNodes, graph, 0, uintptr(unsafe.Pointer(&n)))
	}
	if err != nil && graph != 0 {
		a.graphDestroy.Call(graph)
	}
	return graph, int(n), err
}

// Update records again and changes the graph's arguments and shapes in place. The kernels and their order must be the same as before.
func (g *Graph) Update(s *Stream, record func() error) error {
	graph, nodes, err := s.record(record)
	if err != nil {
		return err
	}
	d, a := g.dev.driver, &g.dev.driver.api
	defer a.graphDestroy.Call(graph)
	if nodes != g.Nodes {
		return fmt.Errorf("cuda: graph update: %d nodes recorded, the graph has %d; hint: capture a new graph", nodes, g.Nodes)
	}
	var result [3]uint64 // CUgraphExecUpdateResultInfo: reason, node, node
	return d.check("cuGraphExecUpdate", a.graphExecUpdate, g.exec, graph, uintptr(unsafe.Pointer(&result[0])))
}

// Upload moves the graph to the device ahead of its first launch.
func (g *Graph) Upload(s *Stream) error {
	return s.check("cuGraphUpload", g.dev.driver.api.graphUpload, g.exec, s.handle)
}

// Launch replays the graph on a stream. It allocates nothing.
func (g *Graph) Launch(s *Stream) error {
	g.launch.Set(1, s.handle)
	if code := g.launch.Call(); code != 0 {
		return g.dev.driver.failure("cuGraphLaunch", code)
	}
	return nil
}

// Close destroys the graph.
func (g *Graph) Close() error {
	return g.dev.driver.check("cuGraphExecDestroy", g.dev.driver.api.graphExecDestroy, g.exec)
}
