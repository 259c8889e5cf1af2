package ptx

import "math/bits"

// census works out, while a kernel is built, which threads of a cluster execute an instruction: it evaluates what hangs on thread, lane, warp and rank alone.
// A value is a word for each thread of each CTA, that of thread t of CTA r at r·threads + t; predicates are 0 and 1.
type census struct {
	k      *Builder
	defs   map[registerKey]*Inst // nil: written in several places
	values map[registerKey][]uint32
	who    map[*Inst]crowd
	blocks map[*Inst]*Block
}

type registerKey struct {
	class Class
	reg   int32
}

// crowd is the threads that reach an instruction; nil: not known. Loops and branches that are the same for whole warpgroups and hang on more than the thread
// are taken as entered by all: when, and how often, is another question.
type crowd []bool

func newCensus(k *Builder, body *Block) *census {
	c := &census{k: k, defs: map[registerKey]*Inst{}, values: map[registerKey][]uint32{}, who: map[*Inst]crowd{}, blocks: map[*Inst]*Block{}}
	body.WalkBlocks(func(in *Inst, b *Block) {
		c.blocks[in] = b
		for _, d := range in.Dst {
			key := registerKey{d.class, d.reg}
			if _, twice := c.defs[key]; twice {
				c.defs[key] = nil
			} else {
				c.defs[key] = in
			}
		}
	})
	everybody := make(crowd, k.threads*k.cluster)
	for i := range everybody {
		everybody[i] = true
	}
	c.visit(body, everybody)
	return c
}

func (c *census) visit(b *Block, who crowd) {
	for _, n := range b.Nodes {
		switch n := n.(type) {
		case *Inst:
			c.who[n] = who
			if n.Guard.Valid() {
				c.who[n] = c.where(who, n.Guard, 1)
			}
		case *If:
			c.visit(n.Then, c.where(who, n.Pred, 1))
			c.visit(n.Else, c.where(who, n.Pred, 0))
		case *Loop:
			c.visit(n.Cond, who)
			c.visit(n.Body, c.where(who, n.Pred, 1))
		}
	}
}

// where is the part of a crowd in which a predicate is as wanted.
func (c *census) where(who crowd, p operand, want uint32) crowd {
	v := c.eval(p)
	switch {
	case who == nil || v == nil && p.level < Warpgroup:
		return nil
	case v == nil:
		return who
	}
	part := make(crowd, len(who))
	for i := range who {
		part[i] = who[i] && v[i] == want
	}
	return part
}

// def is the only instruction that writes an operand, or nil.
func (c *census) def(o operand) *Inst {
	if o.reg < 0 {
		return nil
	}
	return c.defs[registerKey{o.class, o.reg}]
}

// eval gives an operand's value in every thread, or nil where it hangs on more than the thread.
func (c *census) eval(o operand) []uint32 {
	if o.reg < 0 {
		return c.fill(func(int, int) uint32 { return uint32(o.imm) })
	}
	key := registerKey{o.class, o.reg}
	v, done := c.values[key]
	if !done {
		c.values[key] = nil // a loop comes back to what it starts from
		if in := c.defs[key]; in != nil {
			v = c.result(in)
		}
		c.values[key] = v
	}
	return v
}

func (c *census) fill(f func(rank, thread int) uint32) []uint32 {
	v := make([]uint32, c.k.threads*c.k.cluster)
	for i := range v {
		v[i] = f(i/c.k.threads, i%c.k.threads)
	}
	return v
}

func (c *census) result(in *Inst) []uint32 {
	switch in.Op {
	case OpTidX:
		return c.fill(func(_, t int) uint32 { return uint32(t) })
	case OpLaneID:
		return c.fill(func(_, t int) uint32 { return uint32(t % 32) })
	case OpClusterRank:
		return c.fill(func(r, _ int) uint32 { return uint32(r) })
	case OpElect:
		return c.fill(func(_, t int) uint32 { return flag(t%32 == 0) })
	}
	args := make([][]uint32, len(in.Src))
	for i, s := range in.Src {
		if args[i] = c.eval(s); args[i] == nil {
			return nil
		}
	}
	if in.Op == OpShflIdxU32 {
		return c.fill(func(r, t int) uint32 {
			i := r*c.k.threads + t
			return args[0][i&^31|int(args[1][i]&31)]
		})
	}
	f := arithmetic(in.Op)
	if f == nil {
		return nil
	}
	return c.fill(func(r, t int) uint32 {
		var x [3]uint32
		for j := range min(len(args), 3) {
			x[j] = args[j][r*c.k.threads+t]
		}
		return f(x[0], x[1], x[2])
	})
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// arithmetic is what an opcode computes, for those with which kernels choose threads.
func arithmetic(op Op) func(x, y, z uint32) uint32 {
	switch op {
	case OpMov, OpSignedU32, OpUnsignedS32:
		return func(x, _, _ uint32) uint32 { return x }
	case OpAddU32:
		return func(x, y, _ uint32) uint32 { return x + y }
	case OpSubU32:
		return func(x, y, _ uint32) uint32 { return x - y }
	case OpMulU32:
		return func(x, y, _ uint32) uint32 { return x * y }
	case OpMadU32:
		return func(x, y, z uint32) uint32 { return x*y + z }
	case OpDivU32:
		return func(x, y, _ uint32) uint32 { return x / max(y, 1) }
	case OpRemU32:
		return func(x, y, _ uint32) uint32 { return x % max(y, 1) }
	case OpMinU32:
		return func(x, y, _ uint32) uint32 { return min(x, y) }
	case OpMaxU32:
		return func(x, y, _ uint32) uint32 { return max(x, y) }
	case OpAndU32, OpAndPred:
		return func(x, y, _ uint32) uint32 { return x & y }
	case OpOrU32, OpOrPred:
		return func(x, y, _ uint32) uint32 { return x | y }
	case OpXorU32, OpXorPred:
		return func(x, y, _ uint32) uint32 { return x ^ y }
	case OpNotPred:
		return func(x, _, _ uint32) uint32 { return x ^ 1 }
	case OpShlU32:
		return func(x, y, _ uint32) uint32 { return x << y }
	case OpShrU32:
		return func(x, y, _ uint32) uint32 { return x >> y }
	case OpPopU32:
		return func(x, _, _ uint32) uint32 { return uint32(bits.OnesCount32(x)) }
	case OpSelU32:
		return func(p, x, y uint32) uint32 {
			if p != 0 {
				return x
			}
			return y
		}
	}
	return comparison(op)
}

func comparison(op Op) func(x, y, z uint32) uint32 {
	switch op {
	case OpLtU32:
		return func(x, y, _ uint32) uint32 { return flag(x < y) }
	case OpLeU32:
		return func(x, y, _ uint32) uint32 { return flag(x <= y) }
	case OpGtU32:
		return func(x, y, _ uint32) uint32 { return flag(x > y) }
	case OpGeU32:
		return func(x, y, _ uint32) uint32 { return flag(x >= y) }
	case OpEqU32:
		return func(x, y, _ uint32) uint32 { return flag(x == y) }
	case OpNeU32:
		return func(x, y, _ uint32) uint32 { return flag(x != y) }
	}
	return nil
}

// shared follows an address back to the start of shared memory: how many bytes from there on it is known to lie, whether exactly there, and for a barrier of
// another CTA the operand that says whose.
func (c *census) shared(o operand) (off int, exact bool, rank operand, ok bool) {
	exact = true
	for {
		in := c.def(o)
		if in == nil {
			return 0, false, operand{}, false
		}
		switch in.Op {
		case OpSharedBase:
			return off, exact, rank, true
		case OpOffsetS, OpOffsetBar, OpOffsetC, OpOffsetCBar:
			if d := in.Src[1]; d.reg < 0 {
				off += int(int32(d.imm))
			} else {
				exact = false
			}
		case OpMapa, OpMapaAddr:
			rank = in.Src[1]
		case OpMov:
		default:
			return 0, false, operand{}, false
		}
		o = in.Src[0]
	}
}

// region is the shared region that an address is known to start from.
func (c *census) region(o operand) (Region, bool) {
	off, _, _, ok := c.shared(o)
	for _, r := range c.k.shared {
		if ok && off >= r.Off && off < r.Off+r.Bytes {
			return r, true
		}
	}
	return Region{}, false
}
