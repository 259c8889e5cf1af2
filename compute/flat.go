package compute

import (
	"heddle/mesh"
	"heddle/tensor"
)

// Zero sets t to zero.
func (d *Device) Zero(t tensor.Tensor) {
	d.run(Call{Op: "zero", Args: d.args(t)}, func() { d.leaf.Zero(t) })
}

// Copy copies src to dst, of equal size.
func (d *Device) Copy(dst, src tensor.Tensor) {
	if dst.Elems() != src.Elems() || dst.Type != src.Type {
		d.failf("copy", "%d %s to %d %s", src.Elems(), src.Type, dst.Elems(), dst.Type)
	}
	d.run(Call{Op: "copy"}, func() { d.leaf.Copy(dst, src) })
}

// CopyBox copies a box between two tensors of equal rank; collectives pack and unpack with it.
func (d *Device) CopyBox(dst, src tensor.Tensor, b Box) {
	for i, n := range b.Dims {
		if len(dst.Dims) != len(b.Dims) || len(src.Dims) != len(b.Dims) || b.DstLo[i]+n > dst.Dims[i] || b.SrcLo[i]+n > src.Dims[i] {
			d.failf("copy box", "%v at %v of %v to %v of %v", b.Dims, b.SrcLo, src.Dims, b.DstLo, dst.Dims)
		}
	}
	d.run(Call{Op: "copy box"}, func() { d.leaf.CopyBox(dst, src, b) })
}

// AddSumSquares adds Σ x² to the scalar out.
func (d *Device) AddSumSquares(out, x tensor.Tensor) {
	d.run(Call{Op: "sum squares", Flops: 2 * int64(x.Elems())}, func() { d.leaf.SumSquares(out, x) })
}

// ClipScale is the factor of gradient clipping, min(1, limit/(√sq + 1e-6)), from the squared global norm; limit 0 gives 1.
func (d *Device) ClipScale(sq tensor.Tensor, limit float64) tensor.Tensor {
	out := d.New(d.Type.Wide(), "", nil, d.pointwise("clip scale", "", "", sq))
	d.run(Call{Op: "clip scale"}, func() { d.leaf.ClipScale(out, sq, limit) })
	return out
}

// AdamW updates one flat piece w with its moments m, v from the gradient g·scale. A low with letters takes the new weights in its own type.
func (d *Device) AdamW(w, low, g, m, v, scale tensor.Tensor, a AdamW) {
	if n := w.Elems(); g.Elems() != n || m.Elems() != n || v.Elems() != n || Wanted(low) && low.Elems() != n {
		d.failf("adamw", "sizes %d, %d, %d, %d", n, g.Elems(), m.Elems(), v.Elems())
	}
	d.run(Call{Op: "adamw", Flops: 12 * int64(w.Elems())}, func() { d.leaf.AdamW(w, low, g, m, v, scale, a) })
}

// Cast copies src to dst, which has as many elements, in dst's type.
func (d *Device) Cast(dst, src tensor.Tensor) {
	if dst.Elems() != src.Elems() {
		d.failf("cast", "%d %s to %d %s", src.Elems(), src.Type, dst.Elems(), dst.Type)
	}
	d.run(Call{Op: "cast"}, func() { d.leaf.Cast(dst, src) })
}

// Upload fills t from the host.
func (d *Device) Upload(t tensor.Tensor, src []float64) {
	if len(src) != t.Elems() {
		d.failf("upload", "%d values to %d", len(src), t.Elems())
	}
	d.run(Call{Op: "upload"}, func() { d.leaf.Upload(t, src) })
}

// Download brings t to the host; on a dry machine all values are zero.
func (d *Device) Download(t tensor.Tensor) []float64 {
	out := make([]float64, t.Elems())
	d.run(Call{Op: "download"}, func() { d.leaf.Download(out, t) })
	return out
}

// Read brings a scalar to the host, for a decision of the program that every machine must be able to make: assume is what a
// dry machine answers. A partial value is refused: ranks would decide differently.
func (d *Device) Read(t tensor.Tensor, assume float64) float64 {
	for a, axis := range d.Mesh.Axes() {
		if p := t.At[a]; p == mesh.P || p == mesh.M {
			d.failf("read", "%s is %s on axis %s", d.Describe(t), p, axis.Name)
		}
	}
	return d.ReadPart(t, assume)
}

// ReadPart is Read of this rank's part alone, for finding a rank at fault.
func (d *Device) ReadPart(t tensor.Tensor, assume float64) float64 {
	v := d.Download(t)[0]
	if t.Mem.Ptr == nil {
		return assume
	}
	return v
}
