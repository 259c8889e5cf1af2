package compute

import (
	"slices"

	"heddle/mesh"
	"heddle/tensor"
)

// Call is one line of the call log: an operation or a collective, in the order in which this rank's program issued it.
type Call struct {
	Phase string
	Layer int    // -1: outside the layers
	Op    string // "contract", "all-gather" …
	Site  string // collectives: where in the program, "attention enter"
	Axes  string // collectives: the mesh axes, "tp"
	Args  []Arg  // the result, then the operands
	Flops int64
	Bytes int64 // collectives: received by this rank
	Held  int   // bytes of the arena held when the call started, its result included
}

// Arg is what a log keeps of a tensor: local sizes and places.
type Arg struct {
	Letters string
	Dims    []int
	At      mesh.Places
}

// Equal tells whether two calls are the same in everything.
func (c Call) Equal(d Call) bool {
	same := func(a, b Arg) bool { return a.Letters == b.Letters && a.At == b.At && slices.Equal(a.Dims, b.Dims) }
	return c.Phase == d.Phase && c.Layer == d.Layer && c.Op == d.Op && c.Site == d.Site && c.Axes == d.Axes && c.Flops == d.Flops && c.Bytes == d.Bytes &&
		c.Held == d.Held && slices.EqualFunc(c.Args, d.Args, same)
}

// Log is an ordered list of calls. A nil Log takes nothing.
type Log struct{ Calls []Call }

func (l *Log) add(c Call) {
	if l != nil {
		l.Calls = append(l.Calls, c)
	}
}

// Collective logs a call of a Group that makes out of in. It is for package comm.
func (d *Device) Collective(c Call, out tensor.Tensor, in ...tensor.Tensor) {
	c.Args = d.args(out, in...)
	c.Phase, c.Layer, c.Held = d.phase, d.layer, d.arena.held
	d.Log.add(c)
}

// args are the tensors of a call, the result first, built only where a log wants them.
func (d *Device) args(out tensor.Tensor, in ...tensor.Tensor) []Arg {
	if d.Log == nil {
		return nil
	}
	a := []Arg{{out.Letters, out.Dims, out.At}}
	for _, t := range in {
		a = append(a, Arg{t.Letters, t.Dims, t.At})
	}
	return a
}

// Describe is a tensor's letters and places, "bsh[S(b)@dp]".
func (d *Device) Describe(t tensor.Tensor) string {
	l := t.Letters
	if l == "" {
		l = "scalar"
	}
	if len(d.Mesh.Axes()) == 0 {
		return l
	}
	return l + "[" + d.Mesh.String(t.At) + "]"
}
