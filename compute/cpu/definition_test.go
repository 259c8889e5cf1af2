package cpu

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"heddle/compute"
	"heddle/compute/cpu/blas"
	"heddle/num"
	"heddle/tensor"
)

// Every operation of the leaf against its definition in compute.Leaf, a plain loop in float64. Inputs are rounded to the leaf's
// type first, so that what differs is arithmetic. A sum of k products of numbers of size a differs from the exact one by at most
// k·a·u in the worst case (u = 2⁻²⁴, 2⁻⁵³); near allows (k+16)·a·u·4: the 4 and 16 for exp, sqrt and the few operations after.

type loops[T blas.Float] struct {
	t    *testing.T
	leaf *Leaf[T]
	seed uint64
}

func (b *loops[T]) dtype() tensor.DType {
	if unsafe.Sizeof(T(0)) == 8 {
		return tensor.F64
	}
	return tensor.F32
}

// draw is a tensor of normal numbers and the same in float64.
func (b *loops[T]) draw(letters string, dims ...int) (tensor.Tensor, []float64) {
	x := b.empty(letters, dims...)
	b.seed++
	ref := make([]float64, x.Elems())
	for i := range ref {
		v := T(num.Normal(b.seed, 3, uint64(i)))
		data[T](x)[i], ref[i] = v, float64(v)
	}
	return x, ref
}

func (b *loops[T]) empty(letters string, dims ...int) tensor.Tensor {
	x := tensor.Tensor{Letters: letters, Dims: dims, Type: b.dtype()}
	x.Mem = b.leaf.Alloc(x.Bytes())
	for i := range data[T](x) {
		data[T](x)[i] = T(math.NaN()) // what is not written shows
	}
	return x
}

func (b *loops[T]) ints(dims []int, v ...int32) tensor.Tensor {
	x := tensor.Tensor{Letters: "bs", Dims: dims, Type: tensor.I32}
	x.Mem = b.leaf.Alloc(x.Bytes())
	copy(tensor.View[int32](x), v)
	return x
}

// near compares with a reference whose elements are sums of k terms of size a.
func (b *loops[T]) near(what string, got tensor.Tensor, want []float64, k int, a float64) {
	b.t.Helper()
	u := math.Pow(2, -53)
	if b.dtype() == tensor.F32 {
		u = math.Pow(2, -24)
	}
	limit := float64(k+16) * a * u * 4
	if got.Elems() != len(want) {
		b.t.Fatalf("%s: %d elements, want %d", what, got.Elems(), len(want))
	}
	for i, g := range data[T](got) {
		if d := math.Abs(float64(g) - want[i]); !(d <= limit) {
			b.t.Fatalf("%s %s: element %d is %v, want %v: off by %.1e, at most %.1e", b.dtype(), what, i, g, want[i], d, limit)
		}
	}
}

func both(t *testing.T, f32 func(*loops[float32]), f64 func(*loops[float64])) {
	pool := blas.NewPool(2)
	defer pool.Close()
	f32(&loops[float32]{t: t, leaf: New[float32](pool)})
	f64(&loops[float64]{t: t, leaf: New[float64](pool)})
}

func TestGemmIsTheSumOfProducts(t *testing.T) { both(t, checkGemm[float32], checkGemm[float64]) }

func checkGemm[T blas.Float](b *loops[T]) {
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {64, 20, 70}} {
		m, n, k := s[0], s[1], s[2]
		for mask := range 8 {
			g := compute.Gemm{M: m, N: n, K: k, TransA: mask&1 > 0, TransB: mask&2 > 0, Accumulate: mask&4 > 0}
			x, xr := b.draw("ab", m, k)
			y, yr := b.draw("ab", k, n)
			c, cr := b.draw("ab", m, n)
			want := make([]float64, m*n)
			for i := range m {
				for j := range n {
					if g.Accumulate {
						want[i*n+j] = cr[i*n+j]
					}
					for l := range k {
						a, w := xr[i*k+l], yr[l*n+j]
						if g.TransA {
							a = xr[l*m+i]
						}
						if g.TransB {
							w = yr[j*k+l]
						}
						want[i*n+j] += a * w
					}
				}
			}
			b.leaf.Gemm(g, c, x, y)
			b.near("gemm", c, want, k, 16)
		}
	}
}

func TestNormsAreTheirDefinition(t *testing.T) { both(t, checkNorms[float32], checkNorms[float64]) }

func checkNorms[T blas.Float](b *loops[T]) {
	const eps = 1e-3
	for _, s := range [][2]int{{1, 1}, {3, 4}, {5, 33}, {2, 130}} {
		rows, h := s[0], s[1]
		x, xr := b.draw("bh", rows, h)
		w, wr := b.draw("h", h)
		dy, dr := b.draw("bh", rows, h)
		dw, dwr := b.draw("h", h)
		y, again, rstd, dx := b.empty("bh", rows, h), b.empty("bh", rows, h), b.empty("b", rows), b.empty("bh", rows, h)
		wantY, wantR, wantX := make([]float64, rows*h), make([]float64, rows), make([]float64, rows*h)
		for r := range rows {
			sq, dot := 0.0, 0.0
			for i := range h {
				sq += xr[r*h+i] * xr[r*h+i]
				dot += dr[r*h+i] * wr[i] * xr[r*h+i]
			}
			s := 1 / math.Sqrt(sq/float64(h)+eps)
			wantR[r] = s
			for i := range h {
				k := r*h + i
				wantY[k] = xr[k] * s * wr[i]
				wantX[k] = s*wr[i]*dr[k] - xr[k]*s*s*s*dot/float64(h)
				dwr[i] += dr[k] * xr[k] * s
			}
		}
		b.leaf.Norm(y, rstd, x, w, eps)
		b.near("norm", y, wantY, h, 64)
		b.near("rstd", rstd, wantR, h, 32)
		b.leaf.NormAgain(again, x, rstd, w)
		for i, v := range data[T](again) {
			if v != data[T](y)[i] {
				b.t.Fatalf("norm again: element %d is %v, was %v", i, v, data[T](y)[i])
			}
		}
		b.leaf.NormBack(dx, dw, dy, x, rstd, w)
		b.near("norm back x", dx, wantX, h, 1e3) // rstd is at most 1/√eps = 32, times numbers of 3
		b.near("norm back w", dw, dwr, rows, 128)
		b.leaf.NormBack(dx, tensor.Tensor{}, dy, x, rstd, w) // a frozen weight
		b.near("norm back x, weight frozen", dx, wantX, h, 1e3)
	}
}

func TestElementwiseOperationsAreTheirDefinition(t *testing.T) {
	both(t, checkElementwise[float32], checkElementwise[float64])
}

func checkElementwise[T blas.Float](b *loops[T]) {
	for _, n := range []int{0, 1, 7, 100} {
		g, gr := b.draw("bsf", 1, 1, n)
		u, ur := b.draw("bsf", 1, 1, n)
		dy, dr := b.draw("bsf", 1, 1, n)
		y, dg, du := b.empty("bsf", 1, 1, n), b.empty("bsf", 1, 1, n), b.empty("bsf", 1, 1, n)
		want, wantG, wantU := make([]float64, n), make([]float64, n), make([]float64, n)
		sum, sq := 1.5, 2.5
		for i := range n {
			s := 1 / (1 + math.Exp(-gr[i]))
			want[i] = gr[i] * s * ur[i]
			wantU[i] = dr[i] * gr[i] * s
			wantG[i] = dr[i] * ur[i] * s * (1 + gr[i]*(1-s))
			sum, sq = sum+gr[i], sq+gr[i]*gr[i]
		}
		b.leaf.SwiGLU(y, g, u)
		b.near("swiglu", y, want, 1, 16)
		b.leaf.SwiGLUBack(dg, du, dy, g, u)
		b.near("swiglu back gate", dg, wantG, 1, 64)
		b.near("swiglu back up", du, wantU, 1, 16)
		one := b.empty("")
		data[T](one)[0] = 1.5
		b.leaf.Sum(one, g)
		b.near("sum", one, []float64{sum}, n, 4)
		data[T](one)[0] = 2.5
		b.leaf.SumSquares(one, g)
		b.near("sum squares", one, []float64{sq}, n, 16)
		b.leaf.Add(y, g, u)
		for i := range want {
			want[i] = gr[i] + ur[i]
		}
		b.near("add", y, want, 1, 8)
		b.leaf.Add(g, g, u) // in place
		b.near("add in place", g, want, 1, 8)
	}
	for _, c := range []struct{ sq, limit, want float64 }{{4, 0, 1}, {4, 1, 1 / (2 + 1e-6)}, {4, 3, 1}, {0, 1, 1}} {
		in, out := b.empty(""), b.empty("")
		data[T](in)[0] = T(c.sq)
		b.leaf.ClipScale(out, in, c.limit)
		b.near("clip scale", out, []float64{c.want}, 1, 1)
	}
}

func TestBiasesCentresAndGELUAreTheirDefinition(t *testing.T) {
	both(t, checkBias[float32], checkBias[float64])
}

func checkBias[T blas.Float](b *loops[T]) {
	for _, s := range [][2]int{{1, 1}, {3, 4}, {5, 33}, {300, 130}} {
		rows, h := s[0], s[1]
		x, xr := b.draw("bh", rows, h)
		dy, dr := b.draw("bh", rows, h)
		w, wr := b.draw("h", h)
		dw, dwr := b.draw("h", h)
		y, dx := b.empty("bh", rows, h), b.empty("bh", rows, h)
		centred, gelu, geluBack := make([]float64, rows*h), make([]float64, rows*h), make([]float64, rows*h)
		for r := range rows {
			mean := 0.0
			for _, v := range xr[r*h : r*h+h] {
				mean += v / float64(h)
			}
			for i := range h {
				k, v := r*h+i, xr[r*h+i]
				centred[k] = v - mean
				inner := math.Sqrt(2/math.Pi) * (v + 0.044715*v*v*v)
				gelu[k] = v / 2 * (1 + math.Tanh(inner))
				slope := math.Sqrt(2/math.Pi) * (1 + 3*0.044715*v*v)
				geluBack[k] = dr[k] * ((1+math.Tanh(inner))/2 + v/2*slope/(math.Cosh(inner)*math.Cosh(inner)))
				dwr[i] += dr[k]
			}
		}
		b.leaf.Center(y, x)
		b.near("center", y, centred, h, 8)
		b.leaf.GELU(y, x)
		b.near("gelu", y, gelu, 1, 8)
		b.leaf.GELUBack(dx, dy, x)
		b.near("gelu back", dx, geluBack, 1, 16)
		b.leaf.BiasBack(dw, dy)
		b.near("bias back", dw, dwr, rows, 8)
		b.leaf.AddBias(x, w)
		for k := range xr {
			xr[k] += wr[k%h]
		}
		b.near("bias", x, xr, 1, 8)
	}
}

func TestRopeTurnsPairsAndBack(t *testing.T) { both(t, checkRope[float32], checkRope[float64]) }

func checkRope[T blas.Float](b *loops[T]) {
	const B, S, G, R, D, theta = 2, 5, 3, 2, 6, 1e4
	x, xr := b.draw("bsgrd", B, S, G, R, D)
	pos := b.empty("s", S)
	for i, p := range []T{0, 3, 1, 17, 100} { // not in order
		data[T](pos)[i] = p
	}
	want := make([]float64, len(xr))
	for i := range B * S * G * R {
		p := float64(data[T](pos)[i/(G*R)%S])
		for j := range D / 2 {
			a := p * math.Pow(theta, -2*float64(j)/D)
			u, v := xr[i*D+j], xr[i*D+j+D/2]
			want[i*D+j], want[i*D+j+D/2] = u*math.Cos(a)-v*math.Sin(a), u*math.Sin(a)+v*math.Cos(a)
		}
	}
	y, back := b.empty("bsgrd", B, S, G, R, D), b.empty("bsgrd", B, S, G, R, D)
	b.leaf.Rope(y, x, pos, compute.Rope{Theta: theta})
	b.near("rope", y, want, 2, 8)
	b.leaf.Rope(back, y, pos, compute.Rope{Theta: theta, Back: true})
	b.near("rope back", back, xr, 4, 8)
	each := b.empty("bs", B, S) // every token its own position
	for i := range B * S {
		data[T](each)[i] = data[T](pos)[i%S] + T(i/S)
	}
	b.leaf.Rope(y, x, each, compute.Rope{Theta: theta})
	row := G * R * D
	b.near("rope of the first sequence", y.As("bsgrd", []int{1, S, G, R, D}, 0), want[:S*row], 2, 8)
	for i := range S {
		data[T](pos)[i]++
	}
	b.leaf.Rope(back, x, pos, compute.Rope{Theta: theta})
	for i, v := range data[T](back)[S*row:] {
		if v != data[T](y)[S*row+i] {
			b.t.Fatalf("rope of the second sequence: element %d is %v, want %v", i, data[T](y)[S*row+i], v)
		}
	}
}

// The three parts of Llama 3.1's rule (transformers' _compute_llama3_parameters): as they were, a factor slower, between.
func TestLlama3StretchesSlowFrequencies(t *testing.T) {
	plain := compute.Rope{Theta: 5e5}
	r := compute.Rope{Theta: 5e5, Llama3: compute.Llama3{Factor: 8, Low: 1, High: 4, Original: 8192}}
	kinds := [3]int{}
	for j := range 64 {
		f, got := plain.Frequency(j, 128), r.Frequency(j, 128)
		wavelength := 2 * math.Pi / f
		smooth := (8192/wavelength - 1) / (4 - 1)
		want, kind := (1-smooth)*f/8+smooth*f, 1
		if wavelength > 8192/1 {
			want, kind = f/8, 0
		} else if wavelength < 8192/4 {
			want, kind = f, 2
		}
		kinds[kind]++
		if math.Abs(got-want) > 1e-15*want { // a few roundings of float64
			t.Errorf("pair %d: %g, want %g", j, got, want)
		}
	}
	if slices.Contains(kinds[:], 0) {
		t.Errorf("slow, between and fast pairs: %v, want some of each", kinds)
	}
}

func TestAttentionIsItsDefinition(t *testing.T) {
	both(t, checkAttention[float32], checkAttention[float64])
}

// checkAttention checks output, log-sum-exp and gradients against loops over the whole score matrix.
func checkAttention[T blas.Float](b *loops[T]) {
	const B, S, G, R, D = 2, 9, 2, 3, 4
	q, qr := b.draw("bsgrd", B, S, G, R, D)
	k, kr := b.draw("bsgd", B, S, G, D)
	v, vr := b.draw("bsgd", B, S, G, D)
	do, dor := b.draw("bsgrd", B, S, G, R, D)
	pos := b.empty("s", S)
	for i := range S {
		data[T](pos)[i] = T(i)
	}
	o, lse, delta := b.empty("bsgrd", B, S, G, R, D), b.empty("bsgr", B, S, G, R), b.empty("bsgr", B, S, G, R)
	wo, wl, wd := make([]float64, len(qr)), make([]float64, B*S*G*R), make([]float64, B*S*G*R)
	dq, dk, dv := make([]float64, len(qr)), make([]float64, len(kr)), make([]float64, len(vr))
	scale := 1 / math.Sqrt(D)
	for x := range B * S * G * R {
		i, g, head := x/(G*R)%S, x/R%G, x/(S*G*R)
		key := func(j int) int { return ((head*S+j)*G + g) * D }
		p, sum := make([]float64, i+1), 0.0
		for j := range p {
			for d := range D {
				p[j] += scale * qr[x*D+d] * kr[key(j)+d]
			}
			sum += math.Exp(p[j])
		}
		wl[x] = math.Log(sum)
		for j := range p {
			p[j] = math.Exp(p[j] - wl[x])
			for d := range D {
				wo[x*D+d] += p[j] * vr[key(j)+d]
			}
		}
		for d := range D {
			wd[x] += wo[x*D+d] * dor[x*D+d]
		}
		for j := range p {
			dp := -wd[x]
			for d := range D {
				dp += dor[x*D+d] * vr[key(j)+d]
				dv[key(j)+d] += p[j] * dor[x*D+d]
			}
			for d := range D {
				dq[x*D+d] += p[j] * dp * scale * kr[key(j)+d]
				dk[key(j)+d] += p[j] * dp * scale * qr[x*D+d]
			}
		}
	}
	b.leaf.Attention(o, lse, q, k, v, pos)
	b.near("attention", o, wo, S, 16)
	b.near("lse", lse, wl, S, 16)
	b.leaf.Delta(delta, o, do)
	b.near("delta", delta, wd, S*D, 16)
	g := compute.AttentionGrad{DQ: b.empty("bsgrd", B, S, G, R, D), DK: b.empty("bsgd", B, S, G, D), DV: b.empty("bsgd", B, S, G, D)}
	b.leaf.AttentionBack(g, compute.AttentionSaved{DO: do, Delta: delta, Q: q, K: k, V: v, LSE: lse, Pos: pos})
	b.near("dq", g.DQ, dq, S*D, 64)
	b.near("dk", g.DK, dk, S*R*D, 64)
	b.near("dv", g.DV, dv, S*R, 64)
}

func TestLossPiecesOverTwoHalvesOfTheVocabulary(t *testing.T) {
	both(t, checkLoss[float32], checkLoss[float64])
}

// checkLoss cuts a vocabulary of 7 in 4 and 3 with a padded column, as two ranks would, and puts the pieces together.
func checkLoss[T blas.Float](b *loops[T]) {
	const rows, V = 6, 7
	_, logits := b.draw("bsv", 1, rows, V)
	labels, mask := b.ints([]int{1, rows}, 0, 6, 3, 4, -100, 5), b.empty("bs", 1, rows)
	copy(data[T](mask), []T{1, -2.5, 0, 0.25, 0, 1}) // a mask may weigh
	count := b.empty("")
	data[T](count)[0] = 4
	wantLoss, wantGrad := 0.0, make([]float64, rows*V)
	for i, on := range data[T](mask) {
		sum := 0.0
		for _, x := range logits[i*V : i*V+V] {
			sum += math.Exp(x)
		}
		if on == 0 {
			continue
		}
		label := int(tensor.View[int32](labels)[i])
		wantLoss += float64(on) * (math.Log(sum) - logits[i*V+label])
		for j := range V {
			wantGrad[i*V+j] = float64(on) * math.Exp(logits[i*V+j]) / sum / 4
		}
		wantGrad[i*V+label] -= float64(on) / 4
	}
	halves := []compute.Vocab{{Lo: 0, Valid: 4}, {Lo: 4, Valid: 3}}
	var part, m, sp [2]tensor.Tensor
	for h, v := range halves {
		part[h], m[h], sp[h] = b.empty("bsv", 1, rows, 4), b.empty("bs", 1, rows), b.empty("bsx", 1, rows, 2)
		for i := range rows {
			for j := range 4 {
				data[T](part[h])[i*4+j] = 1e30 // padding, never to be read
				if j < v.Valid {
					data[T](part[h])[i*4+j] = T(logits[i*V+v.Lo+j])
				}
			}
		}
		b.leaf.RowMax(m[h], part[h], v.Valid)
	}
	for i := range rows {
		data[T](m[0])[i] = max(data[T](m[0])[i], data[T](m[1])[i])
	}
	for h, v := range halves {
		b.leaf.SumExp(sp[h], part[h], m[0], labels, v)
	}
	b.leaf.Add(sp[0], sp[0], sp[1])
	out := b.empty("")
	b.leaf.TokenLoss(out, sp[0], mask)
	b.near("loss", out, []float64{wantLoss}, V, 16)
	got, ref := make([]float64, 0, rows*V), make([]float64, 0, rows*V)
	for h, v := range halves {
		b.leaf.LossBack(part[h], m[0], sp[0], compute.Targets{Labels: labels, Mask: mask, Count: count}, v)
		for i := range rows {
			for j := range 4 {
				g := float64(data[T](part[h])[i*4+j])
				if j >= v.Valid {
					if g != 0 {
						b.t.Fatalf("padded logit has gradient %v", g)
					}
					continue
				}
				got, ref = append(got, g), append(ref, wantGrad[i*V+v.Lo+j])
			}
		}
	}
	flat := b.empty("x", len(got))
	for i, g := range got {
		data[T](flat)[i] = T(g)
	}
	b.near("loss back", flat, ref, V, 1)
}

func TestEmbeddingOfPartOfTheVocabulary(t *testing.T) {
	both(t, checkEmbed[float32], checkEmbed[float64])
}

func checkEmbed[T blas.Float](b *loops[T]) {
	const rows, h, lo, n = 5, 3, 4, 3 // rows 4, 5, 6 are here
	w, wr := b.draw("vh", n, h)
	dy, dr := b.draw("bsh", 1, rows, h)
	dw, dwr := b.draw("vh", n, h)
	ids := b.ints([]int{1, rows}, 4, 0, 6, 4, 7)
	y, want := b.empty("bsh", 1, rows, h), make([]float64, rows*h)
	for i, id := range tensor.View[int32](ids) {
		if r := int(id) - lo; r >= 0 && r < n {
			for j := range h {
				want[i*h+j] = wr[r*h+j]
				dwr[r*h+j] += dr[i*h+j]
			}
		}
	}
	b.leaf.Embed(y, ids, w, lo)
	b.near("embed", y, want, 0, 0)
	b.leaf.EmbedBack(dw, dy, ids, lo)
	b.near("embed back", dw, dwr, rows, 8)
}

func TestCopyBoxCopiesAndAddsEveryBox(t *testing.T) {
	both(t, checkBoxes[float32], checkBoxes[float64])
}

func checkBoxes[T blas.Float](b *loops[T]) {
	for trial := range 60 {
		pick := func(k uint64, n int) int { return int(num.Uniform(uint64(trial), k, 0) * float64(n)) }
		rank := 1 + pick(0, 4)
		var dd, sd []int
		box := compute.Box{Add: trial%2 == 1}
		for i := range rank {
			n := pick(uint64(10+i), 4)
			lo, hi := pick(uint64(20+i), 2), pick(uint64(30+i), 2)
			slo, shi := pick(uint64(40+i), 2), pick(uint64(50+i), 2)
			dd, sd = append(dd, lo+n+hi), append(sd, slo+n+shi)
			box.DstLo, box.SrcLo, box.Dims = append(box.DstLo, lo), append(box.SrcLo, slo), append(box.Dims, n)
		}
		dst, want := b.draw("abcd"[:rank], dd...)
		src, sr := b.draw("abcd"[:rank], sd...)
		total := 1
		for _, n := range box.Dims {
			total *= n
		}
		for e := range total {
			at, d, s, step := e, 0, 0, make([]int, rank)
			for i := rank - 1; i >= 0; i-- {
				step[i], at = at%box.Dims[i], at/box.Dims[i]
			}
			for i := range rank {
				d, s = d*dd[i]+box.DstLo[i]+step[i], s*sd[i]+box.SrcLo[i]+step[i]
			}
			if box.Add {
				want[d] = float64(T(want[d] + sr[s]))
			} else {
				want[d] = sr[s]
			}
		}
		if total > 0 {
			b.leaf.CopyBox(dst, src, box)
		}
		b.near("copy box", dst, want, 0, 1)
	}
}

func TestAdamWIsAlgorithm2OfItsPaper(t *testing.T) { both(t, checkAdamw[float32], checkAdamw[float64]) }

func checkAdamw[T blas.Float](b *loops[T]) {
	const n = 50
	w, wr := b.draw("x", n)
	m, v, scale := b.empty("x", n), b.empty("x", n), b.empty("")
	b.leaf.Zero(m)
	b.leaf.Zero(v)
	data[T](scale)[0] = 0.5
	mr, vr := make([]float64, n), make([]float64, n)
	a := compute.AdamW{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1}
	for a.Step = 1; a.Step <= 4; a.Step++ {
		g, gr := b.draw("x", n)
		for i := range gr {
			g := gr[i] * 0.5
			mr[i] = a.Beta1*mr[i] + (1-a.Beta1)*g
			vr[i] = a.Beta2*vr[i] + (1-a.Beta2)*g*g
			mh, vh := mr[i]/(1-math.Pow(a.Beta1, float64(a.Step))), vr[i]/(1-math.Pow(a.Beta2, float64(a.Step)))
			wr[i] -= a.LR * (mh/(math.Sqrt(vh)+a.Eps) + a.Decay*wr[i])
		}
		b.leaf.AdamW(w, tensor.Tensor{}, g, m, v, scale, a)
	}
	b.near("adamw weight", w, wr, 4, 4)
	b.near("adamw m", m, mr, 4, 4)
	b.near("adamw v", v, vr, 4, 4)
}

func TestUploadAndDownloadAreInverse(t *testing.T) {
	both(t, checkTransfers[float32], checkTransfers[float64])
}

func checkTransfers[T blas.Float](b *loops[T]) {
	x, ref := b.draw("x", 33)
	out := make([]float64, 33)
	b.leaf.Download(out, x)
	y := b.empty("x", 33)
	b.leaf.Upload(y, out)
	b.near("upload", y, ref, 0, 0)
	ids := b.ints([]int{1, 3})
	b.leaf.Upload(ids, []float64{5, -100, 151935})
	got := make([]float64, 3)
	b.leaf.Download(got, ids)
	if got[0] != 5 || got[1] != -100 || got[2] != 151935 {
		b.t.Errorf("ids come back as %v", got)
	}
}
