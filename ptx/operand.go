package ptx

import (
	"fmt"

	"heddle/ptx/internal/isa"
)

// Level is the largest group of threads in which a value is known to be the same.
type Level uint8

const (
	Lane      Level = iota // may differ between the lanes of a warp
	Warp                   // the same in all lanes of a warp
	Warpgroup              // … of four consecutive warps
	CTA
	Cluster
	Grid // the same in every thread, as constants and parameters are
)

func (l Level) String() string {
	return [...]string{"lane", "warp", "warpgroup", "CTA", "cluster", "grid"}[l]
}

// Class is a register class.
type Class uint8

const (
	P   Class = iota // predicates
	B32              // 32-bit registers
	B64              // 64-bit registers
	ClassAcc
	NumClasses
)

// operand is a register or an immediate. The value types embed it, so that only this package makes them.
type operand struct {
	k     *Builder
	reg   int32 // −1: immediate
	class Class
	level Level
	scope int32  // construct that made it; 0: the entry itself
	float bool   // an immediate that prints as a float32
	imm   uint64 // value of an immediate; registers of an accumulator
}

// Operand is a register or an immediate of an instruction, to read.
type Operand = operand

// IsImm tells an immediate from a register.
func (o operand) IsImm() bool { return o.reg < 0 }

// Reg is the register's index in its class, or −1.
func (o operand) Reg() int { return int(o.reg) }

// Imm is an immediate's value; for an accumulator its number of registers.
func (o operand) Imm() uint64 { return o.imm }

// Class is the register's class.
func (o operand) Class() Class { return o.class }

// Uniform is the level at which the value is known to be the same.
func (o operand) Uniform() Level { return o.level }

// Valid tells whether the operand was made by a builder.
func (o operand) Valid() bool { return o.k != nil }

func (o operand) String() string {
	switch {
	case o.float:
		return fmt.Sprintf("0f%08X", o.imm)
	case o.reg < 0:
		return fmt.Sprint(o.imm)
	}
	return fmt.Sprintf("%s%d", [...]string{"p", "r", "d", "c"}[o.class], o.reg)
}

// opInfo is what the table says of an opcode.
type opInfo struct {
	Name  string
	PTX   string
	Flags isa.Flags
	Roles []string // of immediates, receiver first; nil where there is nothing to move
}

func (o Op) String() string { return ops[o].Name }

// MarshalText gives the opcode's name, so that opcodes can be keys of JSON objects.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (o *Op) UnmarshalText(b []byte) error {
	for i := OpMov; i < NumOps; i++ {
		if ops[i].Name == string(b) {
			*o = i
			return nil
		}
	}
	return fmt.Errorf("ptx: no opcode is named %q", b)
}

// Mnemonic is the first word of the instruction's PTX text.
func (o Op) Mnemonic() string { return mnemonic(ops[o].PTX) }

// Has tells whether the table gives the opcode all these flags.
func (o Op) Has(f isa.Flags) bool { return ops[o].Flags&f == f }

// Blocks tells whether the instruction may wait.
func (o Op) Blocks() bool { return o.Has(isa.Blocking) }

// levelOf is the uniformity that the table forces on a result, and whether it does.
func (o Op) levelOf() (Level, bool) {
	for i, f := range [...]isa.Flags{isa.LevelLane, isa.LevelWarp, isa.LevelGroup, isa.LevelCTA, isa.LevelCluster, isa.LevelGrid} {
		if o.Has(f) {
			return Level(i), true
		}
	}
	return 0, false
}

// Aligned is the group whose threads must execute the opcode together; Lane for none.
func (o Op) Aligned() Level {
	switch {
	case o.Has(isa.AlignedGroup):
		return Warpgroup
	case o.Has(isa.AlignedWarp):
		return Warp
	}
	return Lane
}
