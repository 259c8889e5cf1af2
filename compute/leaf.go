package compute

import (
	"math"

	"heddle/tensor"
)

// Leaf is what a machine must supply: memory and arithmetic. Shapes and places have been checked; a leaf sees only local
// sizes. Where the comment gives a loop, that loop is the definition.
type Leaf interface {
	Alloc(bytes int) tensor.Mem
	Free(m tensor.Mem, bytes int)

	// Gemm: C[m,n] (+)= Σ_k op(A)[m,k]·op(B)[k,n].
	Gemm(g Gemm, c, a, b tensor.Tensor)
	// Add: y[i] = a[i] + b[i]; y may be a.
	Add(y, a, b tensor.Tensor)
	// Norm: r = 1/√(mean(x²)+eps) a row, y = x·r·w; rows are the last dim. A y or rstd without data (Skip) is not wanted.
	Norm(y, rstd, x, w tensor.Tensor, eps float64)
	// NormAgain: y = x·rstd·w, from a kept rstd.
	NormAgain(y, x, rstd, w tensor.Tensor)
	// NormBack: dx = r·w·dy − x·r³·mean_h(dy·w·x) and dw += Σ_rows dy·x·r.
	NormBack(dx, dw, dy, x, rstd, w tensor.Tensor)
	// NormBackAdd: NormBack, with around added to dx.
	NormBackAdd(dx, dw, dy, x, rstd, w, around tensor.Tensor)
	// Center: y = x − mean(x) a row; rows are the last dim.
	Center(y, x tensor.Tensor)
	// AddBias: x[r,i] += b[i] for every row r of b's size; BiasBack: db[i] += Σ_r dy[r,i].
	AddBias(x, b tensor.Tensor)
	BiasBack(db, dy tensor.Tensor)
	// Rope turns the pairs (j, j+D/2) of each head by pos·r.Frequency(j, D), forwards or back; x is [B, S, heads…, D], pos [S]
	// or [B, S], whole numbers from 0.
	Rope(y, x, pos tensor.Tensor, r Rope)
	// NormRope: Norm, then Rope of its y; NormRopeAgain: NormAgain, then Rope; NormRopeBack: Rope of dy the other way, then NormBack.
	NormRope(y, rstd, x, w, pos tensor.Tensor, eps float64, r Rope)
	NormRopeAgain(y, x, rstd, w, pos tensor.Tensor, r Rope)
	NormRopeBack(dx, dw, dy, x, rstd, w, pos tensor.Tensor, r Rope)
	// SwiGLU: y = silu(gate)·up.
	SwiGLU(y, gate, up tensor.Tensor)
	SwiGLUBack(dgate, dup, dy, gate, up tensor.Tensor)
	// GELU: y = x·σ(2√(2/π)·(x + 0.044715·x³)), which is GPT-2's tanh form; GELUBack: dx = dy·GELU'(x).
	GELU(y, x tensor.Tensor)
	GELUBack(dx, dy, x tensor.Tensor)
	// Attention: q, o [B, S, G, R, D], k, v [B, S, G, D], lse [B, S, G, R] natural log. With pos [S] it is causal by pos; with
	// pos [B, S] token i of a sequence sees tokens i−pos[b,i] … i.
	Attention(o, lse, q, k, v, pos tensor.Tensor)
	// Delta: delta[b,s,g,r] = Σ_d o·do.
	Delta(delta, o, do tensor.Tensor)
	AttentionBack(g AttentionGrad, in AttentionSaved)
	// Embed: y[i] = w[ids[i]−lo] where that row is here, else 0.
	Embed(y, ids, w tensor.Tensor, lo int)
	EmbedBack(dw, dy, ids tensor.Tensor, lo int)
	// Loss, in pieces that a sharded vocabulary can reduce between; columns ≥ valid are padding.
	RowMax(m, logits tensor.Tensor, valid int)
	SumExp(sp, logits, m, labels tensor.Tensor, v Vocab)
	// SumExp: sp = (Σ exp(logit−m), logit[label]−m) a row over local columns; TokenLoss: loss = Σ mask·(log sp₀ − sp₁).
	TokenLoss(loss, sp, mask tensor.Tensor)
	LossBack(logits, m, sp tensor.Tensor, t Targets, v Vocab)

	Zero(t tensor.Tensor)
	Copy(dst, src tensor.Tensor)
	// CopyBox copies (or adds) a box of n dims from src at srcLo to dst at dstLo.
	CopyBox(dst, src tensor.Tensor, b Box)
	// SumSquares: out[0] += Σ x², in float64 within the call.
	SumSquares(out, x tensor.Tensor)
	// Sum: out[0] += Σ x.
	Sum(out, x tensor.Tensor)
	// AdamW updates w, m, v in place from g·scale[0]; where low is wanted, it is the new w in its type.
	AdamW(w, low, g, m, v, scale tensor.Tensor, a AdamW)
	// Cast: dst[i] = src[i], of another type.
	Cast(dst, src tensor.Tensor)
	// ClipScale: out = min(1, limit/(√sq + 1e-6)); limit 0 gives 1.
	ClipScale(out, sq tensor.Tensor, limit float64)

	// Upload and Download move a whole tensor from and to the host, as float64.
	Upload(dst tensor.Tensor, src []float64)
	Download(dst []float64, src tensor.Tensor)
}

// Gemm is the shape of a matrix product, sizes and strides in elements: A is [M, K] (or [K, M] if TransA), B is [K, N] (or
// [N, K] if TransB), C is [M, N], each dense.
type Gemm struct {
	M, N, K        int
	TransA, TransB bool
	Accumulate     bool
}

// Rope is a rotary embedding; Back turns the other way (its transpose).
type Rope struct {
	Theta  float64
	Llama3 Llama3
	Back   bool
}

// Llama3 stretches the slow frequencies of a rotary embedding (Llama 3.1): those that turn fewer than Low times over Original
// positions turn Factor times slower, those above High are left alone, between them a ramp. Factor 0: none is stretched.
type Llama3 struct{ Factor, Low, High, Original float64 }

// Frequency is the angle by which pair j of a head of d elements turns from one position to the next.
func (r Rope) Frequency(j, d int) float64 {
	f, l := math.Pow(r.Theta, -2*float64(j)/float64(d)), r.Llama3
	if l.Factor == 0 {
		return f
	}
	turns := l.Original * f / (2 * math.Pi)
	switch {
	case turns < l.Low:
		return f / l.Factor
	case turns > l.High:
		return f
	}
	ramp := (turns - l.Low) / (l.High - l.Low)
	return (1-ramp)*f/l.Factor + ramp*f
}

// AttentionGrad is where AttentionBack writes.
type AttentionGrad struct{ DQ, DK, DV tensor.Tensor }

// AttentionSaved is what AttentionBack reads.
type AttentionSaved struct{ DO, Delta, Q, K, V, LSE, Pos tensor.Tensor }

// Vocab says which columns of the vocabulary logits hold: Lo is the first one's id, Valid the number of local columns that
// are no padding.
type Vocab struct{ Lo, Valid int }

// Targets are the constants of the loss: labels and mask [B, S], count [] the global number of unmasked tokens. The mask may hold
// any weights: that of the policy gradient is ∂loss/∂log-probability with its sign turned, and the count is then 1.
type Targets struct{ Labels, Mask, Count tensor.Tensor }

// Box is a box of Dims inside two dense tensors; Add accumulates.
type Box struct {
	DstLo, SrcLo, Dims []int
	Add                bool
}

// AdamW are the optimiser's numbers for one tensor (Loshchilov and Hutter 2019, algorithm 2). Step counts from 1.
type AdamW struct {
	LR, Beta1, Beta2, Eps, Decay float64
	Step                         int
}
