// Package kernel holds what Hopper kernels share: the stage ring between producer and consumers, the order of tiles, the epilogue, and Kernel, the value that
// describes one kernel to everybody who runs, prints or checks it.
//
// Start with Kernel, then Ring; gemm/body.go shows them at work.
package kernel

import "heddle/ptx"

// Kernel is a kernel of the explicit list all.Kernels.
type Kernel struct {
	Name  string
	Doc   string // one line: what is computed, from what, by which means
	Build func() (*ptx.Module, error)
	// Cases are small problems with known answers for a module that Build gave.
	Cases func(*ptx.Module) ([]Case, error)
}

// Case is a launch whose result can be checked.
type Case struct {
	Name   string
	Launch ptx.Launch
	Args   *ptx.Args
	// Check compares the buffers with the reference after the launch.
	Check func() error
}
