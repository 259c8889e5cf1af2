package formula

// Schedule is how a step is cut into micro-batches, and what Forward keeps for Backward. The zero value is one micro-batch that
// keeps what cannot be rebuilt cheaply: not what norms, RoPE and the activation made.
type Schedule struct {
	Micro int  // micro-batches; 0 counts as 1
	Keep  bool // what norms, RoPE and the activation made is kept too
	Full  int  // every Full-th layer, from the first on, keeps its input only, and Backward runs it forward again; 0: none
}

func (s Schedule) full(layer int) bool { return s.Full > 0 && layer%s.Full == 0 }

// Saved is the bytes of activations that a rank keeps for Backward when it keeps most: the same on every rank. That is when
// Forward ends, or, where layers are run forward again, when what the last of them rebuilds is there.
func Saved(m Shape, l Layout, s Schedule) int64 {
	z := localSizes(m, l, s)
	layer, input := z.kept(s.Keep), z.b*z.r*z.H
	held := func(i int) int {
		if s.full(i) {
			return input
		}
		return layer
	}
	below, most := 0, 0
	for i := range z.L {
		most = max(most, below+layer) // Backward of layer i: what it reads, and what the layers below still keep
		below += held(i)
	}
	return int64(max(most, below) * z.Elem)
}

// kept is the elements that one layer keeps, not counting layers that keep their input only.
func (z *sizes) kept(all bool) int {
	stream := z.b * z.r          // tokens on the residual stream
	weights := z.b * z.s         // tokens where weights act
	attend := z.b * z.S          // tokens inside attention: all of a sequence
	wide := weights * z.F / z.tp // what stands in the MLP
	kept := stream*z.H +         // x, the input of attention's norm; less its mean under LayerNorm
		stream + // 1/rms of it
		attend*z.ah*z.D + // q as attention's ranks hold it
		2*attend*z.gh*z.D + // k, v
		weights*z.a*z.D + // attention's output, as Wo reads it
		attend*z.ah + // log-sum-exp
		stream*z.H + // x of the MLP
		stream + // 1/rms of it
		wide // up
	if z.QKNorm {
		kept += attend * (z.ah + z.gh) // 1/rms of q and of k
	}
	if z.Gated {
		kept += wide
	}
	if all {
		kept += 2*stream*z.H + wide // both normed inputs, and what the MLP's last product reads
		if z.QKNorm {
			kept += attend * (z.ah + z.gh) * z.D // q and k, normed and turned
		}
	}
	return kept
}

// Weights is the bytes of weights that a rank holds when it holds most: its slices, and under fsdp two whole units, the one in use
// and the next: two layers, or a layer and the root.
func Weights(m Shape, l Layout) int64 {
	z := localSizes(m, l, Schedule{})
	n := z.rests()
	if z.fsdp > 1 {
		layer, root := z.fsdp*z.slice(elements(z.layer())), z.fsdp*z.slice(elements(z.root()))
		if n += layer + root; z.L > 1 {
			n += max(0, layer-root)
		}
	}
	return int64(n * z.Elem)
}
