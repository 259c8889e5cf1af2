package formula

// Saved is the bytes of activations that a rank keeps for Backward when Forward ends: the same on every rank.
func Saved(m Shape, l Layout) int64 {
	z := localSizes(m, l)
	stream := z.b * z.r  // tokens on the residual stream
	weights := z.b * z.s // tokens where weights act
	attend := z.b * z.S  // tokens inside attention: all of a sequence
	kept := stream*z.H + // x, the input of attention's norm
		stream + // 1/rms of it
		attend*z.ah*z.D + // q before its norm and RoPE, as attention's ranks hold it
		2*attend*z.gh*z.D + // k, v
		attend*(z.ah+z.gh) + // 1/rms of q and of k
		weights*z.a*z.D + // attention's output, as Wo reads it
		attend*z.ah + // log-sum-exp
		stream*z.H + // x of the MLP
		stream + // 1/rms of it
		2*weights*z.F/z.tp // gate, up
	return int64(z.L * kept * z.Elem)
}
