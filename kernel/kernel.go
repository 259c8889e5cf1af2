// Package kernel holds what Hopper kernels share: the stage ring between producer and consumers, the order of tiles, the epilogue, and Kernel, the value that
// describes one kernel to everybody who runs, prints, assembles or checks it.
//
// Start with Kernel, then Ring, Store and Epilogue; gemm/body.go shows them at work.
package kernel

import "heddle/ptx"

// Kernel is an entry of the explicit list all.Kernels.
type Kernel struct {
	Name  string
	Doc   string // one line: what is computed, from what, by which means
	Build func() (Built, error)
}

// Built is a kernel that has been built and verified.
type Built interface {
	Module() *ptx.Module
	// Cases are small problems with known answers, whole and ragged, for a device of so many SMs.
	Cases(sms int) ([]Case, error)
	// FaultCase is a problem just large enough that every planted fault shows: more k steps than stages, two tiles a CTA. It wants so many SMs.
	FaultCase() (c Case, sms int, err error)
	// Equivalent gives the proof that a mutant of the kernel is no fault, or "".
	Equivalent(ptx.Mutant) string
}

// Case is a launch whose result can be checked.
type Case struct {
	Name   string
	Launch ptx.Launch
	Args   *ptx.Args
	Check  func() error // compares the buffers with the reference after the launch
}
