package ptx

import (
	"fmt"
	"strings"

	"heddle/ptx/internal/isa"
)

// fill is a TMA load into a region that a descriptor reads: its tensor map, known at launch, must lay the tile out as the descriptor says.
type fill struct {
	in    *Inst
	param int
	desc  DescLayout
	read  *Inst // that made the descriptor
}

// verifyDescriptors compares each descriptor with what its region is said to hold and with how wgmma reads it.
func (k *Builder) verifyDescriptors(c *census, e *Entry) {
	made := map[string]*Inst{} // the descriptor of each region; they agree, or one of them is refused
	e.Body.Walk(func(in *Inst) {
		switch {
		case in.Op == OpDescOf:
			d, ok := k.descs[in.Dst[0].reg]
			r, inside := c.region(d.addr)
			if !ok || !inside {
				return
			}
			k.agrees(in, d.layout, r)
			made[r.Name] = in
		case in.isWgmma():
			k.verifyProduct(c, in)
		}
	})
	e.Body.Walk(func(in *Inst) {
		if !in.Op.Has(isa.Async | isa.WriteShared | isa.ReadGlobal) {
			return
		}
		m, r := c.def(in.Src[0]), Region{}
		if len(in.Src) > 1 {
			r, _ = c.region(in.Src[1])
		}
		if read := made[r.Name]; m != nil && m.Op == OpParamMap && read != nil {
			e.fills = append(e.fills, fill{in, int(m.Src[0].imm), k.descs[read.Dst[0].reg].layout, read})
		}
	})
}

// agrees refuses a descriptor that is not that of the tile its region holds.
func (k *Builder) agrees(in *Inst, d DescLayout, r Region) {
	if r.tile == nil {
		return
	}
	want, err := r.tile.Desc()
	if err == nil && d != want {
		k.failIn(in, "the descriptor says %v, but %s holds %v elements of %d bytes: %v", d, r.Name, r.tile.Layout, r.tile.Elem, want)
	}
}

// verifyProduct compares a product's operands with their descriptors.
func (k *Builder) verifyProduct(c *census, in *Inst) {
	names, descs := []string{"A", "B"}, []operand{}
	for _, s := range in.Src {
		if s.class == B64 {
			descs = append(descs, s)
		}
	}
	trans := in.Src[len(in.Src):]
	what := strings.ReplaceAll(in.Op.Mnemonic(), "{n0}", fmt.Sprint(2*in.Src[0].imm))
	switch {
	case len(descs) == 1: // A comes from registers
		names, trans = names[1:], in.Src[min(7, len(in.Src)):]
	case len(descs) == 2:
		trans = in.Src[min(4, len(in.Src)):]
	default:
		return
	}
	for i, o := range descs {
		d, ok := k.descs[c.start(o)]
		if !ok {
			continue
		}
		transposed := i < len(trans) && trans[i].imm == 1
		if d.layout.MN != transposed {
			k.failIn(in, "%s reads operand %s as %s, but its descriptor says %v", what, names[i], map[bool]string{false: "K-major", true: "MN-major"}[transposed], d.layout)
			continue
		}
		r, ok := c.region(d.addr)
		if !ok || r.tile == nil {
			continue
		}
		if size := operandBytes(in.Op); size > 0 && size != r.tile.Elem {
			k.failIn(in, "%s reads elements of %d bytes, but %s holds such of %d", what, size, r.Name, r.tile.Elem)
		}
		if rows, n := r.tile.Layout.Mode(0).Size(), 2*int(in.Src[0].imm); names[i] == "B" && rows < n {
			k.failIn(in, "%s reads %d rows of operand B, but a tile of %s has %d", what, n, r.Name, rows)
		}
	}
}

// start follows a descriptor back over its steps to the register that it was made in.
func (c *census) start(o operand) int32 {
	for {
		in := c.def(o)
		if in == nil {
			return -1
		}
		switch in.Op {
		case OpDescStep, OpDescAdd, OpMov:
			o = in.Src[0]
		default:
			return o.reg
		}
	}
}

// operandBytes is the size of a product's elements, 0 where it is not known.
func operandBytes(op Op) int {
	switch name := op.String(); {
	case strings.HasSuffix(name, "TF32"):
		return 4
	case strings.HasSuffix(name, "F16"):
		return 2
	case strings.HasSuffix(name, "E4M3"), strings.HasSuffix(name, "E5M2"):
		return 1
	}
	return 0
}

// checkFills compares the tensor maps of a launch with the descriptors that read what they bring.
func (e *Entry) checkFills(a *Args) error {
	for _, f := range e.fills {
		m := a.vals[f.param].Map
		if m == nil {
			continue
		}
		row := m.Box[0] * m.Type.Size()
		if m.Swizzle == f.desc.Swizzle && (m.Swizzle == SwizzleNone || row == m.Swizzle.Width()) {
			continue
		}
		where := e.Name
		if f.in.role != "" {
			where += ", role " + f.in.role
		}
		return fmt.Errorf("ptx: launch of %s: %s: %s brings rows of %d bytes under %v, but the descriptor of %s says %v", where, f.in.Line, e.Params[f.param].Name, row, m.Swizzle, f.read.Line, f.desc)
	}
	return nil
}
