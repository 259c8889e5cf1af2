package formula

// received is the elements that one rank receives in a collective of p ranks, for the rank that receives most.
//
//	gather, scatter of n elements in all   (p−1)/p·n
//	all-reduce of n elements               an ordered reduce-scatter and an all-gather of chunks of c = ⌈n/p⌉: the rank that
//	                                       reduces a full chunk takes p−1 others' of it, and then the other n−c elements
func gathered(n, p int) int { return (p - 1) * (n / p) }

func reduced(n, p int) int {
	if p == 1 {
		return 0
	}
	c := (n + p - 1) / p
	return (p-1)*c + n - c
}

// Table is bytes by "axes/operation", as in "tp/all-gather".
type Table map[string]int64

// Total is the sum over all keys.
func (t Table) Total() (n int64) {
	for _, v := range t {
		n += v
	}
	return n
}

// Bytes is what a rank receives in one step without the optimiser: every micro-batch forward and backward, gradients settled and
// their norm taken, the loss and the token count summed. Per key, the rank that receives most.
func Bytes(m Shape, l Layout, s Schedule) Table {
	z := localSizes(m, l, s)
	t := table{z: z, out: Table{}}
	t.scalars()
	t.shards()
	t.tensorParallel()
	t.ulysses()
	t.settle()
	return t.out
}

type table struct {
	z   sizes
	out Table
}

// add counts elements for a collective over the axes of p ranks.
func (t *table) add(key string, p, elements int) {
	if p > 1 && elements > 0 {
		t.out[key] += int64(elements * t.z.Elem)
	}
}

// axes names a set of axes the way people call it, in the order of the mesh; an axis of one rank is absent.
func (z *sizes) axes(dp, fsdp, cp, tp bool) (name string, ranks int) {
	ranks = 1
	for _, a := range []struct {
		in   bool
		name string
		n    int
	}{{dp, "dp", z.dp}, {fsdp, "fsdp", z.fsdp}, {cp, "cp", z.cp}, {tp, "tp", z.tp}} {
		if !a.in || a.n == 1 {
			continue
		}
		if name != "" {
			name += "+"
		}
		name += a.name
		ranks *= a.n
	}
	return name, ranks
}

// scalars: the number of unmasked tokens and the summed loss over every axis that cuts tokens; the squared norm of the gradient
// over all axes.
func (t *table) scalars() {
	tokens, n := t.z.axes(true, true, true, false)
	t.add(tokens+"/all-reduce", n, 2*reduced(1, n))
	every, n := t.z.axes(true, true, true, true)
	t.add(every+"/all-reduce", n, reduced(1, n))
}

// shards: in each micro-batch fsdp gathers the root unit twice, for the embedding and for the head, and a layer's twice, for
// forward and for backward, where it serves running the layer again too; but the last layer's once, because backward follows
// forward there. It scatters the sum of the gradients of each unit once. All of it is independent of the number of
// tokens.
func (t *table) shards() {
	z := &t.z
	root, layer := z.fsdp*z.slice(elements(z.root())), z.fsdp*z.slice(elements(z.layer()))
	t.add("fsdp/all-gather", z.fsdp, z.micro*(2*gathered(root, z.fsdp)+(2*z.L-1)*gathered(layer, z.fsdp)))
	t.add("fsdp/reduce-scatter", z.fsdp, z.micro*(gathered(root, z.fsdp)+z.L*gathered(layer, z.fsdp)))
}

// tensorParallel: the residual stream of b·s tokens at the borders of the sub-blocks, and the loss over a cut vocabulary. A layer
// that is run again crosses its borders once more, but for the last: nothing reads its output.
func (t *table) tensorParallel() {
	z := &t.z
	tokens := z.b * z.s
	stream := tokens * z.H
	if z.megatron {
		// A sub-block gathers three times (its input; in Backward the gradient of its output, and its input again for the
		// weights) and scatters twice (its output, the gradient of its input). The embedding scatters its output and gathers
		// that gradient; the head gathers its input and scatters that gradient.
		t.add("tp/all-gather", z.tp, z.micro*(2*3*z.L+2+2*z.full)*gathered(stream, z.tp))
		t.add("tp/reduce-scatter", z.tp, z.micro*(2*2*z.L+2+z.full)*gathered(stream, z.tp))
	} else {
		// A sub-block sums its output, and in Backward the gradient of its input (one sum for q, k, v; one for gate, up). The
		// embedding sums its output, the head the gradient of its input.
		t.add("tp/all-reduce", z.tp, z.micro*(2*2*z.L+2+z.full)*reduced(stream, z.tp))
	}
	// A row's maximum; then its sum of exponentials and its label's logit together.
	t.add("tp/all-reduce max", z.tp, z.micro*reduced(tokens, z.tp))
	t.add("tp/all-reduce", z.tp, z.micro*reduced(2*tokens, z.tp))
}

// ulysses: four all-to-alls a layer, and the two of Forward again in a layer that is run again. A rank keeps one of the cp blocks of what it sends and receives the others': the heads of
// one rank, for the tokens of one rank.
func (t *table) ulysses() {
	z := &t.z
	tokens := z.b * z.s
	qkv := z.D * (z.ah + 2*z.gh)   // q, k, v forward; their gradients backward. Copied key/value heads travel to each copy.
	output := z.D * z.ah           // attention's output forward
	grad := z.D*z.ah + z.ah        // its gradient backward, with one row sum of o·do a head
	block := 2*qkv + output + grad // of one token
	t.add("cp/all-to-all", z.cp, z.micro*(z.cp-1)*tokens*(z.L*block+z.full*(qkv+output)))
}

// settle: gradients that are still sums over ranks' parts. Over dp and cp every parameter is: one all-reduce of all that rests
// here. Over tp only some are: norms of heads always, those of the stream under Megatron (each rank saw other tokens), and
// key/value projections whose heads are copied, over the copies. Each kind is packed; its share on an fsdp rank depends on where
// it falls in the slices.
func (t *table) settle() {
	z := &t.z
	whole, n := z.axes(true, false, true, false)
	t.add(whole+"/all-reduce", n, reduced(z.rests(), n))
	if z.tp == 1 {
		return
	}
	most := 0
	for rank := range z.fsdp {
		most = max(most, z.packedSums(z.packed(rank)))
	}
	t.add("tp/all-reduce", z.tp, most)
}

// packedSums is what a rank receives when packed norms and key/value projections are summed.
func (z *sizes) packedSums(norms, copies int) int {
	switch copied := max(1, z.tp/z.G); copied { // ranks that hold the same key/value head
	case 1:
		return reduced(norms, z.tp)
	case z.tp: // one key/value head in all: both kinds are sums over the same ranks and travel together
		return reduced(norms+copies, z.tp)
	default:
		return reduced(norms, z.tp) + reduced(copies, copied)
	}
}

// packed is how many elements rest on an fsdp rank whose gradients are partial over all of tp, and over copies of heads.
func (z *sizes) packed(rank int) (norms, copied int) {
	count := func(unit []part, times int) {
		slice, at := z.slice(elements(unit)), 0
		for _, p := range unit {
			n := times * overlap(rank*slice, (rank+1)*slice, at, p.n)
			switch {
			case p.kind == heads, p.kind == stream && z.megatron:
				norms += n
			case p.kind == copies:
				copied += n
			}
			at += p.n
		}
	}
	count(z.layer(), z.L)
	count(z.root(), 1)
	return norms, copied
}

// overlap is how much of the n elements from at on lies in [lo, hi).
func overlap(lo, hi, at, n int) int { return max(0, min(hi, at+n)-max(lo, at)) }
