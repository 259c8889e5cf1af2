package ptx

import "heddle/ptx/internal/isa"

// verify is the visible list of checks that need the whole kernel; what can be seen where an instruction is written, emit has refused already.
func (k *Builder) verify(e *Entry) {
	k.verifyShared()
	k.verifyRoles(e)
	k.verifyWgmma(e.Body)
	k.verifyFragments(e.Body)
	if len(k.faults) == 0 { // what follows works with operands, which must be sound
		c := newCensus(k, e.Body)
		k.verifyArrivals(c, e.Body)
		k.verifyDescriptors(c, e)
	}
}

func (k *Builder) verifyShared() {
	if k.bytes > MaxShared {
		k.fail("%d bytes of shared memory, want at most %d; hint: fewer stages", k.bytes, MaxShared)
	}
}

// verifyRoles checks that the register file can give what the roles ask for: setmaxnreg.inc waits for ever for what nobody gives back.
func (k *Builder) verifyRoles(e *Entry) {
	if len(k.roles) == 0 {
		return
	}
	sum, groups := 0, k.threads/128
	for _, r := range k.roles {
		if r.Warpgroups[1] > groups || r.Warpgroups[0] >= r.Warpgroups[1] {
			k.fail("role %s has warpgroups %d..%d of a CTA of %d", r.Name, r.Warpgroups[0], r.Warpgroups[1]-1, groups)
		}
		if n := r.Registers; n != 0 && (n < 24 || n > 256 || n%8 != 0) {
			k.fail("role %s: %d registers, want a multiple of 8 from 24 to 256", r.Name, n)
		}
		n := r.Registers
		if n == 0 {
			n = e.Registers
		}
		sum += n * (r.Warpgroups[1] - r.Warpgroups[0])
	}
	last := k.roles[len(k.roles)-1].Warpgroups[1]
	sum += max(0, groups-last) * e.Registers
	if sum > e.Registers*groups {
		k.fail("roles want %d registers per 128 threads together, the launch has %d × %d; hint: lower the producer's", sum, groups, e.Registers)
	}
}

// wgmmaState is what is known of the warpgroup's asynchronous products at one place.
type wgmmaState struct {
	fenced bool // a wgmma.fence since the accumulator was last touched
	open   bool // wgmma issued and not committed
	flight bool // committed groups that no wait has finished
}

func (a wgmmaState) join(b wgmmaState) wgmmaState {
	return wgmmaState{a.fenced && b.fenced, a.open || b.open, a.flight || b.flight}
}

// verifyWgmma follows every path: a product needs a fence before it, a commit behind it, and a wait before its accumulator is read.
func (k *Builder) verifyWgmma(b *Block) {
	end := k.wgmmaBlock(b, wgmmaState{})
	if end.open {
		k.fail("wgmma without wgmma.commit_group behind it")
	}
}

func (k *Builder) wgmmaBlock(b *Block, s wgmmaState) wgmmaState {
	for _, n := range b.Nodes {
		switch n := n.(type) {
		case *Inst:
			s = k.wgmmaInst(n, s)
		case *If:
			s = k.wgmmaBlock(n.Then, s).join(k.wgmmaBlock(n.Else, s))
		case *Loop:
			for range 2 { // the second round starts where the first ended
				s = k.wgmmaBlock(n.Cond, s)
				s = s.join(k.wgmmaBlock(n.Body, s))
			}
		}
	}
	return s
}

func (k *Builder) wgmmaInst(in *Inst, s wgmmaState) wgmmaState {
	switch {
	case in.Op == OpWgFence:
		s.fenced = true
	case in.Op == OpWgCommit:
		s.flight = s.flight || s.open
		s.open = false
	case in.Op == OpWgWait:
		s.flight = s.flight && in.Src[0].imm > 0
	case in.Op == OpAccRead:
		if s.open || s.flight {
			k.failIn(in, "the accumulator is read while wgmma may still write it; hint: WgmmaWait(0)")
		}
		s.fenced = false
	case in.isWgmma():
		if !s.fenced {
			k.failIn(in, "%s without WgmmaFence since the accumulator was last touched", in.Op.Mnemonic())
		}
		s.open = true
	}
	return s
}

// verifyFragments demands a wgmma.fence between the write of a register and the wgmma that reads it as a fragment of A.
func (k *Builder) verifyFragments(b *Block) {
	fresh := map[int32]bool{} // registers written since the last fence
	b.Walk(func(in *Inst) {
		switch {
		case in.Op == OpWgFence:
			clear(fresh)
		case in.Op == OpWgmmaRBF16 || in.Op == OpWgmmaRF16:
			for _, s := range in.Src[1:5] {
				if fresh[s.reg] {
					k.failIn(in, "%s reads a fragment that was written after the last WgmmaFence", in.Op.Mnemonic())
					return
				}
			}
		}
		for _, d := range in.Dst {
			if d.class == B32 {
				fresh[d.reg] = true
			}
		}
	})
}

func (in *Inst) isWgmma() bool { return in.Op.Has(isa.AlignedGroup | isa.Async) }

// target is the least architecture that has every instruction of the entry.
func (e *Entry) target() string {
	t := "sm_80"
	if e.Cluster > 1 {
		t = "sm_90"
	}
	e.Body.Walk(func(in *Inst) {
		switch {
		case in.Op.Has(isa.SM90a):
			t = "sm_90a"
		case in.Op.Has(isa.SM90) && t == "sm_80":
			t = "sm_90"
		}
	})
	return t
}
