package kernel

import "heddle/ptx"

// Place is where an operand of a launch lies: Offset bytes into Buffer.
type Place struct {
	Buffer *ptx.Buffer
	Offset int
}

// Put sets a pointer parameter to the place.
func (p Place) Put(a *ptx.Args, to ptx.ParamPtr) { to.Put(a, p.Buffer, p.Offset) }

// Aligned tells whether it starts at a multiple of 16 bytes, as wide kernels want it: buffers do.
func (p Place) Aligned() bool { return p.Offset%16 == 0 }
