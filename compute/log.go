package compute

import "heddle/tensor"

// Call is one line of the call log: an operation or a collective, in the order in which this rank's program issued it.
type Call struct {
	Phase  string
	Layer  int    // -1: outside the layers
	Op     string // "contract", "all-gather" …
	Site   string // collectives: where in the program, "attention enter"
	Axes   string // collectives: the mesh axes, "tp"
	Detail string // letters and places before → after
	Flops  int64
	Bytes  int64 // collectives: received by this rank
	Held   int   // bytes of the arena held when the call started, its result included
}

// Log is an ordered list of calls. A nil Log takes nothing.
type Log struct{ Calls []Call }

func (l *Log) add(c Call) {
	if l != nil {
		l.Calls = append(l.Calls, c)
	}
}

// Collective logs a call of a Group. It is for package comm.
func (d *Device) Collective(c Call) {
	c.Phase, c.Layer, c.Held = d.phase, d.layer, d.arena.held
	d.Log.add(c)
}

// detail is "bsh S(b)@dp · gh R@dp → bsg …", built only where a log wants it.
func (d *Device) detail(out tensor.Tensor, in ...tensor.Tensor) string {
	if d.Log == nil {
		return ""
	}
	s := ""
	for i, t := range in {
		if i > 0 {
			s += " · "
		}
		s += d.Describe(t)
	}
	return s + " → " + d.Describe(out)
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
