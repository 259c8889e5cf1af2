// Package cpu is sample.Decoder on the CPU, float32: weights packed once, keys and values cached in pages of 64 tokens that
// forks share.
//
// It computes the forward pass of package model with the same operations on the same shapes (compute/cpu/blas, vec,
// attention), whose rows have the same bits alone and among others: logits are bit-equal to those of training on one CPU rank
// in float32, however tokens are fed. A test holds it to that.
//
// Start reading at Decoder.Forward (forward.go); weights.go loads, cache.go keeps keys and values.
package cpu
