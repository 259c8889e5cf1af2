package emulate

import "math"

// cell is what is known about 16 bytes of shared memory. It holds no pointer, so that the collector never looks at the shadow, and fills one cache line.
type cell struct {
	write   epoch // agent −1: never written
	read    [maxReaders]epoch
	readPC  [maxReaders]int32
	writePC int32
	split   int32 // the four words are looked after one by one: place in the CTA's words, plus one
	x, y    int32 // origin
	tensor  uint8
	generic bool // written by the generic proxy
	atomic  bool // the last write was an atomic
	readers uint8
}

const maxReaders = 3

// origin is where TMA took the 16 bytes from: a tensor, and the coordinates of the first element. Tensor 0: not from TMA.
type origin struct {
	tensor int32 // parameter index + 1
	x, y   int32
}

func (c *cell) origin() origin { return origin{int32(c.tensor), c.x, c.y} }

// from marks the cell; of parameters beyond the 255th it forgets where the bytes came from.
func (c *cell) from(tensor, x, y int) {
	if tensor <= math.MaxUint8 {
		c.tensor, c.x, c.y = uint8(tensor), int32(x), int32(y)
	}
}

// access describes one access for the checks.
type access struct {
	t      *cta
	off    int // bytes into the CTA's shared memory
	bytes  int
	write  bool
	async  bool // by the async proxy
	atomic bool // needs no order with other atomics
	by     epoch
	know   knowledge
	pc     int32
	// What the access has met in other cells and found in order; neighbours were mostly touched by the same instruction.
	before epoch // a last write
	reader epoch // a reader
}

// check looks every touched cell up, reports what is not ordered, and remembers the access.
func (m *machine) check(x *access) {
	m.trace(x.pc, x.off)
	if x.off < 0 || x.off+x.bytes > len(x.t.mem) {
		m.faultAt(Bounds, x.t, x.pc, -1, "", "shared memory access of %d bytes at %d, outside %d bytes", x.bytes, x.off, len(x.t.mem))
		return
	}
	if m.opt.Unsafe {
		return
	}
	cells := x.t.shadow[x.off>>4 : (x.off+x.bytes+15)>>4]
	for i := range cells {
		c, at := &cells[i], x.off&^15+16*i
		if c.split == 0 && x.off <= at && at+16 <= x.off+x.bytes {
			if c.write != x.before || x.write || x.async && c.generic {
				m.touch(x, c, at)
			} else if c.readers == 0 || c.readers == 1 && c.read[0].agent == x.by.agent {
				c.read[0], c.readPC[0], c.readers = x.by, x.pc, 1
			} else {
				c.remember(x)
			}
			continue
		}
		words := x.t.split(c)
		for i := range words {
			if w := at + 4*i; w >= x.off && w < x.off+x.bytes {
				m.touch(x, &words[i], w)
			}
		}
	}
}

// split gives the four word cells of a cell, made from it at the first partial access.
func (t *cta) split(c *cell) *[4]cell {
	if c.split == 0 {
		t.words = append(t.words, [4]cell{*c, *c, *c, *c})
		c.split = int32(len(t.words))
	}
	return &t.words[c.split-1]
}

func (m *machine) touch(x *access, c *cell, at int) {
	// A thread knows its own past. What completes asynchronously is ordered only by somebody who has waited for it.
	thread := int(x.by.agent) < m.lanes
	switch w := c.write; {
	case w == x.before && !(x.async && c.generic):
	case w.agent < 0:
		if !x.write || x.atomic {
			m.faultAt(Uninitialised, x.t, x.pc, -1, m.object(at), "reads %s, which nothing has written", m.place(at))
		}
	case x.atomic && c.atomic:
	case !(thread && w.agent == x.by.agent) && !x.know.v.knows(w):
		m.collide(Race, x, c.writePC, at, "touches %s, written at %s, and nothing orders the two")
	case x.async && !x.write && c.generic && !x.know.a.knows(w):
		m.collide(Proxy, x, c.writePC, at, "the async proxy reads %s, written at %s, without fence.proxy.async on the way")
	default:
		x.before = w
	}
	if x.write {
		for i, r := range c.read[:c.readers] {
			switch {
			case r == x.reader:
			case !(thread && r.agent == x.by.agent) && !x.know.v.knows(r):
				m.collide(Race, x, c.readPC[i], at, "overwrites %s while %s may still read it")
			default:
				x.reader = r
			}
		}
		c.write, c.writePC, c.generic, c.atomic, c.readers, c.tensor, c.x, c.y = x.by, x.pc, !x.async, x.atomic, 0, 0, 0, 0
		return
	}
	c.remember(x)
}

// collide reports an access that meets an earlier one. The same pair of lines meets in many cells; only the first is put into words.
func (m *machine) collide(k Kind, x *access, other int32, at int, format string) {
	if m.report.has(Fault{Kind: k, Line: m.line(x.pc), Other: m.line(other)}) {
		return
	}
	m.faultAt(k, x.t, x.pc, other, m.object(at), format, m.place(at), m.line(other))
}

// remember keeps a reader; of more than there is room for it forgets one that the newcomer knows of, else the last.
func (c *cell) remember(x *access) {
	k := c.readers
	for i := range c.readers {
		if c.read[i].agent == x.by.agent || x.know.v.knows(c.read[i]) {
			k = i
			break
		}
	}
	if k == c.readers {
		if k == maxReaders {
			k = maxReaders - 1
		} else {
			c.readers++
		}
	}
	c.read[k], c.readPC[k] = x.by, x.pc
}
