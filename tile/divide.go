package tile

import "fmt"

// Tiler cuts a layout mode by mode: entry i is composed with mode i. The zero Layout keeps its mode whole; modes beyond the tiler stay as they are.
type Tiler []Layout

// Tile is the tiler of contiguous pieces, sizes[i] of mode i.
func Tile(sizes ...int) Tiler {
	t := make(Tiler, len(sizes))
	for i, n := range sizes {
		t[i] = Leaf(n, 1)
	}
	return t
}

// split is what divide and product share: two layouts made of a and b, inner and outer.
type split func(a, b Layout) (Layout, error)

// Divide splits l into (b, everything else): mode 0 walks one tile as b orders it, mode 1 walks the tiles. CuTe's logical_divide.
func (l Layout) Divide(b Layout) (Layout, error) {
	if _, err := l.checked(); err != nil {
		return Layout{}, err
	}
	c, err := b.Complement(l.Size())
	if err != nil {
		return Layout{}, fmt.Errorf("tile: divide %v: %v", l, err) // not %w: what a complement rounds to is not the quotient
	}
	return Compose(l, Join(b, c))
}

// Product repeats l as b orders the copies: mode 0 is l, mode 1 walks the copies, which do not overlap. CuTe's logical_product.
func (l Layout) Product(b Layout) (Layout, error) {
	for _, x := range []Layout{l, b} {
		if _, err := x.checked(); err != nil {
			return Layout{}, err
		}
	}
	c, err := l.Complement(mul(l.Size(), b.Cosize()))
	if err != nil {
		return Layout{}, fmt.Errorf("tile: product of %v and %v: %v", l, b, err)
	}
	outer, err := Compose(c, b)
	if err != nil {
		return Layout{}, fmt.Errorf("tile: product of %v and %v: %v", l, b, err)
	}
	return Join(l, outer).checked()
}

// ComposeModes composes each mode of l with the tiler's entry: the tile alone, without the rest.
func (l Layout) ComposeModes(t Tiler) (Layout, error) { return l.modewise(t, Compose) }

// DivideModes divides each mode of l by the tiler's entry: ((tile, rest), (tile, rest), …).
func (l Layout) DivideModes(t Tiler) (Layout, error) { return l.modewise(t, Layout.Divide) }

// ProductModes multiplies each mode of l by the tiler's entry.
func (l Layout) ProductModes(t Tiler) (Layout, error) { return l.modewise(t, Layout.Product) }

func (l Layout) modewise(t Tiler, f split) (Layout, error) {
	if len(t) > l.Rank() {
		return Layout{}, fmt.Errorf("tile: tiler of %d modes for layout %v of %d", len(t), l, l.Rank())
	}
	var first error
	out := make([]Layout, l.Rank())
	for i := range out {
		out[i] = l.Mode(i)
		if i >= len(t) || t[i].IsZero() {
			continue
		}
		r, rounding, err := round(f(l.Mode(i), t[i]))
		if err != nil {
			return Layout{}, err
		}
		if first == nil {
			first = rounding
		}
		out[i] = r
	}
	return exact(Layout{modes: out}, first)
}

// ZippedDivide gathers what DivideModes made: ((tiles…), (rests…)).
func (l Layout) ZippedDivide(t Tiler) (Layout, error) { return l.zipped(t, Layout.Divide) }

// ZippedProduct gathers what ProductModes made: ((modes…), (copies…)).
func (l Layout) ZippedProduct(t Tiler) (Layout, error) { return l.zipped(t, Layout.Product) }

func (l Layout) zipped(t Tiler, f split) (Layout, error) {
	if len(t) > l.Rank() {
		return Layout{}, fmt.Errorf("tile: tiler of %d modes for layout %v of %d", len(t), l, l.Rank())
	}
	var inner, outer []Layout
	for i, b := range t {
		in, out := Leaf(1, 0), l.Mode(i) // a kept mode has tiles of one
		if !b.IsZero() {
			r, err := f(l.Mode(i), b)
			if err != nil {
				return Layout{}, fmt.Errorf("tile: mode %d: %v", i, err)
			}
			in, out = r.Mode(0), r.Mode(1)
		}
		inner, outer = append(inner, in), append(outer, out)
	}
	for i := len(t); i < l.Rank(); i++ {
		outer = append(outer, l.Mode(i))
	}
	return Join(Join(inner...), Join(outer...)).checked()
}

// Tiled spreads the second mode of a divided or multiplied layout: (inner, outer0, outer1, …). CuTe's tiled_divide and tiled_product are
// Tiled of the zipped forms, or of Divide and Product.
func (l Layout) Tiled() (Layout, error) {
	if l.Rank() != 2 {
		return Layout{}, fmt.Errorf("tile: tiled form of %v, want two modes", l)
	}
	out := []Layout{l.Mode(0)}
	for i := range l.Mode(1).Rank() {
		out = append(out, l.Mode(1).Mode(i))
	}
	return Layout{modes: out}.checked()
}

// Slice fixes the integers of a coordinate and keeps its free modes: the sublayout, as a tuple of the kept modes, and the offset of the rest.
// An integer against a nested mode is that mode's linear coordinate.
func (l Layout) Slice(coord Tuple) (kept Layout, offset int, err error) {
	if _, err := l.checked(); err != nil {
		return Layout{}, 0, err
	}
	kept.modes = []Layout{}
	if err := l.slice(coord, &kept, &offset); err != nil {
		return Layout{}, 0, fmt.Errorf("tile: slice %v at %v: %w", l, coord, err)
	}
	return kept, offset, nil
}

func (l Layout) slice(coord Tuple, kept *Layout, offset *int) error {
	switch {
	case coord.Free:
		kept.modes = append(kept.modes, l)
		return nil
	case coord.Modes == nil:
		if coord.Value < 0 || coord.Value >= l.Size() {
			return fmt.Errorf("coordinate %d is outside mode %v of size %d", coord.Value, l, l.Size())
		}
		*offset += l.At(coord.Value)
		return nil
	case l.modes == nil || len(coord.Modes) != len(l.modes):
		return fmt.Errorf("coordinate %v does not fit mode %v", coord, l)
	}
	for i, c := range coord.Modes {
		if err := l.modes[i].slice(c, kept, offset); err != nil {
			return err
		}
	}
	return nil
}
