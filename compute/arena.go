package compute

import (
	"fmt"
	"maps"

	"heddle/tensor"
)

// Category says what memory is for.
type Category uint8

const (
	Scratch   Category = iota // lives inside one operation or sub-block
	Weights                   // parameters: shards and gathered units
	Gradients                 // of parameters
	Moments                   // of the optimiser
	Saved                     // activations kept for Backward
	Comm                      // staging of collectives
	Constant                  // batches, positions
	Categories
)

func (c Category) String() string {
	return [...]string{"scratch", "weights", "gradients", "moments", "saved", "comm", "constant"}[c]
}

// Memory is what an arena held, in bytes: Peak in all, Max of each category by itself, AtPeak the categories when the peak
// was reached, Phases the peak within each phase, Held now.
type Memory struct {
	Held, Peak int
	Max        [Categories]int
	AtPeak     [Categories]int
	Phases     map[string]int
}

// Equal tells whether two accounts are the same in everything.
func (m Memory) Equal(n Memory) bool {
	return m.Held == n.Held && m.Peak == n.Peak && m.Max == n.Max && m.AtPeak == n.AtPeak && maps.Equal(m.Phases, n.Phases)
}

type block struct {
	mem   tensor.Mem
	bytes int
	cat   Category
	scope *Scope
}

// Scope owns the tensors that were allocated while it was the current one. Scopes nest: Close frees what they own.
type Scope struct {
	parent *Scope
	owns   []int
	closed bool
}

type arena struct {
	leaf  Leaf
	live  map[int]*block
	next  int
	scope *Scope

	held, peak int
	now        [Categories]int
	max        [Categories]int
	atPeak     [Categories]int
	phase      string
	phases     map[string]int
	watch      func(held [Categories]int)
}

func (a *arena) init(leaf Leaf) {
	*a = arena{leaf: leaf, live: map[int]*block{}, scope: &Scope{}, phases: map[string]int{}}
}

func (a *arena) alloc(bytes int, c Category) (int, tensor.Mem) {
	a.next++
	b := &block{mem: a.leaf.Alloc(bytes), bytes: bytes, cat: c, scope: a.scope}
	a.live[a.next] = b
	a.scope.owns = append(a.scope.owns, a.next)
	a.count(bytes, c)
	return a.next, b.mem
}

func (a *arena) count(bytes int, c Category) {
	a.held += bytes
	a.now[c] += bytes
	a.max[c] = max(a.max[c], a.now[c])
	if a.held > a.peak {
		a.peak, a.atPeak = a.held, a.now
	}
	a.phases[a.phase] = max(a.phases[a.phase], a.held)
	a.tell()
}

func (a *arena) tell() {
	if a.watch != nil {
		a.watch(a.now)
	}
}

// WatchMemory lets f see the bytes held by category after every change.
func (d *Device) WatchMemory(f func(held [Categories]int)) { d.arena.watch = f }

func (a *arena) enter(phase string) {
	a.phase = phase
	a.phases[phase] = max(a.phases[phase], a.held)
}

func (a *arena) free(id int) {
	b := a.live[id]
	if b == nil {
		panic(fmt.Sprintf("compute: allocation %d is freed twice", id))
	}
	a.held -= b.bytes
	a.now[b.cat] -= b.bytes
	a.leaf.Free(b.mem, b.bytes)
	delete(a.live, id)
	a.tell()
}

// Open starts a scope inside the current one.
func (d *Device) Open() *Scope {
	s := &Scope{parent: d.arena.scope}
	d.arena.scope = s
	return s
}

// Close ends the current scope, which must be s: it frees what s owns, except keep, which its parent owns from now on.
func (d *Device) Close(s *Scope, keep ...tensor.Tensor) {
	if d.arena.scope != s || s.closed {
		panic("compute: scopes are closed inner first, once")
	}
	s.closed = true
	d.arena.scope = s.parent
	for _, id := range s.owns {
		b := d.arena.live[id]
		switch {
		case b == nil || b.scope != s: // freed or moved before
		case kept(keep, id):
			b.scope = s.parent
			s.parent.owns = append(s.parent.owns, id)
		default:
			d.arena.free(id)
		}
	}
}

func kept(keep []tensor.Tensor, id int) bool {
	for _, t := range keep {
		if t.Alloc == id {
			return true
		}
	}
	return false
}

// Free releases tensors before their scope ends.
func (d *Device) Free(ts ...tensor.Tensor) {
	for _, t := range ts {
		d.arena.free(t.Alloc)
	}
}

// Retag moves tensors to another memory category: Save marks what it keeps.
func (d *Device) Retag(c Category, ts ...tensor.Tensor) {
	a := &d.arena
	for _, t := range ts {
		b := a.live[t.Alloc]
		a.now[b.cat] -= b.bytes
		a.held -= b.bytes
		b.cat = c
		a.count(b.bytes, c)
	}
}

// Memory reports the arena.
func (d *Device) Memory() Memory {
	a := &d.arena
	m := Memory{Held: a.held, Peak: a.peak, Max: a.max, AtPeak: a.atPeak, Phases: map[string]int{}}
	for k, v := range a.phases {
		if k != "" {
			m.Phases[k] = v
		}
	}
	return m
}
