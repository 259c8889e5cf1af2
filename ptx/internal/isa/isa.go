// Package isa is the one table of instructions: from a row are generated the opcode, the typed constructor with its document, what the printer writes
// and what the verifier and the mutator must know. Start with Row, then Table; Generate writes the z-files of package ptx.
package isa

// Row is one instruction.
type Row struct {
	// Op is the opcode's name.
	Op string
	// Sig is the constructor: [Receiver.]Name(operand Kind, …) [Result]. Without a receiver it is a method of Builder.
	// Operand kinds are value types of package ptx, [n]Kind for a vector, or an immediate #role, a Go int whose role tells the mutator what one step is.
	Sig string
	// PTX is the text: {d} or {d0}, {d1} … are results, {0}, {1} … the receiver and operands in order, vectors flattened.
	PTX   string
	Flags Flags
	ISA   string // section title in the PTX ISA manual
	Doc   string // what follows "Name …" in the constructor's document
}

// Flags are what else is to be known of an instruction.
type Flags uint32

const (
	SM90         Flags = 1 << iota // needs sm_90; without it or SM90a the instruction is in every target from sm_80
	SM90a                          // needs sm_90a
	AlignedWarp                    // all lanes of a warp must execute it together
	AlignedGroup                   // all warps of a warpgroup too
	Sync                           // orders something: the mutator drops it
	Blocking                       // may wait for another thread
	ReadShared
	WriteShared
	ReadGlobal
	WriteGlobal
	Async      // goes on after the instruction has been issued
	LevelLane  // the result differs between lanes, whatever the operands
	LevelWarp  // the result is the same in all lanes of a warp, whatever the operands
	LevelGroup // … of a warpgroup
	LevelCTA
	LevelCluster
	LevelGrid
	Alone // prints a block of its own: no semicolon, no guard
)

// Roles of immediates, as Sig names them: how the mutator moves a value by one step.
const (
	RoleCount  = "count"  // arrivals of a barrier: ± 1
	RoleBytes  = "bytes"  // transaction bytes: ± 16
	RoleDepth  = "depth"  // groups that may stay pending: ± 1
	RoleMask   = "mask"   // CTAs of a multicast: one bit
	RoleRegs   = "regs"   // registers a thread: ± 8
	RoleThread = "thread" // threads of a named barrier: ± 32
	RoleStep   = "step"   // descriptor advance, in 16-byte units: ± 2
	RoleDesc   = "desc"   // descriptor field bits
	RoleNone   = "n"      // nothing to move
)
