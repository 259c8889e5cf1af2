package emulate

import (
	"fmt"
	"math/rand"
	"slices"

	"heddle/ptx"
)

// machine runs one launch: as many clusters as fit on the SMs are resident together, their warps advance in an order that the seed chooses.
type machine struct {
	opt     Emulator
	entry   *ptx.Entry
	launch  ptx.Launch
	args    *ptx.Args
	rng     *rand.Rand
	report  Report
	counts  Counts
	entered []int64 // by place in code: stretches executed that start here, less those that end before it
	code    []code
	const32 map[uint32]int32
	const64 map[uint64]int32
	buffers []*ptx.Buffer
	lines   []string // of the code, as far as somebody has asked

	now         float64 // latest end of a cluster, in the latency model
	clusterSize int     // CTAs
	warps       int     // of a CTA
	lanes       int     // components of a cluster's threads
	scratch     operands
}

// cluster is a resident cluster: its CTAs, its cluster barrier and the asynchronous operations under way.
type cluster struct {
	m     *machine
	index int
	ctas  []*cta
	warps []*warp
	left  int // warps that have not exited
	ops   []*transfer
	bar   clusterBarrier
}

// cta is a resident CTA.
type cta struct {
	c          *cluster
	index      int // in the grid
	rank       int // in the cluster
	base       int // first asynchronous component
	mem        []byte
	shadow     []cell
	words      [][4]cell // of the cells that are split
	bars       map[int]*mbar
	named      [16]namedBarrier
	groups     []*group
	warps      []*warp
	pool       int // registers that setmaxnreg can hand out
	exited     int // warps
	ended      knowledge
	tensorFree float64 // when the tensor cores, and the port to L2, are free again, in the latency model
	portFree   float64
	touched    map[int32]touch // latest asynchronous or remote use of this CTA's shared memory, by component
}

type touch struct {
	count  uint32
	pc     int32
	object string
}

func (t *cta) gone() bool { return t.exited == len(t.warps) }

// note remembers that e uses t's shared memory: t must not end before.
func (t *cta) note(e epoch, pc int32, object string) {
	if old, ok := t.touched[e.agent]; !ok || e.count > old.count {
		t.touched[e.agent] = touch{e.count, pc, object}
	}
}

// sharedBase is where dynamic shared memory starts in a CTA's window: the first KiB belongs to the system.
const sharedBase = 1024

func (m *machine) run() {
	m.clusterSize, m.warps = m.entry.Cluster, m.entry.Threads/32
	m.lanes = m.clusterSize * m.warps * perLanes
	total := m.launch.Grid.X / m.clusterSize
	fit := max(1, m.opt.SMs/m.clusterSize)
	var resident []*cluster
	next := 0
	for (next < total || len(resident) > 0) && !m.full() {
		for len(resident) < fit && next < total {
			resident = append(resident, m.start(next))
			next++
		}
		idle, alive := true, resident[:0]
		for _, c := range resident {
			if c.pass() {
				idle = false
			}
			if c.left > 0 {
				alive = append(alive, c)
			} else {
				c.end()
			}
		}
		resident = alive
		if idle && len(alive) > 0 && !m.force(alive) {
			if m.explain(resident); m.polling(alive) {
				m.endless(alive)
			}
			return
		}
		if m.counts.Steps > m.opt.MaxSteps {
			m.endless(resident)
			return
		}
	}
}

func (m *machine) endless(cs []*cluster) {
	m.report.add(Fault{Kind: Endless, Line: m.line(m.anyPC(cs)), Warp: -1, Text: "the launch does not end"})
}

// polling tells whether some warp looks at memory for what will never be there.
func (m *machine) polling(cs []*cluster) bool {
	for _, c := range cs {
		if slices.ContainsFunc(c.warps, func(w *warp) bool { return w.dozes && !w.done }) {
			return true
		}
	}
	return false
}

// anyPC is an instruction near where some warp is.
func (m *machine) anyPC(cs []*cluster) int32 {
	for _, c := range cs {
		for _, w := range c.warps {
			for pc := w.pc; !w.done && pc >= 0; pc-- {
				if m.code[pc].in != nil {
					return pc
				}
			}
		}
	}
	return -1
}

// start makes cluster i with all its state.
func (m *machine) start(i int) *cluster {
	c := &cluster{m: m, index: i}
	begin := m.now // where the cluster before it on these SMs has left off
	n := m.agents()
	c.bar.rel, c.bar.cur = newKnowledge(n), newKnowledge(n)
	for rank := range m.clusterSize {
		t := &cta{
			c: c, index: i*m.clusterSize + rank, rank: rank, base: m.agentBase(rank), mem: make([]byte, m.launch.Shared), shadow: make([]cell, (m.launch.Shared+15)/16),
			bars: map[int]*mbar{}, ended: newKnowledge(n), touched: map[int32]touch{},
		}
		for j := range t.shadow {
			t.shadow[j].write.agent = -1
		}
		for g := range (m.warps + 3) / 4 {
			t.groups = append(t.groups, newGroup(t, g))
		}
		for id := range m.warps {
			w := m.newWarp(t, id, n)
			w.time = begin
			m.opt.Timeline.name(t.index, id, fmt.Sprintf("warp %d %s", id, m.role(id)))
			t.warps = append(t.warps, w)
			c.warps = append(c.warps, w)
		}
		m.opt.Timeline.name(t.index, -1, fmt.Sprintf("CTA %d", t.index))
		m.opt.Timeline.name(t.index, TensorTrack, "tensor cores")
		m.opt.Timeline.name(t.index, PortTrack, "port to L2")
		t.tensorFree, t.portFree = begin, begin
		c.ctas = append(c.ctas, t)
	}
	c.left = len(c.warps)
	return c
}

// burst is how many instructions a chosen warp runs at most before another is chosen.
const burst = 64

// pass gives every warp a turn on average; it tells whether anything moved.
func (c *cluster) pass() bool {
	moved := false
	for range c.warps {
		w := c.warps[c.m.rng.Intn(len(c.warps))]
		if !w.done && w.run(1+c.m.rng.Intn(burst)) {
			moved = true
		}
		if len(c.ops) > 0 && c.m.due() {
			c.one()
			moved = true
		}
	}
	if moved || c.left == 0 {
		return moved
	}
	for _, w := range c.warps { // the draw may have missed the only one that can run
		if !w.done && w.run(burst) {
			moved = true
		}
	}
	return moved
}

// due tells whether an asynchronous operation is to be done now.
func (m *machine) due() bool {
	switch m.opt.Async {
	case Early:
		return true
	case Late:
		return false
	}
	return m.rng.Intn(4) == 0
}

// one does an asynchronous operation: any of those under way.
func (c *cluster) one() {
	i := c.m.rng.Intn(len(c.ops))
	o := c.ops[i]
	c.ops[i] = c.ops[len(c.ops)-1]
	c.ops = c.ops[:len(c.ops)-1]
	c.m.transfer(o)
}

// force does one asynchronous operation of some cluster where nothing else can move.
func (m *machine) force(cs []*cluster) bool {
	for _, c := range cs {
		if len(c.ops) > 0 {
			c.one()
			return true
		}
	}
	return false
}

// end lets what is still under way land, so that it is seen to land in CTAs that have gone.
func (c *cluster) end() {
	for len(c.ops) > 0 {
		c.one()
	}
	for _, w := range c.warps {
		c.m.now = max(c.m.now, w.time)
	}
}
