package tile

import (
	"fmt"
	"math/bits"
)

// Divmod divides by a fixed number with one multiplication: for 0 ≤ n < 2^31, n / d = n·Multiplier >> Shift in 64 bits. A device does the same with
// mul.wide.u32 and shr.u64, or for d > 1 with mul.hi.u32 and a shift of Shift-32.
//
// Why it is exact: let Shift = 31+L with 2^(L-1) < d ≤ 2^L, and Multiplier = (2^Shift + e)/d with 0 ≤ e < d. Then n·Multiplier/2^Shift exceeds n/d by
// n·e/(d·2^Shift), which is below 1/d because n < 2^31 and e < 2^L, so that no integer lies between (Granlund and Montgomery, PLDI 1994, section 4).
type Divmod struct {
	Divisor    uint32 `json:"divisor"`
	Multiplier uint32 `json:"multiplier"`
	Shift      uint32 `json:"shift"`
}

// NewDivmod prepares division by d of [1, 2^31).
func NewDivmod(d int) (Divmod, error) {
	if d < 1 || d >= 1<<31 {
		return Divmod{}, fmt.Errorf("tile: divmod by %d, want a divisor of [1, 2^31)", d)
	}
	shift := 31 + bits.Len(uint(d-1))
	return Divmod{uint32(d), uint32((uint64(1)<<shift-1)/uint64(d) + 1), uint32(shift)}, nil
}

// Of is quotient and rest of n of [0, 2^31).
func (d Divmod) Of(n int) (quotient, rest int) {
	q := uint64(n) * uint64(d.Multiplier) >> d.Shift
	return int(q), n - int(q)*int(d.Divisor)
}
