// Package bench measures kernels against their peers: in one process, on the same buffers, in turn, with clocks, watts and raw samples kept.
//
// Start with Protocol: Single (a launch after idle), Sustained (seconds back to back, with joules) and Graph (many launches replayed) are the three ways work is met in practice. GEMM runs all
// three for a matrix product against cuBLAS; Result is the file that holds what was measured, and Result.Summary recomputes every ratio and interval from the samples in it.
package bench
