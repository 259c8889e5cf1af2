package formula

// Saved is the bytes of activations that a rank keeps for Backward when Forward ends: the same on every rank.
func Saved(m Shape, l Layout) int64 {
	z := localSizes(m, l)
	stream := z.b * z.r  // tokens on the residual stream
	weights := z.b * z.s // tokens where weights act
	attend := z.b * z.S  // tokens inside attention: all of a sequence
	kept := stream*z.H + // x, the input of attention's norm; less its mean under LayerNorm
		stream + // 1/rms of it
		attend*z.ah*z.D + // q as attention's ranks hold it
		2*attend*z.gh*z.D + // k, v
		weights*z.a*z.D + // attention's output, as Wo reads it
		attend*z.ah + // log-sum-exp
		stream*z.H + // x of the MLP
		stream + // 1/rms of it
		weights*z.F/z.tp // up
	if z.QKNorm {
		kept += attend * (z.ah + z.gh) // 1/rms of q and of k
	}
	if z.Gated {
		kept += weights * z.F / z.tp
	}
	return int64(z.L * kept * z.Elem)
}
