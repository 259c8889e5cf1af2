package kernel

import (
	"math"

	"heddle/num"
)

// Epilogue is what becomes of an element of a product between the accumulator and its rounding, each part on its own or with others, in this order:
//
//	x = alpha · acc · rows[m] · columns[n] + bias[n]
//	x = activation(x)
//	d = x + beta · c[m, n]
//
// The zero value changes nothing. finish.go is the same on the device; Apply is the reference.
type Epilogue struct {
	Alpha    bool // a factor
	Rows     bool // a factor of each row, float32
	Columns  bool // a factor of each column, float32
	Bias     bool // a summand of each column, float32
	Act      Activation
	Keep     bool // also stores x from before the activation, as a matrix of its own
	Residual bool // adds beta · C, of D's type and shape
	AMax     bool // also finds the largest |d|, before rounding
}

// Activation is the function in an epilogue. The backward forms multiply the product, a gradient, by the derivative at C, what Keep stored.
type Activation uint8

const (
	Linear  Activation = iota
	GELU               // ½x(1 + tanh(√(2/π)(x + 0.044715x³)))
	SwiGLU             // of a product of 2F columns, gate before up: silu(gate) · up, F columns
	DGELU              // x · gelu′(c)
	DSwiGLU            // of a product of F columns: the gradients of gate and up, 2F columns; C has 2F columns too
)

// ReadsC tells whether the epilogue needs a matrix C.
func (e Epilogue) ReadsC() bool { return e.Residual || e.Act == DGELU || e.Act == DSwiGLU }

// Columns of D for a product of n columns.
func (a Activation) Columns(n int) int {
	switch a {
	case SwiGLU:
		return n / 2
	case DSwiGLU:
		return 2 * n
	}
	return n
}

// Words are the parts by name, with how each is set: what a configuration's name says of its epilogue.
func (e *Epilogue) Words() []Word {
	flag := func(name string, b *bool) Word { return Word{name, *b, func() { *b = true }} }
	act := func(name string, a Activation) Word { return Word{name, e.Act == a, func() { e.Act = a }} }
	return []Word{
		flag("alpha", &e.Alpha), flag("rows", &e.Rows), flag("columns", &e.Columns), flag("bias", &e.Bias),
		act("gelu", GELU), act("swiglu", SwiGLU), act("dgelu", DGELU), act("dswiglu", DSwiGLU), flag("keep", &e.Keep), flag("residual", &e.Residual), flag("amax", &e.AMax),
	}
}

// Word is an option that is a word of a configuration's name.
type Word struct {
	Name string
	On   bool
	Set  func()
}

// Operands of an epilogue on the host. Tanh is the function that activations are made of; nil is the exact one, a bent one shows what an error in it does.
type Operands struct {
	Alpha, Beta         float64
	Rows, Columns, Bias []float64 // [M], [N], [N]
	C                   []float64 // [M, N], or [M, 2N] for DSwiGLU
	Tanh                func(float64) float64
}

// Apply is the reference: D, what Keep stores, and the largest |d|, of a product [m, n].
func (e Epilogue) Apply(product []float64, m, n int, in Operands) (d, kept []float64, largest float64) {
	if in.Tanh == nil {
		in.Tanh = math.Tanh
	}
	kept = make([]float64, m*n)
	for i, x := range product {
		kept[i] = e.affine(x, i/n, i%n, in)
	}
	wide := e.Act.Columns(n)
	d = make([]float64, m*wide)
	for i := range d {
		row, col := i/wide, i%wide
		switch e.Act {
		case Linear:
			d[i] = kept[i]
		case GELU:
			d[i] = in.gelu(kept[i])
		case SwiGLU:
			d[i] = in.silu(kept[row*n+col]) * kept[row*n+wide+col]
		case DGELU:
			d[i] = kept[i] * in.geluSlope(in.C[i])
		case DSwiGLU:
			gate, up, x := in.C[row*wide+col%n], in.C[row*wide+n+col%n], kept[row*n+col%n]
			if d[i] = x * in.silu(gate); col < n {
				d[i] = x * up * in.siluSlope(gate)
			}
		}
		if e.Residual {
			d[i] += in.Beta * in.C[i]
		}
		largest = max(largest, math.Abs(d[i]))
	}
	return d, kept, largest
}

func (e Epilogue) affine(x float64, row, col int, in Operands) float64 {
	if e.Alpha {
		x *= in.Alpha
	}
	if e.Rows {
		x *= in.Rows[row]
	}
	if e.Columns {
		x *= in.Columns[col]
	}
	if e.Bias {
		x += in.Bias[col]
	}
	return x
}

// The tanh form of GELU (Hendrycks, Gimpel: Gaussian Error Linear Units, section 2).
const (
	geluScale = 0.7978845608028654 // √(2/π)
	geluCube  = 0.044715
)

func (in Operands) gelu(x float64) float64 {
	return 0.5 * x * (1 + in.Tanh(geluScale*(x+geluCube*x*x*x)))
}

func (in Operands) geluSlope(x float64) float64 {
	t := in.Tanh(geluScale * (x + geluCube*x*x*x))
	return 0.5*(1+t) + 0.5*x*(1-t*t)*geluScale*(1+3*geluCube*x*x)
}

func (in Operands) sigmoid(x float64) float64 { return 0.5 + 0.5*in.Tanh(x/2) }
func (in Operands) silu(x float64) float64    { return x * in.sigmoid(x) }

func (in Operands) siluSlope(x float64) float64 {
	s := in.sigmoid(x)
	return s * (1 + x*(1-s))
}

// Vectors is how many of an epilogue's operands are vectors, which it keeps in shared memory.
func (e Epilogue) Vectors() int {
	n := 0
	for _, b := range []bool{e.Rows, e.Columns, e.Bias} {
		if b {
			n++
		}
	}
	return n
}

// Wide is how many chunks of a tile are stored together.
func (e Epilogue) Wide() int {
	wide := 1
	if e.Act == DSwiGLU {
		wide = 2
	}
	if e.Keep {
		wide++
		if e.Act == SwiGLU {
			wide++
		}
	}
	return wide
}

// Refuse says why an epilogue is none, or "".
func (e Epilogue) Refuse(out num.DType, columns int) string {
	switch {
	case e.Act > DSwiGLU:
		return "an activation that does not exist"
	case e.Residual && (e.Act == DGELU || e.Act == DSwiGLU):
		return "a residual beside a backward activation, which reads C itself"
	case e.Keep && e.Act != GELU && e.Act != SwiGLU:
		return "keeping what is before an activation without one"
	case e.Keep && e.Residual:
		return "a residual beside a kept matrix: their chunks would share buffers"
	case e.ReadsC() && out != num.BF16 && out != num.F32:
		return "a matrix C that is not bf16 or f32"
	case e.Act == SwiGLU && columns/2*out.Size()%chunkRow != 0:
		return "SwiGLU halves that are no whole chunks"
	}
	return ""
}
