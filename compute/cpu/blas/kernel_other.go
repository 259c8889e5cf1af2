//go:build !amd64 || purego

package blas

// kernelFor is the kernel of a set for an element type.
func kernelFor[T Float](Set) kernel[T] { return portable[T]() }
