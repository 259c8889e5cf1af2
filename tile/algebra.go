package tile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// RoundedError is the refusal of an operation that has no exact answer because a division leaves a rest. CuTe rounds it down and answers
// Rounded, a layout that breaks the operation's definition; it may be empty. It is kept for comparing with CuTe.
type RoundedError struct {
	Err     error
	Rounded Layout
}

func (e *RoundedError) Error() string { return e.Err.Error() }

// exact pairs an answer with the first rounding that went into it, if any.
func exact(l Layout, rounding error) (Layout, error) {
	if rounding != nil {
		return Layout{}, &RoundedError{rounding, l}
	}
	return l.checked()
}

// round takes an operation's results apart again: the layout, rounded if need be, the rounding, and an error that left no layout at all.
func round(l Layout, err error) (_ Layout, rounding, _ error) {
	if r, ok := errors.AsType[*RoundedError](err); ok {
		return r.Rounded, r.Err, nil
	}
	return l, nil, err
}

// Coalesce is the same function of a linear coordinate with as few leaves as possible, flat.
func (l Layout) Coalesce() Layout { return flat(l.leaves(nil)) }

// flat joins leaves, merging neighbours that run on into each other and dropping those of size 1. Nothing left is 1:0.
func flat(leaves []Layout) Layout {
	var out []Layout
	for _, m := range leaves {
		last := len(out) - 1
		switch {
		case m.shape == 1:
		case last >= 0 && mul(out[last].shape, out[last].stride) == m.stride:
			out[last].shape = mul(out[last].shape, m.shape)
		default:
			out = append(out, m)
		}
	}
	switch len(out) {
	case 0:
		return Leaf(1, 0)
	case 1:
		return out[0]
	}
	return Layout{modes: out}
}

// CoalesceModes coalesces each mode for itself, so that the rank stays.
func (l Layout) CoalesceModes() Layout {
	if l.modes == nil {
		return l.Coalesce()
	}
	out := make([]Layout, len(l.modes))
	for i, m := range l.modes {
		out[i] = m.Coalesce()
	}
	return Layout{modes: out}
}

// Filter drops what does not move the offset, the leaves of stride 0, and coalesces.
func (l Layout) Filter() Layout {
	leaves := l.leaves(nil)
	return flat(slices.DeleteFunc(leaves, func(m Layout) bool { return m.stride == 0 }))
}

// Compose returns the layout R with R(i) = a(b(i)), whose modes are those of b (a leaf of b that crosses leaves of a becomes a tuple); where b leaves a's coordinates, a's last leaf goes on. It exists if every stride of b divides, or is divided by, the
// leaves of a that it steps over, and every shape fills those it covers; otherwise there is no such layout and an error says where.
func Compose(a, b Layout) (Layout, error) {
	if _, err := a.checked(); err != nil {
		return Layout{}, err
	}
	if _, err := b.checked(); err != nil {
		return Layout{}, err
	}
	c := composer{a: a.Coalesce().leaves(nil)}
	r, err := c.compose(b)
	if err != nil {
		return Layout{}, fmt.Errorf("tile: compose %v with %v: %w", a, b, err)
	}
	if c.rounding != nil {
		c.rounding = fmt.Errorf("tile: compose %v with %v: %w", a, b, c.rounding)
	}
	return exact(r, c.rounding)
}

// composer maps layouts through a.
type composer struct {
	a        []Layout // coalesced leaves
	rounding error    // the first shape that did not fit
}

func (c *composer) compose(b Layout) (Layout, error) {
	if b.modes == nil {
		return c.leaf(b)
	}
	out := make([]Layout, len(b.modes))
	for i, m := range b.modes {
		r, err := c.compose(m)
		if err != nil {
			return Layout{}, err
		}
		out[i] = r
	}
	return Layout{modes: out}, nil
}

// leaf takes every b.stride-th coordinate of a, b.shape of them: first the stride uses up leaves of a, then the shape covers some.
func (c *composer) leaf(b Layout) (Layout, error) {
	if b.stride == 0 {
		return b, nil
	}
	n, d := b.shape, b.stride // what is still to be placed
	var out []Layout
	for i, m := range c.a {
		if i == len(c.a)-1 { // the last leaf goes on for ever
			if n != 1 || len(out) == 0 {
				out = append(out, Leaf(n, mul(d, m.stride)))
			}
			break
		}
		if n > 1 && m.shape%d != 0 && d%m.shape != 0 {
			return Layout{}, fmt.Errorf("stride %d and mode %v do not divide one another", d, m)
		}
		take := min(max(1, m.shape/d), n)
		if n%take != 0 && c.rounding == nil {
			c.rounding = fmt.Errorf("shape %d is not a multiple of the %d that mode %v has left", n, take, m)
		}
		if take > 1 {
			out = append(out, Leaf(take, mul(d, m.stride)))
		}
		n, d = n/take, ceilDiv(d, m.shape)
	}
	if len(out) == 1 {
		return out[0], nil
	}
	return Layout{modes: out}, nil
}

// Complement returns the layout that steps over what l leaves out of [0, size): its offsets ascend, are disjoint from l's apart from 0, and
// together the two reach every offset below size (rounded up to a whole number of l's extent). It needs l's leaves to nest:
// each stride a multiple of the extent of the smaller ones.
func (l Layout) Complement(size int) (Layout, error) {
	if _, err := l.checked(); err != nil {
		return Layout{}, err
	}
	if size < 1 || size > MaxOffset {
		return Layout{}, fmt.Errorf("tile: complement of %v in %d, want a size of [1, 2^48]", l, size)
	}
	leaves := slices.DeleteFunc(l.leaves(nil), func(m Layout) bool { return m.stride == 0 || m.shape == 1 })
	slices.SortFunc(leaves, func(x, y Layout) int {
		return cmp.Or(cmp.Compare(x.stride, y.stride), cmp.Compare(x.shape, y.shape))
	})
	var out []Layout
	var rounding error
	extent := 1
	for _, m := range leaves {
		if m.stride%extent != 0 && rounding == nil {
			rounding = fmt.Errorf("tile: complement of %v: the stride of mode %v is not a multiple of %d, the extent of the modes below it", l, m, extent)
		}
		out = append(out, Leaf(m.stride/extent, extent))
		extent = mul(m.stride, m.shape)
	}
	out = append(out, Leaf(ceilDiv(size, extent), extent))
	return exact(flat(out), rounding)
}

// RightInverse returns the longest layout R with l(R(i)) = i for all i below R's size.
func (l Layout) RightInverse() (Layout, error) {
	if _, err := l.checked(); err != nil {
		return Layout{}, err
	}
	return l.rightInverse().checked()
}

func (l Layout) rightInverse() Layout {
	type mode struct{ leaf, coord Layout } // coord.stride: the linear coordinate that steps this leaf once
	var modes []mode
	step := 1
	for _, m := range l.leaves(nil) {
		if m.shape > 1 {
			modes = append(modes, mode{m, Leaf(m.shape, step)})
		}
		step = mul(step, m.shape)
	}
	slices.SortFunc(modes, func(x, y mode) int {
		return cmp.Or(cmp.Compare(x.leaf.stride, y.leaf.stride), cmp.Compare(x.leaf.shape, y.leaf.shape), cmp.Compare(x.coord.stride, y.coord.stride))
	})
	var out []Layout
	next := 1
	for _, m := range modes {
		if m.leaf.stride != next {
			break
		}
		out = append(out, m.coord)
		next = mul(m.leaf.stride, m.leaf.shape)
	}
	return flat(out)
}

// LeftInverse returns a layout L with L(l(i)) = i for all i: l must be injective in the way Complement asks for.
func (l Layout) LeftInverse() (Layout, error) {
	c, rounding, err := round(l.Complement(1))
	if err != nil {
		return Layout{}, err
	}
	return exact(Join(l, c).rightInverse(), rounding)
}
