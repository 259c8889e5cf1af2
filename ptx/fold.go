package ptx

// fold computes an instruction at build time where it can: all operands constant, or one that changes nothing.
func fold(op Op, a []operand) (operand, bool) {
	if len(a) != 2 || a[1].reg >= 0 || a[0].k == nil || a[1].k == nil {
		return operand{}, false
	}
	x, y, r := uint32(a[0].imm), uint32(a[1].imm), uint32(0)
	if a[0].reg >= 0 {
		neutral := y == 0 && (op == OpAddU32 || op == OpSubU32 || op == OpShlU32 || op == OpShrU32 || op == OpOffsetS || op == OpOffsetBar) || y == 1 && (op == OpMulU32 || op == OpDivU32)
		return a[0], neutral
	}
	switch op {
	case OpAddU32:
		r = x + y
	case OpSubU32:
		r = x - y
	case OpMulU32:
		r = x * y
	case OpShlU32:
		r = x << y
	case OpShrU32:
		r = x >> y
	case OpAndU32:
		r = x & y
	case OpXorU32:
		r = x ^ y
	case OpMinU32:
		r = min(x, y)
	default:
		return operand{}, false
	}
	return immediate(a[0].k, int(r)), true
}
