package ptx

import (
	"fmt"

	"heddle/ptx/internal/isa"
)

// Mutant is a kernel with one planted fault: an edit of one instruction of the tree. A checker that lets it pass does not see what that instruction is for.
type Mutant struct {
	Edit  string // what was done, such as "drop" or "depth+1"
	Op    Op     // of the edited instruction
	Line  string // where its author wrote it
	Index int    // of the instruction in the order of Walk
	Nth   int    // among the instructions of the same opcode, from 0
	of    *Entry
	apply func(c *Entry, b *Block, i int)
}

func (m Mutant) String() string {
	return fmt.Sprintf("%s %s #%d %s", m.Line, m.Op.Mnemonic(), m.Index, m.Edit)
}

// Entry is the mutated kernel. It takes the arguments of the original.
func (m Mutant) Entry() *Entry {
	c := *m.of
	c.Body = m.of.Body.clone()
	n := 0
	c.Body.locate(func(b *Block, i int) bool {
		if n++; n-1 != m.Index {
			return true
		}
		m.apply(&c, b, i)
		return false
	})
	return &c
}

// Inst is the instruction in the original kernel.
func (m Mutant) Inst() *Inst {
	in, _ := m.find()
	return in
}

// Near are the lines of the block that holds the instruction, nested ones included: what it may order.
func (m Mutant) Near() map[string]bool {
	lines := map[string]bool{}
	_, b := m.find()
	b.Walk(func(in *Inst) { lines[in.Line.String()] = true })
	return lines
}

// Touched joins what a trace says of the instructions of the same block, nested ones included.
func (m Mutant) Touched(trace map[*Inst]map[string]bool) map[string]bool {
	all := map[string]bool{}
	_, b := m.find()
	b.Walk(func(in *Inst) {
		for o := range trace[in] {
			all[o] = true
		}
	})
	return all
}

func (m Mutant) find() (in *Inst, within *Block) {
	n := 0
	m.of.Body.locate(func(b *Block, i int) bool {
		if n++; n-1 != m.Index {
			return true
		}
		in, within = b.Nodes[i].(*Inst), b
		return false
	})
	return in, within
}

func (b *Block) clone() *Block {
	c := &Block{Nodes: make([]Node, len(b.Nodes))}
	for i, n := range b.Nodes {
		switch n := n.(type) {
		case *Inst:
			in := *n
			in.Src = append([]Operand{}, n.Src...)
			c.Nodes[i] = &in
		case *If:
			c.Nodes[i] = &If{Pred: n.Pred, Then: n.Then.clone(), Else: n.Else.clone(), Line: n.Line}
		case *Loop:
			c.Nodes[i] = &Loop{Cond: n.Cond.clone(), Pred: n.Pred, Body: n.Body.clone(), Line: n.Line}
		}
	}
	return c
}

// locate calls f with the place of every instruction in the order of Walk, until f gives false.
func (b *Block) locate(f func(b *Block, i int) bool) bool {
	for i, n := range b.Nodes {
		more := true
		switch n := n.(type) {
		case *Inst:
			more = f(b, i)
		case *If:
			more = n.Then.locate(f) && n.Else.locate(f)
		case *Loop:
			more = n.Cond.locate(f) && n.Body.locate(f)
		}
		if !more {
			return false
		}
	}
	return true
}

// Mutants lists every single fault of the kinds below:
// each synchronising instruction dropped; each arrival count, byte number, register number, thread number and descriptor step moved by one step either way
// (waits only towards less waiting, registers only up: the other way is merely slower); each parity inverted; each descriptor's stride and swizzle, each
// multicast mask by one bit; each proxy fence in lane 0 alone; a wait moved behind the synchronising instruction after it, what is waited for behind its wait;
// the last mbarrier wait dropped together with the last cluster barrier.
func (e *Entry) Mutants() []Mutant {
	var all []Mutant
	n := -1
	var nth [NumOps]int
	e.Body.locate(func(b *Block, i int) bool {
		n++
		in := b.Nodes[i].(*Inst)
		defer func() { nth[in.Op]++ }()
		add := func(edit string, apply func(c *Entry, b *Block, i int)) {
			all = append(all, Mutant{Edit: edit, Op: in.Op, Line: in.Line.String(), Index: n, Nth: nth[in.Op], of: e, apply: apply})
		}
		if in.Op.Has(isa.Sync) {
			add("drop", drop)
			if j := b.nextSync(i); j > 0 && swaps(in.Op, b.Nodes[j].(*Inst).Op) {
				add("move behind "+b.Nodes[j].(*Inst).Op.Mnemonic(), func(_ *Entry, b *Block, i int) { b.move(i, j) })
			}
		}
		immediates(in, add)
		switch in.Op {
		case OpMbarWait, OpMbarTry:
			add("parity inverted", invertParity)
		case OpFenceProxyAsync:
			add("in lane 0 alone", laneZero)
		}
		return true
	})
	return append(all, e.withoutExit()...)
}

func drop(_ *Entry, b *Block, i int) { b.Nodes = append(b.Nodes[:i:i], b.Nodes[i+1:]...) }

// nextSync is the place of the next synchronising instruction of another kind in the block, with no construct between; 0: there is none.
func (b *Block) nextSync(i int) int {
	for j := i + 1; j < len(b.Nodes); j++ {
		in, ok := b.Nodes[j].(*Inst)
		if !ok {
			return 0
		}
		if in.Op.Has(isa.Sync) {
			if in.Op == b.Nodes[i].(*Inst).Op {
				return 0
			}
			return j
		}
	}
	return 0
}

// swaps tells whether an instruction loses its meaning behind the next: a wait behind what it should come before, something that is waited for behind
// its wait, an initialisation behind its fence.
func swaps(first, next Op) bool {
	switch {
	case first == OpWgCommit:
		return next == OpWgWait
	case first == OpBulkCommit:
		return next == OpBulkWait || next == OpBulkWaitRead
	case first == OpClusterArrive:
		return next == OpClusterWait
	case first == OpMbarInit:
		return next == OpFenceMbarInit
	}
	return first.Has(isa.Blocking) && next != OpWgFence && next != OpGridWait
}

// move puts node i behind node j.
func (b *Block) move(i, j int) {
	n := b.Nodes[i]
	copy(b.Nodes[i:j], b.Nodes[i+1:j+1])
	b.Nodes[j] = n
}

func immediates(in *Inst, add func(string, func(*Entry, *Block, int))) {
	for s, role := range ops[in.Op].Roles {
		shift := func(edit string, by int64) {
			add(edit, func(_ *Entry, b *Block, i int) {
				o := &b.Nodes[i].(*Inst).Src[s]
				o.imm = uint64(int64(o.imm) + by)
			})
		}
		switch v := in.Src[s].imm; role {
		case isa.RoleCount:
			shift("count+1", 1)
			if v > 1 {
				shift("count-1", -1)
			}
		case isa.RoleBytes:
			shift("bytes+16", 16)
			shift("bytes-16", -16)
		case isa.RoleDepth:
			shift("depth+1", 1)
		case isa.RoleRegs:
			shift("registers+8", 8)
		case isa.RoleThread:
			shift("threads+32", 32)
			if v > 32 {
				shift("threads-32", -32)
			}
		case isa.RoleStep:
			shift("step+2", 2)
			if v >= 2 {
				shift("step-2", -2)
			}
		case isa.RoleMask:
			for bit := uint64(1); bit <= v; bit <<= 1 {
				if v&bit != 0 && v != bit {
					shift(fmt.Sprintf("mask-%d", bit), -int64(bit))
				}
			}
		case isa.RoleDesc:
			shift("stride+256", 16<<32)
			shift("swizzle", 1<<62) // 128 bytes becomes 64, 64 becomes 32 (modulo the field's two bits)
		}
	}
}

// invertParity waits for the other phase.
func invertParity(c *Entry, b *Block, i int) {
	in := b.Nodes[i].(*Inst)
	flipped := c.register(B32, in.Src[1])
	x := &Inst{Op: OpXorU32, Dst: []Operand{flipped}, Src: []Operand{in.Src[1], immediate(c.k, 1)}, Line: in.Line}
	in.Src[1] = flipped
	b.insert(i, x)
}

// laneZero guards an instruction by lane = 0.
func laneZero(c *Entry, b *Block, i int) {
	in := b.Nodes[i].(*Inst)
	lane, p := c.register(B32, Operand{k: c.k}), c.register(P, Operand{k: c.k})
	in.Guard = p
	b.insert(i, &Inst{Op: OpLaneID, Dst: []Operand{lane}, Line: in.Line}, &Inst{Op: OpEqU32, Dst: []Operand{p}, Src: []Operand{lane, immediate(c.k, 0)}, Line: in.Line})
}

func (e *Entry) register(c Class, like Operand) Operand {
	e.Counts[c]++
	return Operand{k: e.k, reg: int32(e.Counts[c] - 1), class: c, level: like.level}
}

func (b *Block) insert(i int, nodes ...Node) {
	b.Nodes = append(b.Nodes[:i:i], append(nodes, b.Nodes[i:]...)...)
}

// withoutExit drops the last mbarrier wait before the last cluster barrier, and that barrier: each alone may be covered by the other.
func (e *Entry) withoutExit() []Mutant {
	last, wait, n := -1, -1, -1
	var in *Inst
	e.Body.Walk(func(x *Inst) {
		n++
		if x.Op == OpClusterArrive {
			last = n
		}
	})
	n = -1
	found := false
	e.Body.Walk(func(x *Inst) {
		n++
		if next := x.Op == OpSetMaxInc; next && wait >= 0 {
			found = true // the producer's waits end where the next role begins
		}
		if x.Op == OpMbarWait && !found {
			wait, in = n, x
		}
	})
	if last < 0 || wait < 0 || wait > last {
		return nil
	}
	return []Mutant{{Edit: "drop with the last cluster barrier", Op: in.Op, Line: in.Line.String(), Index: wait, of: e, apply: func(c *Entry, b *Block, i int) {
		dropLast(c.Body, OpClusterWait)
		dropLast(c.Body, OpClusterArrive)
		drop(c, b, i)
	}}}
}

func dropLast(body *Block, op Op) {
	var at *Block
	place := 0
	body.locate(func(b *Block, i int) bool {
		if b.Nodes[i].(*Inst).Op == op {
			at, place = b, i
		}
		return true
	})
	if at != nil {
		drop(nil, at, place)
	}
}
