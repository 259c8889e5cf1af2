package vector

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/tile"
)

// op runs a case: what we got and what the file says, as text to compare. An operation that refuses is a "got"; only an unreadable case is an err.
type op func(Case) (got, want string, err error)

func ops() map[string]op {
	return map[string]op{
		"eval": func(c Case) (string, string, error) {
			table, err := c.A.Table(maxTable)
			return list(table, err), string(c.Result), nil
		},
		"cosize":        func(c Case) (string, string, error) { return fmt.Sprint(c.A.Cosize()), string(c.Result), nil },
		"coalesce":      layouts(func(c Case) (tile.Layout, error) { return c.A.Coalesce(), nil }),
		"composition":   layouts(func(c Case) (tile.Layout, error) { return tile.Compose(c.A, c.B) }),
		"complement":    layouts(func(c Case) (tile.Layout, error) { return c.A.Complement(c.Max) }),
		"right_inverse": layouts(func(c Case) (tile.Layout, error) { return c.A.RightInverse() }),
		"left_inverse":  layouts(func(c Case) (tile.Layout, error) { return c.A.LeftInverse() }),

		"composition_by_mode": layouts(func(c Case) (tile.Layout, error) { return c.A.ComposeModes(c.tiler()) }),

		"logical_divide":  layouts(either(tile.Layout.Divide, tile.Layout.DivideModes)),
		"zipped_divide":   layouts(either(tile.Layout.Divide, tile.Layout.ZippedDivide)),
		"tiled_divide":    layouts(tiled(either(tile.Layout.Divide, tile.Layout.ZippedDivide))),
		"logical_product": layouts(either(tile.Layout.Product, tile.Layout.ProductModes)),
		"zipped_product":  layouts(either(tile.Layout.Product, tile.Layout.ZippedProduct)),
		"tiled_product":   layouts(tiled(either(tile.Layout.Product, tile.Layout.ZippedProduct))),

		"slice":    slice,
		"swizzle":  swizzle,
		"swizzled": swizzled,
	}
}

func opNames() string { return strings.Join(slices.Sorted(maps.Keys(ops())), ", ") }

// either picks the form for one layout b or the form for a tiler.
func either(byLayout func(a, b tile.Layout) (tile.Layout, error), byMode func(tile.Layout, tile.Tiler) (tile.Layout, error)) func(Case) (tile.Layout, error) {
	return func(c Case) (tile.Layout, error) {
		if c.Tiler != nil {
			return byMode(c.A, c.tiler())
		}
		return byLayout(c.A, c.B)
	}
}

func tiled(f func(Case) (tile.Layout, error)) func(Case) (tile.Layout, error) {
	return func(c Case) (tile.Layout, error) {
		l, err := f(c)
		if err != nil {
			return l, err
		}
		return l.Tiled()
	}
}

func (c Case) tiler() tile.Tiler {
	t := make(tile.Tiler, len(c.Tiler))
	for i, p := range c.Tiler {
		t[i] = p.Layout
	}
	return t
}

// layouts compares a resulting layout in shape and stride, and in its table where the file has one. Where heddle refuses because CuTe rounds,
// it is CuTe's rounded answer that must agree.
func layouts(f func(Case) (tile.Layout, error)) op {
	return func(c Case) (string, string, error) {
		want, err := c.layout()
		if err != nil {
			return "", "", err
		}
		got, err := f(c)
		if r, ok := errors.AsType[*tile.RoundedError](err); ok {
			got, err = r.Rounded, nil
		}
		if err != nil {
			return err.Error(), want, nil
		}
		g, w := tabled(got, 0, c, want)
		return g, w, nil
	}
}

// layout is the recorded result as text: peers write empty layouts too, which tile.Layout refuses.
func (c Case) layout() (string, error) {
	var l struct{ Shape, Stride *tile.Tuple }
	if err := json.Unmarshal(c.Result, &l); err != nil {
		return "", err
	}
	if l.Shape == nil || l.Stride == nil {
		return "", fmt.Errorf("result %.40s is not a layout", c.Result)
	}
	return fmt.Sprintf("%v:%v", l.Shape, l.Stride), nil
}

// tabled adds the tables, which are offset by off, to the text of both sides.
func tabled(got tile.Layout, off int, c Case, want string) (string, string) {
	if c.Table == nil {
		return got.String(), want
	}
	var table []int
	var err error
	if got.Size() > 0 {
		table, err = got.Table(maxTable)
	}
	for i := range table {
		table[i] += off
	}
	return got.String() + " " + list(table, err), want + " " + list(c.Table, nil)
}

func slice(c Case) (string, string, error) {
	want, err := c.layout()
	if err != nil {
		return "", "", err
	}
	got, off, err := c.A.Slice(c.Coord)
	if err != nil {
		return err.Error(), want, nil
	}
	g, w := tabled(got, off, c, want)
	return fmt.Sprintf("%d + %s", off, g), fmt.Sprintf("%d + %s", c.Offset, w), nil
}

func swizzle(c Case) (string, string, error) {
	s, err := tile.NewSwizzle(c.Bits, c.Base, c.Shift)
	if err != nil {
		return err.Error(), string(c.Result), nil
	}
	out := make([]int, len(c.X))
	for i, x := range c.X {
		out[i] = s.Apply(x)
	}
	return list(out, nil), string(c.Result), nil
}

func swizzled(c Case) (string, string, error) {
	s, err := tile.NewSwizzle(c.Bits, c.Base, c.Shift)
	if err != nil {
		return err.Error(), list(c.Table, nil), nil
	}
	out, err := c.A.Table(maxTable)
	for i := range out {
		out[i] = s.Apply(c.Offset + out[i])
	}
	return list(out, err), list(c.Table, nil), nil
}

// list prints numbers as Python's json does, so that they compare with the file's own text.
func list(x []int, err error) string {
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(fmt.Sprint(x), " ", ", ")
}
