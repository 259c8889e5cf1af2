package main

import (
	"math"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The polynomials are Chebyshev fits (mpmath.chebyfit at 40 digits); each error
// is of the whole function, in units of the last place.
var (
	// (eʳ − 1 − r) ÷ r² for |r| ≤ ln2/2: 0.1 ulp.
	expFit = []float64{0.5, 0.166665766661, 0.041666554213, 0.00836323288368, 0.00139262508315}
	// (tanh(x)/x − 1) ÷ x² in x², for |x| < 0.625: 0.01 ulp.
	tanhFit = []float64{-0.333333331712, 0.133333034204, -0.053959227262, 0.0217686558038, -0.00834308521883, 0.00229177045626}
	// (ln(1+f) − f + f²/2) ÷ f³ for √½ ≤ 1+f < √2: 0.1 ulp.
	logFit = []float64{0.333333311743, -0.249999969254, 0.200007172131, -0.16667807133, 0.142490072406, -0.124255233599, 0.11685784721, -0.114812120585, 0.0697251863388}
)

// ln2 in two parts: the first has nine bits, so that its product with an
// exponent is exact.
const (
	ln2High = 0.693359375
	ln2Low  = math.Ln2 - ln2High
)

// shifter added to a float of size below 2²² leaves its rounded value in the low
// bits.
const shifter = 3 << 22

// exp is eˣ: x = n·ln2 + r, eʳ by polynomial, times 2ⁿ. Below −104 the result is
// 0 either way; a NaN passes that clamp, being its second operand. Above 89 only
// n is held: r grows, and the result is Inf either way.
func (g gen) exp(x reg.VecVirtual) reg.VecVirtual {
	c := g.load(g.constant(-104), nil)
	g.VMAXPS(x, c, c)
	held := g.vec()
	g.VMINPS(g.constant(89), c, held)
	t := g.load(g.constant(shifter), nil)
	g.VFMADD231PS(g.constant(math.Log2E), held, t)
	n := g.sub(t, g.constant(shifter))
	r := g.fnma(n, g.constant(ln2High), c)
	g.VFNMADD231PS(g.constant(ln2Low), n, r)
	p := g.polynomial(r, expFit...)
	r2 := g.mul(r, r)
	g.VFMADD213PS(r, r2, p)
	y := g.add(p, g.constant(1))
	if g.zmm {
		g.VSCALEFPS(n, y, y)
		return y
	}
	// 2ⁿ as 2^(n/2) twice: n reaches 128 and −150, beyond one exponent.
	whole, half := g.vec(), g.vec()
	g.VPSUBD(g.constant(shifter), t, whole)
	g.VPSRAD(Imm(1), whole, half)
	g.VPSUBD(half, whole, whole)
	for _, e := range []reg.VecVirtual{half, whole} {
		g.VPADDD(g.pattern(127), e, e)
		g.VPSLLD(Imm(23), e, e)
		g.VMULPS(e, y, y)
	}
	return y
}

const (
	allButSign = 0x7fffffff
	onlySign   = 0x80000000
)

// tanh is an odd polynomial below 0.625, else 1 − 2 ÷ (e^(2|x|) + 1).
func (g gen) tanh(x reg.VecVirtual) reg.VecVirtual {
	a := g.and(x, g.pattern(allButSign))
	e := g.exp(g.add(a, a))
	two := g.load(g.constant(2), nil)
	big := g.sub(g.load(g.constant(1), nil), g.div(two, g.add(e, g.constant(1))))
	z := g.mul(a, a)
	small := g.fma(g.mul(a, z), g.polynomial(z, tanhFit...), a)
	y := g.choose(g.compare(lessThan, a, g.constant(0.625)), small, big)
	return g.or(y, g.and(x, g.pattern(onlySign)))
}

// sigmoid is q = 1 ÷ (1+e) for x ≥ 0 and e ÷ (1+e) below, with e = exp(−|x|).
// What the roundings of d = 1+e and of q lost is added back: with c = e − (d−1),
// (top − q·d − q·c) ÷ d, where 1/d is the larger of q and 1−q.
func (g gen) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	e := g.exp(g.or(x, g.pattern(onlySign)))
	one := g.load(g.constant(1), nil)
	top := g.choose(g.compare(lessThan, x, g.constant(0)), e, one)
	d := g.add(e, one)
	q := g.div(top, d)
	c := g.sub(e, g.sub(d, one))
	lost := g.fnma(q, c, g.fnma(q, d, top))
	inverse := g.sub(one, q)
	g.VMAXPS(q, inverse, inverse)
	return g.fma(lost, inverse, q)
}

// log is e·ln2 + ln(m) with x = 2ᵉ·m, √½ ≤ m < √2.
func (g gen) log(x reg.VecVirtual) reg.VecVirtual {
	tiny := g.compare(lessThan, x, g.constant(0x1p-126))
	up := g.choose(tiny, g.mul(x, g.constant(0x1p23)), x)
	zero := g.vec()
	g.zero(zero)
	lift := g.choose(tiny, g.load(g.constant(-23), nil), zero)

	e, m := g.vec(), g.vec()
	g.VPSUBD(g.constant(math.Sqrt2/2), up, e)
	g.VPSRAD(Imm(23), e, e)
	g.VPSLLD(Imm(23), e, m)
	g.VPSUBD(m, up, m)
	g.VCVTDQ2PS(e, e)
	e = g.add(e, lift)

	f := g.sub(m, g.constant(1))
	f2 := g.mul(f, f)
	y := g.mul(g.mul(g.polynomial(f, logFit...), f), f2)
	g.VFMADD231PS(g.constant(ln2Low), e, y)
	g.VFNMADD231PS(g.constant(0.5), f2, y)
	y = g.add(y, f)
	g.VFMADD231PS(g.constant(ln2High), e, y)

	y = g.choose(g.compare(lessThan, x, g.constant(0)), g.load(g.constant(math.NaN()), nil), y)
	y = g.choose(g.compare(equal, x, g.constant(0)), g.load(g.constant(math.Inf(-1)), nil), y)
	return g.choose(g.compare(notLessThan, x, g.constant(math.Inf(1))), x, y)
}
