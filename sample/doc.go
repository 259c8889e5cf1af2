// Package sample continues text.
//
// A Generator runs many sequences at once over a Decoder, which keeps their keys and values: each token costs one row of a
// forward pass. Every token carries what reinforcement learning asks of it: its log-probability, the entropy of the whole
// vocabulary, the version of the weights. A hook sees each sequence after each token and may stop it, fork it anywhere, put
// tokens into it or change its temperature; every token that was ever sampled is on the Bill.
//
// What a sequence becomes depends on its prompt, its stream and the options alone, not on its neighbours: random numbers
// belong to (seed, stream, position), and a Decoder gives a row the same bits in any batch.
//
// Start reading at Generator (generate.go), then Decoder (decoder.go) and Action (hook.go); draw.go is the arithmetic of one
// token. sample/cpu is the Decoder of the CPU. Continue (continue.go) is the plain way under any parallel layout: the whole
// window is computed again for every token.
package sample
