//go:build !amd64 || purego

package blas

// Runs reports whether this machine has the set.
func (s Set) Runs() bool { return s == Portable }
