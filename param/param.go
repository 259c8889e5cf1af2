// Package param is the parameter table, the spine of the engine: what each parameter is called, how large it is, how it lies
// on the mesh where it is used, how it starts and whether it decays. Shards, gradients, optimiser state, norms and checkpoints
// are functions of table and mesh.
package param

import (
	"fmt"

	"heddle/mesh"
	"heddle/num"
	"heddle/tensor"
)

// Row is one parameter.
type Row struct {
	Name    string // "layers.3.attention.q"
	Letters string
	Dims    []int       // global sizes, a padded vocabulary included
	Valid   int         // of the first dim, how many are no padding
	Use     mesh.Places // where the model uses it; gradients accumulate at the dual
	Unit    int         // 0: outside the layers; i+1: layer i. Sharded weights are gathered a unit at a time
	Start   float64     // starts normal(Start, Std): 1 and 0 for gains of norms, 0 and 0 for biases
	Std     float64
	Decay   bool
	Train   bool
}

// Table lists the parameters in the order of the model, units in rising order.
type Table []Row

// Box is a part of a global tensor: [Lo, Hi) in every dim.
type Box struct{ Lo, Hi []int }

// Elems is the number of elements in the box.
func (b Box) Elems() int {
	n := 1
	for i := range b.Lo {
		n *= b.Hi[i] - b.Lo[i]
	}
	return n
}

// Dims is the box's sizes.
func (b Box) Dims() []int {
	d := make([]int, len(b.Lo))
	for i := range d {
		d[i] = b.Hi[i] - b.Lo[i]
	}
	return d
}

// Box is the part of the parameter that rank uses: a dim cut by several axes is cut in mesh order, the outer axis first.
func (r *Row) Box(m *mesh.Mesh, rank int) Box {
	return Cut(m, rank, r.Letters, r.Dims, r.Use)
}

// Cut is the part of a global tensor that lies on rank.
func Cut(m *mesh.Mesh, rank int, letters string, dims []int, at mesh.Places) Box {
	b := Box{make([]int, len(dims)), append([]int(nil), dims...)}
	c := m.Coord(rank)
	for a, axis := range m.Axes() {
		for i := range dims {
			if at[a] == mesh.S(letters[i]) {
				n := (b.Hi[i] - b.Lo[i]) / axis.Size
				b.Lo[i] += c[a] * n
				b.Hi[i] = b.Lo[i] + n
			}
		}
	}
	return b
}

// Check refuses a row whose dims the mesh cannot cut evenly.
func (r *Row) Check(m *mesh.Mesh) error {
	for i, n := range r.Dims {
		p := m.Count(r.Use.Axes(mesh.S(r.Letters[i])))
		if n%p != 0 {
			return fmt.Errorf("param: %s: dim %c of %d is not divisible by %d ranks", r.Name, r.Letters[i], n, p)
		}
	}
	return nil
}

// Elems is the number of elements, padding not counted.
func (r *Row) Elems() int {
	n := 1
	for _, d := range r.Dims {
		n *= d
	}
	return n / r.Dims[0] * r.Valid
}

// Elems is the number of the model's parameters.
func (t Table) Elems() (n int) {
	for i := range t {
		n += t[i].Elems()
	}
	return n
}

// Source gives the values of a box of a parameter, row-major. Boxes never reach into padding.
type Source func(r *Row, b Box, dst []float64) error

// Init is the source of a fresh model: a value depends on seed, the parameter's place in the table and the element's global
// index, never on the layout.
func (t Table) Init(seed uint64) Source {
	stream := map[string]uint64{}
	for i := range t {
		stream[t[i].Name] = uint64(i)
	}
	return func(r *Row, b Box, dst []float64) error {
		i, of := 0, stream[r.Name]
		Each(r.Dims, b, func(global int) {
			if dst[i] = r.Start; r.Std > 0 {
				dst[i] += r.Std * num.Normal(seed, of, uint64(global))
			}
			i++
		})
		return nil
	}
}

// Each calls f with the global flat index of every element of the box, in the box's row-major order.
func Each(dims []int, b Box, f func(global int)) {
	if b.Elems() == 0 {
		return
	}
	idx := append([]int(nil), b.Lo...)
	for {
		g := 0
		for i, d := range dims {
			g = g*d + idx[i]
		}
		last := len(dims) - 1
		for k := range b.Hi[last] - b.Lo[last] {
			f(g + k)
		}
		i := last - 1
		for ; i >= 0; i-- {
			if idx[i]++; idx[i] < b.Hi[i] {
				break
			}
			idx[i] = b.Lo[i]
		}
		if i < 0 {
			return
		}
	}
}

// Fill reads the part of r that a box covers into dst, with zeros where it is padding.
func Fill(src Source, r *Row, b Box, dst []float64) error {
	clear(dst)
	valid := Box{append([]int(nil), b.Lo...), append([]int(nil), b.Hi...)}
	if valid.Hi[0] = min(b.Hi[0], r.Valid); valid.Hi[0] <= valid.Lo[0] {
		return nil
	}
	return src(r, valid, dst[:valid.Elems()]) // padding is at the end of the first dim
}

// Describe is a row's handle on a device, without data: local sizes, places of use.
func (r *Row) Describe(m *mesh.Mesh, rank int, t tensor.DType) tensor.Tensor {
	return tensor.Tensor{Letters: r.Letters, Dims: r.Box(m, rank).Dims(), Type: t, At: r.Use}
}
