package tile

import "fmt"

// Tuple is a nested tuple of integers: a shape, a stride or a coordinate. Modes nil means the single integer Value; Free is the "_" of a
// coordinate, the mode that a slice keeps.
type Tuple struct {
	Value int
	Free  bool
	Modes []Tuple
}

// Layout maps coordinates to offsets: a leaf shape:stride, or a tuple of layouts, its modes. Layouts are values and never change.
// The zero Layout is none at all; IsZero tells.
type Layout struct {
	shape, stride int
	modes         []Layout // nil for a leaf
}

// New pairs a shape with a stride of the same profile.
func New(shape, stride Tuple) (Layout, error) {
	l, err := zip(shape, stride, 0)
	if err != nil {
		return Layout{}, err
	}
	return l.checked()
}

func zip(shape, stride Tuple, depth int) (Layout, error) {
	switch {
	case depth > MaxDepth:
		return Layout{}, fmt.Errorf("tile: layout nested deeper than %d", MaxDepth)
	case shape.Free || stride.Free:
		return Layout{}, fmt.Errorf("tile: shape %v, stride %v: _ belongs in a coordinate", shape, stride)
	case (shape.Modes == nil) != (stride.Modes == nil) || len(shape.Modes) != len(stride.Modes):
		return Layout{}, fmt.Errorf("tile: shape %v and stride %v do not have the same nesting", shape, stride)
	case shape.Modes == nil:
		return Layout{shape: shape.Value, stride: stride.Value}, nil
	}
	modes := make([]Layout, len(shape.Modes))
	for i := range modes {
		m, err := zip(shape.Modes[i], stride.Modes[i], depth+1)
		if err != nil {
			return Layout{}, err
		}
		modes[i] = m
	}
	return Layout{modes: modes}, nil
}

// Leaf is the layout n:d.
func Leaf(n, d int) Layout { return Layout{shape: n, stride: d} }

// Join makes a layout whose modes are the given ones. Like Leaf it cannot fail; what is out of bounds is refused by the operation that reads it.
func Join(modes ...Layout) Layout { return Layout{modes: append([]Layout{}, modes...)} }

// Compact is the column-major layout of a shape: the first mode is contiguous.
func Compact(shape Tuple) (Layout, error) {
	stride, _ := prefix(shape, 1)
	return New(shape, stride)
}

func prefix(shape Tuple, from int) (stride Tuple, next int) {
	if shape.Modes == nil {
		return Tuple{Value: from}, mul(from, max(shape.Value, 0))
	}
	stride.Modes = make([]Tuple, len(shape.Modes))
	for i, m := range shape.Modes {
		stride.Modes[i], from = prefix(m, from)
	}
	return stride, from
}

// Cols is the column-major m × n layout (m,n):(1,m).
func Cols(m, n int) Layout { return Join(Leaf(m, 1), Leaf(n, m)) }

// Rows is the row-major m × n layout (m,n):(n,1).
func Rows(m, n int) Layout { return Join(Leaf(m, n), Leaf(n, 1)) }

// IsZero tells whether l is the zero Layout, which stands for "none".
func (l Layout) IsZero() bool { return l.modes == nil && l.shape == 0 }

// IsLeaf tells whether l is a single shape:stride.
func (l Layout) IsLeaf() bool { return l.modes == nil }

// Rank is the number of modes; 1 for a leaf.
func (l Layout) Rank() int {
	if l.modes == nil {
		return 1
	}
	return len(l.modes)
}

// Mode is mode i; mode 0 of a leaf is the leaf.
func (l Layout) Mode(i int) Layout {
	if l.modes == nil && i == 0 {
		return l
	}
	return l.modes[i]
}

// Size is the number of coordinates: the product of the shape.
func (l Layout) Size() int {
	if l.modes == nil {
		return l.shape
	}
	n := 1
	for _, m := range l.modes {
		n = mul(n, m.Size())
	}
	return n
}

// Cosize is one more than the largest offset.
func (l Layout) Cosize() int {
	n := 1
	for _, m := range l.leaves(nil) {
		n = add(n, mul(m.shape-1, m.stride))
	}
	return n
}

// Depth is the nesting: 0 for a leaf.
func (l Layout) Depth() int {
	d := 0
	for _, m := range l.modes {
		d = max(d, 1+m.Depth())
	}
	if l.modes != nil {
		d = max(d, 1)
	}
	return d
}

// Shape is the shape alone.
func (l Layout) Shape() Tuple { return l.tuple(func(m Layout) int { return m.shape }) }

// Stride is the stride alone.
func (l Layout) Stride() Tuple { return l.tuple(func(m Layout) int { return m.stride }) }

func (l Layout) tuple(of func(leaf Layout) int) Tuple {
	if l.modes == nil {
		return Tuple{Value: of(l)}
	}
	t := Tuple{Modes: make([]Tuple, len(l.modes))}
	for i, m := range l.modes {
		t.Modes[i] = m.tuple(of)
	}
	return t
}

// Equal compares shape, stride and nesting. Two layouts may be the same function and not be equal; Coalesce both first to ask that.
func (l Layout) Equal(o Layout) bool {
	if (l.modes == nil) != (o.modes == nil) || len(l.modes) != len(o.modes) || l.shape != o.shape || l.stride != o.stride {
		return false
	}
	for i := range l.modes {
		if !l.modes[i].Equal(o.modes[i]) {
			return false
		}
	}
	return true
}

// leaves appends the leaves of l in order.
func (l Layout) leaves(to []Layout) []Layout {
	if l.modes == nil {
		return append(to, l)
	}
	for _, m := range l.modes {
		to = m.leaves(to)
	}
	return to
}

// At evaluates the layout: at one linear coordinate, counted with the first mode fastest, or at one such coordinate for each mode.
// Past the end the last leaf goes on with its stride, as composition needs. Coordinates must not be negative.
func (l Layout) At(coord ...int) int {
	if len(coord) == 1 {
		return l.at(coord[0])
	}
	if len(coord) != len(l.modes) {
		panic(fmt.Sprintf("tile: layout %v has %d modes, got %d coordinates", l, len(l.modes), len(coord)))
	}
	off := 0
	for i, c := range coord {
		off += l.modes[i].At(c)
	}
	return off
}

func (l Layout) at(i int) int {
	if l.modes == nil {
		return i * l.stride
	}
	off, last := 0, len(l.modes)-1
	for n, m := range l.modes {
		if n == last {
			return off + m.at(i)
		}
		size := m.Size()
		off += m.at(i % size)
		i /= size
	}
	return off
}

// Table lists the offsets of all coordinates. It refuses layouts larger than max.
func (l Layout) Table(max int) ([]int, error) {
	l, err := l.checked()
	if err != nil {
		return nil, err
	}
	if l.Size() > max {
		return nil, fmt.Errorf("tile: layout %v has %d coordinates, at most %d can be listed", l, l.Size(), max)
	}
	out := make([]int, 0, l.Size())
	return l.offsets(out, 0), nil
}

// offsets appends base + l(i) for all i, the first leaf running fastest.
func (l Layout) offsets(out []int, base int) []int {
	leaves := l.leaves(nil)
	var rec func(n, base int)
	rec = func(n, base int) {
		if n < 0 {
			out = append(out, base)
			return
		}
		for i := range leaves[n].shape {
			rec(n-1, base+i*leaves[n].stride)
		}
	}
	rec(len(leaves)-1, base)
	return out
}

// checked returns l if it keeps the package's bounds.
func (l Layout) checked() (Layout, error) {
	leaves, err := l.bounded(0, 0)
	if err != nil {
		return Layout{}, err
	}
	switch {
	case leaves > MaxLeaves:
		return Layout{}, fmt.Errorf("tile: layout with more than %d leaves", MaxLeaves)
	case l.Size() > MaxOffset:
		return Layout{}, fmt.Errorf("tile: layout %v has more than 2^48 coordinates", l)
	case l.Cosize() > MaxOffset:
		return Layout{}, fmt.Errorf("tile: layout %v reaches beyond offset 2^48", l)
	}
	return l, nil
}

func (l Layout) bounded(depth, leaves int) (int, error) {
	if depth > MaxDepth {
		return 0, fmt.Errorf("tile: layout nested deeper than %d", MaxDepth)
	}
	if l.modes == nil {
		if l.shape < 1 || l.stride < 0 || l.shape > MaxOffset || l.stride > MaxOffset {
			return 0, fmt.Errorf("tile: mode %d:%d, want a shape in [1, 2^48] and a stride in [0, 2^48]", l.shape, l.stride)
		}
		return leaves + 1, nil
	}
	for _, m := range l.modes {
		n, err := m.bounded(depth+1, leaves)
		if err != nil {
			return 0, err
		}
		if leaves = n; leaves > MaxLeaves {
			return leaves, nil
		}
	}
	return leaves, nil
}
