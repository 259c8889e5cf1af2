// Package compute is the front that all machines share. A Device checks the shapes and places of every operation, allocates
// its result in the arena, logs the call and hands the arithmetic to a Leaf: cpu computes, gpu computes fast, dry computes
// nothing, so that a dry run yields the memory, bytes and call log of the real one.
//
// Operations have the grain of a fused kernel. Read Device here, Scope in arena.go, then one operation: Contract.
package compute

import (
	"fmt"
	"time"

	"heddle/mesh"
	"heddle/tensor"
)

// Fault is a programmer's fault in shapes or places. Operations panic with it; train's step and plan recover it.
type Fault struct {
	Op    string
	Step  int // of a training run, from 1; 0: none
	Phase string
	Layer int
	Err   error
}

func (f *Fault) Error() string {
	where := f.Phase
	if f.Layer >= 0 {
		where = fmt.Sprintf("%s layer %d", f.Phase, f.Layer)
	}
	if f.Step > 0 {
		where = fmt.Sprintf("step %d: %s", f.Step, where)
	}
	return fmt.Sprintf("compute: %s: %v", where, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// Recorder receives what a rank does; nil records nothing.
type Recorder interface {
	// Enter tells that the program has come to a phase, and in it to a layer (-1: none).
	Enter(phase string, layer int)
	// Span receives an operation, a collective, a phase or a layer that has ended.
	Span(Span)
}

// Span is something that took time.
type Span struct {
	Track string // "compute", "collectives" or "host"
	Name  string
	Start time.Time
	Dur   time.Duration
	Bytes int64  // of a collective: what the rank receives
	Group string // of a collective: the ranks in it
}

// Device is one rank's machine. It is used by one goroutine.
type Device struct {
	Mesh *mesh.Mesh
	Rank int
	Type tensor.DType // of weights and activations
	Step int          // of a training run, for faults; 0: none
	Log  *Log         // nil: calls are not logged
	Rec  Recorder     // nil: calls are not timed

	leaf  Leaf
	arena arena
	phase string
	layer int
	since struct{ phase, layer time.Time } // when each began, where it is recorded
}

// New makes the device of one rank.
func New(m *mesh.Mesh, rank int, t tensor.DType, leaf Leaf) *Device {
	d := &Device{Mesh: m, Rank: rank, Type: t, leaf: leaf, layer: -1}
	d.arena.init(leaf)
	return d
}

// At names where the program is: phase "forward", "backward" or "optimizer", and the layer (-1: none). Calls are logged and
// peaks are kept under that name.
func (d *Device) At(phase string, layer int) {
	if phase != d.phase || layer != d.layer {
		d.leave(phase, layer)
	}
	d.phase, d.layer = phase, layer
	d.arena.enter(phase)
}

// leave records the layer that ends, and the phase if it does, where they were recorded from their start. It starts the clocks of what comes.
func (d *Device) leave(phase string, layer int) {
	now := time.Now()
	if d.Rec == nil {
		d.since.phase, d.since.layer = time.Time{}, time.Time{}
		return
	}
	if d.layer >= 0 && !d.since.layer.IsZero() {
		d.Rec.Span(Span{Track: "host", Name: fmt.Sprintf("%s layer %d", d.phase, d.layer), Start: d.since.layer, Dur: now.Sub(d.since.layer)})
	}
	d.since.layer = now
	if phase != d.phase {
		if d.phase != "" && !d.since.phase.IsZero() {
			d.Rec.Span(Span{Track: "host", Name: d.phase, Start: d.since.phase, Dur: now.Sub(d.since.phase)})
		}
		d.since.phase = now
	}
	d.Rec.Enter(phase, layer)
}

// Here is where the program is, as set by At.
func (d *Device) Here() (phase string, layer int) { return d.phase, d.layer }

// Fail panics with a Fault at the current place of the program.
func (d *Device) Fail(op string, err error) {
	panic(&Fault{Op: op, Step: d.Step, Phase: d.phase, Layer: d.layer, Err: err})
}

func (d *Device) failf(op, format string, args ...any) {
	d.Fail(op, fmt.Errorf(op+": "+format, args...))
}

// New allocates a tensor in the current scope. Its data are undefined.
func (d *Device) New(t tensor.DType, letters string, dims []int, at mesh.Places) tensor.Tensor {
	return d.NewIn(Scratch, t, letters, dims, at)
}

// NewIn allocates a tensor of a memory category in the current scope.
func (d *Device) NewIn(c Category, t tensor.DType, letters string, dims []int, at mesh.Places) tensor.Tensor {
	x := tensor.Tensor{Letters: letters, Dims: append([]int(nil), dims...), Type: t, At: at}
	x.Alloc, x.Mem = d.arena.alloc(x.Bytes(), c)
	return x
}

func (d *Device) linear(op, out string, in ...tensor.Tensor) mesh.Places {
	at, err := d.Mesh.Linear(op, out, operands(in)...)
	if err != nil {
		d.Fail(op, err)
	}
	return at
}

func (d *Device) pointwise(op, out, whole string, in ...tensor.Tensor) mesh.Places {
	at, err := d.Mesh.Pointwise(op, out, whole, operands(in)...)
	if err != nil {
		d.Fail(op, err)
	}
	return at
}

func operands(in []tensor.Tensor) []mesh.Operand {
	out := make([]mesh.Operand, len(in))
	for i, t := range in {
		out[i] = t.Operand()
	}
	return out
}

// sizes checks that operands agree on every letter's size and returns the sizes of out's letters.
func (d *Device) sizes(op, out string, in ...tensor.Tensor) []int {
	var of [256]int
	for _, t := range in {
		for i := range t.Dims {
			l := t.Letters[i]
			if of[l] != 0 && of[l] != t.Dims[i] {
				d.failf(op, "dim %c has sizes %d and %d (%s)", l, of[l], t.Dims[i], t.Letters)
			}
			of[l] = t.Dims[i]
		}
	}
	n := make([]int, len(out))
	for i := range n {
		n[i] = of[out[i]]
	}
	return n
}

// run logs and times one leaf call.
func (d *Device) run(c Call, f func()) {
	c.Phase, c.Layer, c.Held = d.phase, d.layer, d.arena.held
	d.Log.add(c)
	if d.Rec == nil {
		f()
		return
	}
	start := time.Now()
	f()
	d.Rec.Span(Span{Track: "compute", Name: c.Op, Start: start, Dur: time.Since(start)})
}
