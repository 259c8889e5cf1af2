package ptx

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/ptx/internal/isa"
)

// arrival is an instruction by which threads arrive at a barrier.
type arrival struct {
	in   *Inst
	line string
	ids  []uint32 // named barriers: which, by thread; mbarriers: the rank of the CTA whose barrier it is
}

// verifyArrivals compares the count of each barrier with the threads that can arrive in one phase. Where the threads cannot be told while the kernel is built,
// it says nothing; the emulator counts them.
func (k *Builder) verifyArrivals(c *census, body *Block) {
	k.verifyNamed(c, body)
	k.verifyMbarriers(c, body)
}

func (k *Builder) verifyNamed(c *census, body *Block) {
	var all []arrival
	known := true
	body.Walk(func(in *Inst) {
		if in.Op == OpBarSync || in.Op == OpBarArrive {
			a := arrival{in, in.Line.String(), c.eval(in.Src[0])}
			known = known && a.ids != nil && c.who[in] != nil
			all = append(all, a)
		}
	})
	if !known {
		return
	}
	done := map[[2]uint64]bool{}
	for _, a := range all {
		for i, id := range a.ids {
			key := [2]uint64{uint64(id), a.in.Src[1].imm}
			if !c.who[a.in][i] || done[key] {
				continue
			}
			done[key] = true
			same := slices.DeleteFunc(slices.Clone(all), func(b arrival) bool { return b.in.Src[1].imm != key[1] })
			k.compare(c, a.in, fmt.Sprintf("named barrier %d is for %d threads", id, key[1]), int(key[1]), same, func(b arrival, j int) bool {
				return b.ids[j] == id && j/k.threads == i/k.threads
			})
		}
	}
}

func (k *Builder) verifyMbarriers(c *census, body *Block) {
	type place struct {
		off   int
		exact bool
	}
	var all []arrival
	var at []place
	known, awaited := true, map[string]bool{} // arrays that somebody waits on: what happens at others hurts nobody
	body.Walk(func(in *Inst) {
		switch in.Op {
		case OpMbarArrive, OpMbarArriveRemote, OpMbarExpect, OpMbarExpectRemote:
		case OpMbarWait, OpMbarTry:
			off, _, _, ok := c.shared(in.Src[0])
			known = known && ok
			awaited[k.array(off)] = true
			return
		case OpMbarInit, OpMbarExpectTx:
			return
		default:
			known = known && (!in.Op.Has(isa.Sync) || in.Op.Has(isa.Blocking) || !slices.ContainsFunc(in.Src, c.isBarrier)) // another way to arrive
			return
		}
		off, exact, rank, ok := c.shared(in.Src[0])
		a := arrival{in: in, line: in.Line.String(), ids: c.fill(func(r, _ int) uint32 { return uint32(r) })}
		if rank.Valid() {
			a.ids = c.eval(rank)
		}
		known = known && ok && a.ids != nil && c.who[in] != nil
		all, at = append(all, a), append(at, place{off, exact})
	})
	if !known {
		return
	}
	body.Walk(func(in *Inst) {
		if in.Op != OpMbarInit || c.who[in] == nil {
			return
		}
		off, exact, _, ok := c.shared(in.Src[0])
		if !ok || !exact || k.bars[off] == "" {
			return
		}
		array := k.array(off)
		if !awaited[array] {
			return
		}
		var here []arrival
		for i, a := range all {
			if at[i].exact && at[i].off == off || !at[i].exact && k.array(at[i].off) == array {
				here = append(here, a)
			}
		}
		for rank := range k.cluster {
			if slices.Contains(c.who[in][rank*k.threads:][:k.threads], true) {
				what := fmt.Sprintf("%s is made for %d arrivals a phase", k.bars[off], in.Src[1].imm)
				if !k.compare(c, in, what, int(in.Src[1].imm), here, func(a arrival, i int) bool { return a.ids[i] == uint32(rank) }) {
					return
				}
			}
		}
	})
}

// array is the name of the barriers that one at off belongs to.
func (k *Builder) array(off int) string { name, _, _ := strings.Cut(k.bars[off], "["); return name }

func (c *census) isBarrier(o operand) bool {
	off, _, _, ok := c.shared(o)
	return ok && c.k.bars[off] != ""
}

// compare refuses a count that no choice of arrivals adds up to. One line of a role arrives once a phase, wherever the builder was made to write it, but twice
// in a row in one block; with all the threads that reach it, or with those of one warpgroup of each CTA, where warpgroups take turns.
func (k *Builder) compare(c *census, in *Inst, what string, count int, sites []arrival, counts func(a arrival, i int) bool) bool {
	type group struct{ line, role string }
	type choice struct {
		sizes  map[int]bool
		blocks map[*Block]int
	}
	groups := map[group]*choice{}
	for _, a := range sites {
		n, one := k.crowdSizes(c.who[a.in], func(i int) bool { return counts(a, i) })
		if n == 0 {
			continue
		}
		g := groups[group{a.line, a.in.role}]
		if g == nil {
			g = &choice{map[int]bool{}, map[*Block]int{}}
			groups[group{a.line, a.in.role}] = g
		}
		g.sizes[n], g.sizes[one] = true, true
		g.blocks[c.blocks[a.in]]++
	}
	sums := map[int]bool{0: true}
	var gives []string
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b group) int { return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.role, b.role)) }) {
		g := groups[key]
		for range slices.Max(slices.Collect(maps.Values(g.blocks))) {
			for _, s := range slices.Collect(maps.Keys(sums)) {
				for n := range g.sizes {
					sums[s+n] = true
				}
			}
		}
		from := key.line
		if key.role != "" {
			from += " in role " + key.role
		}
		gives = append(gives, fmt.Sprintf("%d from %s", slices.Max(slices.Collect(maps.Keys(g.sizes))), from))
	}
	times := max(1, in.times)
	if sums[count/times] && count%times == 0 && count > 0 {
		return true
	}
	if len(gives) == 0 {
		gives = []string{"none"}
	}
	k.failIn(in, "%s, but those that can arrive are %s", what, strings.Join(gives, ", "))
	return false
}

// crowdSizes is how many threads of a crowd count, and how many where one warpgroup of each CTA does; the same where they differ.
func (k *Builder) crowdSizes(who crowd, counts func(i int) bool) (all, one int) {
	for r := range k.cluster {
		first, equal := 0, true
		for g := 0; g < k.threads; g += 128 {
			n := 0
			for t := g; t < min(g+128, k.threads); t++ {
				if i := r*k.threads + t; who[i] && counts(i) {
					n++
				}
			}
			all += n
			if n > 0 && first == 0 {
				first = n
			}
			equal = equal && (n == 0 || n == first)
		}
		if !equal {
			one = -1 << 30
		}
		one += first
	}
	if one <= 0 {
		one = all
	}
	return all, one
}
