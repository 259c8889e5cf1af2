package ptx

// Var is a mutable register.
type Var[T Kind] struct {
	r       T
	control int // conditions open where it was declared
}

// NewVar makes a Var with an initial value. It is as uniform as that value, up to the warpgroup; NewVarAt says otherwise.
func NewVar[T Kind](k *Builder, init T) *Var[T] {
	return newVar(k, min(Warpgroup, struct{ operand }(init).level), init)
}

// NewVarAt makes a Var that is to be the same in all threads of a group of the given level, and refuses anything else at Set.
func NewVarAt[T Kind](k *Builder, level Level, init T) *Var[T] { return newVar(k, level, init) }

func newVar[T Kind](k *Builder, level Level, init T) *Var[T] {
	s := struct{ operand }(init).operand
	d := k.fresh(s.class, level)
	if s.level < level {
		k.fail("a variable that is to be the same in every %v starts with a value that varies by %v", level, s.level)
	}
	k.emit(&Inst{Op: OpMov, Dst: []operand{d}, Src: []operand{s}})
	return &Var[T]{T(struct{ operand }{d}), len(k.control)}
}

// Get is the value now: a copy, which a later Set does not change.
func (v *Var[T]) Get() T {
	s := struct{ operand }(v.r).operand
	d := s.k.fresh(s.class, s.level)
	s.k.emit(&Inst{Op: OpMov, Dst: []operand{d}, Src: []operand{s}})
	return T(struct{ operand }{d})
}

// Set changes the value.
func (v *Var[T]) Set(x T) {
	d, s := struct{ operand }(v.r).operand, struct{ operand }(x).operand
	if l := min(s.level, d.k.controlLevel(v.control)); l < d.level {
		d.k.fail("a variable that is the same in every %v is set to something that varies by %v; hint: NewVarAt(k, ptx.%v, …)", d.level, l, levelName(l))
	}
	d.k.use(d, &Inst{Op: OpMov, Line: here(1)})
	d.k.emit(&Inst{Op: OpMov, Dst: []operand{d}, Src: []operand{s}})
}

func levelName(l Level) string {
	return [...]string{"Lane", "Warp", "Warpgroup", "CTA", "Cluster", "Grid"}[l]
}

// Acc is the accumulator of a warpgroup's matrix product: n float32 registers of each thread. Only wgmma writes it.
type Acc struct {
	k    *Builder
	base int
	n    int
}

// NewAcc makes an accumulator for m64 × columns: columns/2 registers of each thread.
func (k *Builder) NewAcc(columns int) *Acc {
	if columns < 8 || columns > 256 || columns%8 != 0 {
		k.fail("an accumulator of %d columns, want a multiple of 8 from 8 to 256", columns)
		columns = 8
	}
	a := &Acc{k, k.counts[ClassAcc], columns / 2}
	k.counts[ClassAcc] += a.n
	return a
}

// Len is the number of elements each thread holds. Element 4j+2h+e of thread t is row 16·(t/32)+(t%32)/4+8h, column 8j+2·(t%4)+e.
func (acc *Acc) Len() int { return acc.n }

func (acc *Acc) operand() operand {
	return operand{k: acc.k, reg: int32(acc.base), class: ClassAcc, imm: uint64(acc.n)}
}
