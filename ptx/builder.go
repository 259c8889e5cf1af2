package ptx

import (
	"errors"
	"fmt"

	"heddle/ptx/internal/isa"
)

// Builder records one kernel. Its methods and those of the values it makes append instructions.
type Builder struct {
	name     string
	threads  int
	cluster  int
	params   []Param
	prologue *Block // special registers, parameters and addresses: made once, usable everywhere
	body     *Block
	cur      *Block
	counts   [NumClasses]int
	guard    operand
	scopes   []int32 // open constructs, innermost last; the first is the entry
	nscope   int32
	control  []Level // uniformity of the open conditions
	shared   []Region
	bytes    int // of shared memory
	bars     map[int]string
	roles    []RoleInfo
	role     string // being written
	cached   map[Op]operand
	spliced  int
	descs    map[int32]described // descriptors, by register
	shifted  bool
	faults   []error
}

// New starts a kernel of so many threads a CTA, in clusters of so many CTAs along x (1: none).
func New(name string, threads, cluster int) *Builder {
	k := &Builder{name: name, threads: threads, cluster: cluster, prologue: &Block{}, body: &Block{}, scopes: []int32{0}, bars: map[int]string{}, cached: map[Op]operand{}, descs: map[int32]described{}}
	k.cur = k.body
	if threads < 32 || threads > 1024 || threads%32 != 0 {
		k.fail("a CTA of %d threads, want a multiple of 32 up to 1024", threads)
	}
	if cluster < 1 || cluster > 16 {
		k.fail("a cluster of %d CTAs, want 1..16", cluster)
	}
	return k
}

const maxFaults = 10 // a longer list helps nobody

func (k *Builder) fail(format string, args ...any) { k.failAt(here(1), format, args...) }

func (k *Builder) failAt(l Line, format string, args ...any) {
	if len(k.faults) < maxFaults {
		where := k.name
		if k.role != "" {
			where += ", role " + k.role
		}
		k.faults = append(k.faults, fmt.Errorf("ptx: %s: %s: %s", where, l, fmt.Sprintf(format, args...)))
	}
}

// failIn is failAt of an instruction, in the role that it was written in.
func (k *Builder) failIn(in *Inst, format string, args ...any) {
	was := k.role
	k.role = in.role
	k.failAt(in.Line, format, args...)
	k.role = was
}

// Build verifies the kernel and ends it. The error lists up to ten faults, each with the author's line.
func (k *Builder) Build() (*Entry, error) {
	if len(k.control) > 0 || k.guard.Valid() {
		k.fail("Build inside a construct")
	}
	e := &Entry{
		Name: k.name, Params: k.params, Threads: k.threads, Cluster: k.cluster, SharedBytes: k.bytes, Registers: launchRegisters(k.threads),
		Body: &Block{Nodes: append(append([]Node{}, k.prologue.Nodes...), k.body.Nodes...)}, Counts: k.counts, Bars: k.bars, Roles: k.roles, Regions: k.shared, Spliced: k.spliced, Shifted: k.shifted, k: k,
	}
	e.Target = e.target()
	k.verify(e)
	if len(k.faults) > 0 {
		return nil, errors.Join(k.faults...)
	}
	return e, nil
}

// launchRegisters is what an SM's 65,536 registers give each thread when one CTA has them all: a multiple of 8, or 255, the most that an instruction can name.
func launchRegisters(threads int) int { return min(255, 65536/threads/8*8) }

func (k *Builder) fresh(c Class, l Level) operand {
	k.counts[c]++
	return operand{k: k, reg: int32(k.counts[c] - 1), class: c, level: l, scope: k.scopes[len(k.scopes)-1]}
}

// immediate is a Go int as operand; without a builder it stays the zero operand, which the first use reports.
func immediate(k *Builder, n int) operand {
	return operand{k: k, reg: -1, class: B32, level: Grid, imm: uint64(uint32(n))}
}

// immediate64 is a 64-bit constant as operand.
func immediate64(k *Builder, n uint64) operand {
	return operand{k: k, reg: -1, class: B64, level: Grid, imm: n}
}

// owner finds the builder of an instruction's operands: that of the receiver, else of any operand.
func owner(k *Builder, args []operand) *Builder {
	for i := 0; k == nil && i < len(args); i++ {
		k = args[i].k
	}
	return k
}

func effect(k *Builder, op Op, args ...operand) {
	if k = owner(k, args); k != nil {
		k.emit(&Inst{Op: op, Src: args})
	}
}

func value(k *Builder, op Op, c Class, args ...operand) operand {
	if k = owner(k, args); k == nil {
		return operand{} // zero values in, zero value out: reported where it meets a real one
	}
	if r, ok := fold(op, args); ok {
		return r
	}
	d := k.fresh(c, resultLevel(op, args))
	k.emit(&Inst{Op: op, Dst: []operand{d}, Src: args})
	return d
}

func values(k *Builder, op Op, c Class, n int, args ...operand) []operand {
	if k = owner(k, args); k == nil {
		return make([]operand, n)
	}
	d := make([]operand, n)
	for i := range d {
		d[i] = k.fresh(c, resultLevel(op, args))
	}
	k.emit(&Inst{Op: op, Dst: d, Src: args})
	return d
}

func resultLevel(op Op, args []operand) Level {
	if l, forced := op.levelOf(); forced {
		return l
	}
	l := Grid
	for _, a := range args {
		l = min(l, a.level)
	}
	if op == OpShflIdxU32 { // every lane gets the value of one lane
		l = max(l, Warp)
		if args[1].level < Warp {
			l = Lane
		}
	}
	return l
}

// emit appends an instruction after the checks that need to know where it stands.
func (k *Builder) emit(in *Inst) {
	in.Line, in.role = here(2), k.role
	for _, s := range in.Src {
		k.use(s, in)
	}
	if al := in.Op.Aligned(); al > Lane {
		if l := k.controlLevel(0); l < al {
			k.failAt(in.Line, "%s must be executed by a whole %v together, but stands under a condition that varies by %v", in.Op.Mnemonic(), al, l)
		}
	}
	if in.Guard = k.guard; k.guard.Valid() && (in.Op.Aligned() > Lane || in.Op.Has(isa.Alone)) {
		k.failAt(in.Line, "%s cannot stand inside When; hint: use If", in.Op.Mnemonic())
	}
	k.cur.Nodes = append(k.cur.Nodes, in)
}

// use checks that an operand belongs here.
func (k *Builder) use(o operand, in *Inst) {
	switch {
	case o.k == nil:
		k.failAt(in.Line, "%s: an operand is a zero value that no instruction made", in.Op.Mnemonic())
	case o.k != k:
		k.failAt(in.Line, "%s: an operand belongs to another kernel, %s", in.Op.Mnemonic(), o.k.name)
	case o.reg >= 0 && !k.open(o.scope):
		k.failAt(in.Line, "%s: %v was made inside a branch or loop that has ended; hint: carry it in a Var", in.Op.Mnemonic(), o)
	}
}

func (k *Builder) open(scope int32) bool {
	for i := len(k.scopes) - 1; i >= 0; i-- {
		if k.scopes[i] == scope {
			return true
		}
	}
	return false
}

// controlLevel is the uniformity of the conditions opened after the first n.
func (k *Builder) controlLevel(n int) Level {
	l := Grid
	for _, c := range k.control[min(n, len(k.control)):] {
		l = min(l, c)
	}
	return l
}
