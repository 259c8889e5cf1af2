package compute

import (
	"fmt"
	"strings"

	"heddle/tensor"
)

// Contract is the product of a and b with out's letters: letters in both operands but not in out are summed over. Each
// operand's letters must be two runs (kept and contracted, in either order), and out the kept letters of a, then of b, so
// that it is one matrix product:
//
//	y  = x·Wᵀ    Contract("bsgrd", x "bsh", W "grdh")
//	dx = dy·W    Contract("bsh", dy "bsgrd", W "grdh")
//	dW = dyᵀ·x   Contract("grdh", dy "bsgrd", x "bsh")
func (d *Device) Contract(out string, a, b tensor.Tensor) tensor.Tensor {
	at := d.linear("contract", out, a, b)
	c := d.New(d.Type, out, d.sizes("contract", out, a, b), at)
	d.gemm(c, a, b, false)
	return c
}

// ContractAdd adds the product to c, whose places must be the product's.
func (d *Device) ContractAdd(c, a, b tensor.Tensor) {
	if at := d.linear("contract", c.Letters, a, b); at != c.At {
		d.failf("contract", "adds %s at %s to %s", c.Letters, d.Mesh.String(at), d.Mesh.String(c.At))
	}
	d.sizes("contract", c.Letters, a, b, c)
	d.gemm(c, a, b, true)
}

func (d *Device) gemm(c, a, b tensor.Tensor, add bool) {
	g, err := gemmShape(c, a, b)
	if err != nil {
		d.Fail("contract", err)
	}
	g.Accumulate = add
	op := "contract"
	if add {
		op = "contract add"
	}
	d.run(Call{Op: op, Args: d.args(c, a, b), Flops: 2 * int64(g.M) * int64(g.N) * int64(g.K)}, func() { d.leaf.Gemm(g, c, a, b) })
}

func gemmShape(c, a, b tensor.Tensor) (g Gemm, err error) {
	bad := func() (Gemm, error) {
		return g, fmt.Errorf("contract: %s·%s → %s is not one matrix product", a.Letters, b.Letters, c.Letters)
	}
	kept, sum := split(a, c.Letters)
	keptB, sumB := split(b, c.Letters)
	if sum != sumB || kept+keptB != c.Letters {
		return bad()
	}
	switch a.Letters {
	case kept + sum:
	case sum + kept:
		g.TransA = true
	default:
		return bad()
	}
	switch b.Letters {
	case sum + keptB:
	case keptB + sum:
		g.TransB = true
	default:
		return bad()
	}
	g.M, g.K, g.N = extent(a, kept), extent(a, sum), extent(b, keptB)
	return g, nil
}

// split divides t's letters into those that out keeps and those that are summed.
func split(t tensor.Tensor, out string) (kept, sum string) {
	for _, l := range t.Letters {
		if strings.ContainsRune(out, l) {
			kept += string(l)
		} else {
			sum += string(l)
		}
	}
	return kept, sum
}

func extent(t tensor.Tensor, letters string) int {
	n := 1
	for i := range letters {
		n *= t.Dim(letters[i])
	}
	return n
}

// Add is a + b, which must have the same letters and places.
func (d *Device) Add(a, b tensor.Tensor) tensor.Tensor {
	y := d.New(d.Type, a.Letters, a.Dims, a.At)
	d.addTo(y, a, b)
	return y
}

// AddInto adds b to a in place.
func (d *Device) AddInto(a, b tensor.Tensor) { d.addTo(a, a, b) }

func (d *Device) addTo(y, a, b tensor.Tensor) {
	if a.Letters != b.Letters || a.At != b.At {
		d.failf("add", "%s + %s", d.Describe(a), d.Describe(b))
	}
	d.sizes("add", a.Letters, a, b)
	d.run(Call{Op: "add", Args: d.args(y, a, b), Flops: int64(a.Elems())}, func() { d.leaf.Add(y, a, b) })
}
