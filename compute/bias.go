package compute

import "heddle/tensor"

// Center takes the mean of the last dim off: y = x − mean(x). LayerNorm (Ba et al. 2016) is Norm of it, and a bias. It is a
// symmetric projection, so it is its own gradient. x [..., h].
func (d *Device) Center(x tensor.Tensor) tensor.Tensor {
	last := x.Letters[len(x.Letters)-1]
	for a, axis := range d.Mesh.Axes() {
		if x.At[a].Letter() == last {
			d.failf("center", "%s shards %c on axis %s", d.Describe(x), last, axis.Name)
		}
	}
	y := d.New(d.Type, x.Letters, x.Dims, d.linear("center", x.Letters, x))
	d.run(Call{Op: "center", Args: d.args(y, x), Flops: 2 * int64(x.Elems())}, func() { d.leaf.Center(y, x) })
	return y
}

// AddBias adds b to every row of x in place. b has x's last letters: [h] for x [b,s,h], [g,r,d] for [b,s,g,r,d]. A partial x
// is refused: every rank's part would get the bias.
func (d *Device) AddBias(x, b tensor.Tensor) {
	d.suffix("bias", x, b)
	if at := d.pointwise("bias", x.Letters, "", x, b); at != x.At {
		d.failf("bias", "%s becomes %s", d.Describe(x), d.Mesh.String(at))
	}
	d.run(Call{Op: "bias", Args: d.args(x, x, b), Flops: int64(x.Elems())}, func() { d.leaf.AddBias(x, b) })
}

// BiasBack adds the gradient of a bias to db: the sum of dy's rows. A db without letters is not wanted.
func (d *Device) BiasBack(db, dy tensor.Tensor) {
	if !Wanted(db) {
		return
	}
	d.suffix("bias back", dy, db)
	d.into("bias back", db, dy)
	d.run(Call{Op: "bias back", Args: d.args(db, dy), Flops: int64(dy.Elems())}, func() { d.leaf.BiasBack(db, dy) })
}

// suffix checks that b's letters are the last of x's, with the same sizes.
func (d *Device) suffix(op string, x, b tensor.Tensor) {
	n := len(x.Letters) - len(b.Letters)
	if n < 0 || x.Letters[n:] != b.Letters {
		d.failf(op, "%s to rows of %s", b.Letters, x.Letters)
	}
	d.sizes(op, x.Letters, x, b)
}

// GELU is x·Φ(x) in the tanh form of GPT-2 (Hendrycks and Gimpel 2016). x [..., f].
func (d *Device) GELU(x tensor.Tensor) tensor.Tensor {
	y := d.New(d.Type, x.Letters, x.Dims, d.pointwise("gelu", x.Letters, "", x))
	d.run(Call{Op: "gelu", Args: d.args(y, x), Flops: 8 * int64(x.Elems())}, func() { d.leaf.GELU(y, x) })
	return y
}

// GELUBack is its gradient, linear in dy.
func (d *Device) GELUBack(dy, x tensor.Tensor) tensor.Tensor {
	dx := d.New(d.Type, x.Letters, d.sizes("gelu back", x.Letters, dy, x), d.linear("gelu back", x.Letters, dy, x))
	d.run(Call{Op: "gelu back", Args: d.args(dx, dy, x), Flops: 12 * int64(x.Elems())}, func() { d.leaf.GELUBack(dx, dy, x) })
	return dx
}
