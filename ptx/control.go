package ptx

import "heddle/ptx/internal/isa"

// scope runs body with its own lifetime of values, under a condition of the given uniformity.
func (k *Builder) scope(into *Block, cond Level, body func()) {
	save := k.cur
	k.cur = into
	k.nscope++
	k.scopes = append(k.scopes, k.nscope)
	k.control = append(k.control, cond)
	body()
	k.control = k.control[:len(k.control)-1]
	k.scopes = k.scopes[:len(k.scopes)-1]
	k.cur = save
}

// If runs then in the threads where p holds.
func (k *Builder) If(p Pred, then func()) { k.branch(p, then, nil, here(1)) }

// IfElse runs then in the threads where p holds, els in the others.
func (k *Builder) IfElse(p Pred, then, els func()) { k.branch(p, then, els, here(1)) }

func (k *Builder) branch(p Pred, then, els func(), line Line) {
	n := &If{Pred: p.operand, Then: &Block{}, Else: &Block{}, Line: line}
	k.condition(p, line)
	k.cur.Nodes = append(k.cur.Nodes, n)
	k.scope(n.Then, p.level, then)
	if els != nil {
		k.scope(n.Else, p.level, els)
	}
	if n.Parts() && k.controlLevel(0) >= Warp {
		k.WarpSync()
	}
}

// condition checks a predicate that steers a construct.
func (k *Builder) condition(p Pred, line Line) {
	k.use(p.operand, &Inst{Op: OpMov, Line: line})
	if k.guard.Valid() {
		k.failAt(line, "a branch or loop inside When")
	}
}

// Parts tells whether the lanes of a warp may leave the construct apart from each other: a condition that varies by lane over a loop, a wait or another
// synchronising instruction. The builder puts a WarpSync behind such a construct, and the emulator insists on it.
func (n *If) Parts() bool { return n.Pred.level == Lane && (lasting(n.Then) || lasting(n.Else)) }

func lasting(b *Block) bool {
	for _, n := range b.Nodes {
		switch n := n.(type) {
		case *Loop:
			return true
		case *Inst:
			if n.Op.Has(isa.Sync) || n.Op.Has(isa.Blocking) {
				return true
			}
		case *If:
			if lasting(n.Then) || lasting(n.Else) {
				return true
			}
		}
	}
	return false
}

// While runs body as long as cond, which is evaluated anew each time, gives a predicate that holds.
func (k *Builder) While(cond func() Pred, body func()) {
	n := &Loop{Cond: &Block{}, Body: &Block{}, Line: here(1)}
	k.loop(n, cond, body)
}

func (k *Builder) loop(n *Loop, cond func() Pred, body func()) {
	k.cur.Nodes = append(k.cur.Nodes, n)
	// One scope holds condition and body: what cond makes, body may use. Inside, the number of rounds run so far varies as the predicate does.
	k.scope(n.Cond, Grid, func() {
		p := cond()
		n.Pred = p.operand
		k.condition(p, n.Line)
		k.control[len(k.control)-1] = p.level
		n.Cond.Walk(func(in *Inst) { // from the second round on it runs in the lanes that are left
			if in.Op.Aligned() > p.level {
				k.failAt(in.Line, "%s stands in a loop's condition that varies by %v", in.Op.Mnemonic(), p.level)
			}
		})
		k.cur = n.Body
		body()
	})
	if n.Parts() && k.controlLevel(0) >= Warp {
		k.WarpSync()
	}
}

// Parts tells whether the lanes of a warp may leave the loop apart from each other.
func (n *Loop) Parts() bool { return n.Pred.level == Lane }

// For runs body with i = lo, lo+step, … below hi, unsigned.
func (k *Builder) For(lo, hi, step U32, body func(i U32)) {
	n := &Loop{Cond: &Block{}, Body: &Block{}, Line: here(1)}
	v := newVar(k, min(lo.level, hi.level, step.level), lo)
	k.loop(n, func() Pred { return v.Get().Lt(hi) }, func() {
		i := v.Get()
		body(i)
		v.Set(i.Add(step))
	})
}

// When predicates the instructions of body by p, without a branch: for a few plain instructions, no barrier, no construct.
func (k *Builder) When(p Pred, body func()) {
	k.condition(p, here(1))
	k.scope(k.cur, p.level, func() {
		k.guard = p.operand
		body()
		k.guard = operand{}
	})
}

// Role gives the next warpgroups of the CTA to body, with so many registers a thread (0: as launched). Its name stands in reports.
func (k *Builder) Role(name string, warpgroups, registers int, body func()) {
	first := 0
	if n := len(k.roles); n > 0 {
		first = k.roles[n-1].Warpgroups[1]
	}
	r := RoleInfo{Name: name, Warpgroups: [2]int{first, first + warpgroups}, Registers: registers}
	k.roles = append(k.roles, r)
	g := k.WarpgroupIndex()
	p := g.Eq(k.U32(first))
	if warpgroups > 1 {
		p = g.Sub(k.U32(first)).Lt(k.U32(warpgroups))
	}
	k.branch(p, func() {
		switch at := launchRegisters(k.threads); {
		case registers > at:
			k.raiseRegisters(registers)
		case registers > 0 && registers < at:
			k.lowerRegisters(registers)
		}
		k.role = name
		body()
		k.role = ""
	}, nil, here(1))
}
