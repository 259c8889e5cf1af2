// Package ptx writes kernels for NVIDIA's Hopper as typed Go: registers, instructions, structured control flow, a verifier and a printer of PTX text.
//
// A Builder records a kernel as a tree of instructions; Build verifies it and gives an Entry; a Module prints entries as PTX. The same tree is executed
// by package ptx/emulate, so what is printed is what was tested: special registers, shared addresses and tensor maps are instructions like any other.
//
// Three kinds of thing hold data. Values (U32, Pred, SAddr, Bar, Desc …) are made by an instruction, a constant or a parameter and never change; each kind
// is a Go type, so that the Go compiler refuses a U32 where a Pred is wanted. A Var is a scalar that can be Set. An Acc is the register array of a matrix product.
//
// A kernel's Go code runs once, at build time: a Go for unrolls, a Go if chooses, and a Go int that "advances" inside the body of For does not.
// Run-time control flow is If, IfElse, While, For and When. A value made inside a branch or loop cannot be used after it: carry it in a Var.
//
// Every value carries its uniformity (Level). Instructions that all lanes of a warp or warpgroup must reach together are refused under a condition that varies.
//
// Start with New, then zinst.go for the instructions, which are generated from the table in ptx/internal/isa.
package ptx

//go:generate go run ./internal/isa/gen

// Module is the entries that are compiled together.
type Module struct {
	Entries []*Entry
}

// Entry finds an entry by name, or gives nil.
func (m *Module) Entry(name string) *Entry {
	for _, e := range m.Entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Entry is a verified kernel: what a launch needs to know, and the instruction tree for those who read it.
type Entry struct {
	Name        string
	Params      []Param
	Threads     int // of a CTA
	Cluster     int // CTAs of a cluster, along x
	SharedBytes int // dynamic shared memory
	Registers   int // registers a thread at launch: what the register file gives Threads threads, in steps of 8
	Target      string

	Body    *Block
	Counts  [NumClasses]int // registers of each class
	Bars    map[int]string  // barrier names by offset in shared memory
	Roles   []RoleInfo
	Regions []Region // of shared memory
	Spliced int      // what Builder.SpliceB said
	fills   []fill   // tensor maps that bring operands of wgmma
	Shifted bool     // what Builder.ShiftB said
	k       *Builder
}

// RoleInfo is the part of the CTA that a role was given.
type RoleInfo struct {
	Name       string
	Warpgroups [2]int // first, and one past the last
	Registers  int    // a thread
}

// NewArgs makes an empty argument list for the entry.
func (e *Entry) NewArgs() *Args { return &Args{entry: e, vals: make([]Arg, len(e.Params))} }

// Node is an instruction or a construct: *Inst, *If or *Loop.
type Node interface{ node() }

// Block is a sequence of nodes.
type Block struct{ Nodes []Node }

// Inst is one instruction.
type Inst struct {
	Op    Op
	Dst   []Operand
	Src   []Operand // receiver and operands, vectors flattened
	Guard Operand   // predicate of When; not Valid where there is none
	Line  Line
	role  string // that it was written in
	times int    // of mbarrier.init: arrivals of each participant a phase; 0: one
}

// If runs Then in the lanes where Pred holds, Else in the others.
type If struct {
	Pred       Operand
	Then, Else *Block
	Line       Line
}

// Loop runs Cond, then Body in the lanes where Pred holds, until no lane is left.
type Loop struct {
	Cond *Block
	Pred Operand
	Body *Block
	Line Line
}

func (*Inst) node() {}
func (*If) node()   {}
func (*Loop) node() {}

// Walk calls f on every instruction below b, in program order.
func (b *Block) Walk(f func(*Inst)) { b.WalkBlocks(func(in *Inst, _ *Block) { f(in) }) }

// WalkBlocks is Walk with the innermost block that holds each instruction.
func (b *Block) WalkBlocks(f func(*Inst, *Block)) {
	for _, n := range b.Nodes {
		switch n := n.(type) {
		case *Inst:
			f(n, b)
		case *If:
			n.Then.WalkBlocks(f)
			n.Else.WalkBlocks(f)
		case *Loop:
			n.Cond.WalkBlocks(f)
			n.Body.WalkBlocks(f)
		}
	}
}
