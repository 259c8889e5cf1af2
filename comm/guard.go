package comm

import (
	"math"

	"heddle/tensor"
)

// Watch lets f see every op before it is checked and started; tests plant wrong data there.
func (g *Group) Watch(f func(*Op)) { g.watch = f }

// look notes where the program is, shows o to the watcher and, where Guard is set, refuses to send what is not finite. A NaN
// reaches another rank only in a collective, so the rank that is refused first is the one it comes from.
func (g *Group) look(o *Op) {
	o.Phase, o.Layer = g.dev.Here()
	if g.watch != nil {
		g.watch(o)
	}
	if !g.Guard || o.Src.Mem.Ptr == nil || o.Src.Type == tensor.I32 || o.Src.Elems() == 0 {
		return
	}
	for i, v := range g.dev.Download(o.Src) {
		if lowest := o.Kind == AllReduceMax && math.IsInf(v, -1); !lowest && (math.IsNaN(v) || math.IsInf(v, 0)) { // no column: a maximum of nothing
			g.failf(o.Site, "this rank would send %g (element %d of %d) in %s over %s", v, i, o.Src.Elems(), o.Kind, o.Axes)
		}
	}
}
