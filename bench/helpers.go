package bench

// HelpersPTX is the text of this package's small kernels, for benchmarks below it: fill_normal(out, words, seed) and delay(nanoseconds).
func HelpersPTX() string { return helpersPTX }
