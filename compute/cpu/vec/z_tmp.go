package vec

func exp32(dst, src []float32) bool     { return false }
func tanh32(dst, src []float32) bool    { return false }
func sigmoid32(dst, src []float32) bool { return false }
func log32(dst, src []float32) bool     { return false }
