// Package attention computes causal attention with grouped queries, forward and
// backward, in memory that grows with S, never with S × S (Dao et al.,
// FlashAttention, 2022, and FlashAttention-2, 2023).
//
// Start reading at Shape (shape.go), then Forward (forward.go) and Backward
// (backward.go). The inner products are package blas's, the exponentials
// package vec's.
//
// # Order of arithmetic
//
// Keys are walked in tiles of keyTile from key 0, so a row of the output, its
// log-sum-exp and its dq depend on the query, the keys it attends to and the
// shape of a head alone: a query computed alone is bit-equal to the same query
// among others, where keys and values are finite. dk and dv add queries in
// tiles of backwardRows from query 0, head by head. Threads and batch never enter.
package attention
