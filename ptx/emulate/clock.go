package emulate

// clocks is a vector clock: for each component how much of it is known to have happened before.
//
// Components: every lane of the cluster and every warp as a whole, counted by the warp's clock; then, for each CTA, one for each thing that completes
// asynchronously: a mbarrier (its phase), a warpgroup (its wgmma groups), a warp's bulk stores (groups read, groups complete).
type clocks []uint32

func (c clocks) join(d clocks) {
	c = c[:len(d)]
	for i, x := range d {
		if x > c[i] {
			c[i] = x
		}
	}
}

// epoch is one event: a component and its count.
type epoch struct {
	agent int32
	count uint32
}

func (c clocks) knows(e epoch) bool { return c[e.agent] >= e.count }

// knowledge is what a thread, or a barrier, knows.
type knowledge struct {
	v clocks // happened before
	a clocks // of that, what the async proxy may see
}

func newKnowledge(n int) knowledge { return knowledge{make(clocks, n), make(clocks, n)} }

func (k knowledge) join(o knowledge) {
	k.v.join(o.v)
	k.a.join(o.a)
}

func (k knowledge) clone() knowledge {
	return knowledge{append(clocks{}, k.v...), append(clocks{}, k.a...)}
}

func (k knowledge) set(e epoch) {
	k.v[e.agent] = max(k.v[e.agent], e.count)
	k.a[e.agent] = max(k.a[e.agent], e.count)
}

// Layout of the components of one CTA behind the lanes of the cluster.
const (
	maxBars = 64
	perWarp = 3 // bulk groups read, bulk groups complete, cp.async groups
)

func (m *machine) agents() int { return m.lanes + m.clusterSize*m.perCTA() + 1 }

// front is the end of the grid in front, which a launch with PDL may overtake: griddepcontrol.wait learns of it.
func (m *machine) front() epoch { return epoch{int32(m.agents() - 1), 1} }

func (m *machine) perCTA() int { return maxBars + m.warps/4 + 1 + perWarp*m.warps }

func (m *machine) agentBase(rank int) int { return m.lanes + rank*m.perCTA() }

func (t *cta) groupAgent(g int) int32 { return int32(t.base + maxBars + g) }

// bulkAgent is the component of a warp's groups: 0 bulk read, 1 bulk complete, 2 cp.async.
func (w *warp) bulkAgent(which int) int32 {
	return int32(w.t.base + maxBars + w.m.warps/4 + 1 + perWarp*w.id + which)
}

// perLanes is the components of one warp's threads: 32 lanes, and the warp as a whole for what all lanes do together.
const perLanes = 33

// lane is the component of a lane of this warp; lane 32 is the warp as a whole.
func (w *warp) lane(i int) int32 { return w.lane0 + int32(i) }

// A warp's lanes share what they know, but for two refinements: what a lane did is known to the others only from the next warp-wide barrier on (known), and
// what some lanes learned alone is theirs until then (part).

// tick starts a new interval of the lanes in mask: what they do from now on is not covered by what they published before.
func (w *warp) tick(mask uint32) {
	w.clock++
	if mask == allLanes {
		w.know.v[w.lane(32)] = w.clock
		if w.partMask != 0 {
			w.part.v[w.lane(32)] = w.clock
		}
	}
	for l := range lanes(mask) {
		w.know.v[w.lane(l)] = w.clock
		if w.partMask != 0 {
			w.part.v[w.lane(l)] = w.clock
		}
	}
}

// mine is what the lanes in mask know, to look at.
func (w *warp) mine(mask uint32) knowledge {
	if w.partMask != 0 && mask&^w.partMask == 0 {
		return w.part
	}
	return w.know
}

// learn joins o into what the lanes in mask know.
func (w *warp) learn(mask uint32, o knowledge) {
	if mask == allLanes {
		w.know.join(o)
		if w.partMask != 0 {
			w.part.join(o)
		}
		return
	}
	if w.partMask == 0 {
		copy(w.part.v, w.know.v)
		copy(w.part.a, w.know.a)
	}
	w.partMask |= mask
	w.part.join(o)
}

// learnOf is learn of one event.
func (w *warp) learnOf(mask uint32, e epoch) {
	if mask == allLanes {
		w.know.set(e)
	} else if w.partMask == 0 {
		copy(w.part.v, w.know.v)
		copy(w.part.a, w.know.a)
	}
	if mask != allLanes {
		w.partMask |= mask
	}
	if w.partMask != 0 {
		w.part.set(e)
	}
}

// publish joins into o what the lanes in mask may tell: of their sisters only what a warp-wide barrier has made known.
// What they do from now on it does not cover.
func (w *warp) publish(mask uint32, o knowledge) {
	k := w.mine(mask)
	defer w.tick(mask)
	if mask == allLanes {
		o.join(k)
		return
	}
	var own [perLanes]uint32
	mineV := k.v[w.lane0 : w.lane0+perLanes]
	copy(own[:], mineV)
	for i := range own {
		if uint64(mask)>>i&1 == 0 {
			mineV[i] = min(mineV[i], w.known)
		}
	}
	o.join(k)
	copy(mineV, own[:])
}

// meet is a barrier of the whole warp: its lanes now know of each other, and tell o.
func (w *warp) meet(o *knowledge) {
	if w.partMask != 0 {
		w.know.join(w.part)
		w.partMask = 0
	}
	if o != nil {
		o.join(w.know)
	}
	w.known = w.clock
	w.tick(allLanes)
}

// now is the epoch of what a lane does at present.
func (w *warp) now(lane int) epoch { return epoch{w.lane(lane), w.know.v[w.lane(lane)]} }
