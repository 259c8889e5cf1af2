package parallel

import (
	"heddle/comm"
	"heddle/tensor"
)

// ulysses is DeepSpeed-Ulysses (Jacobs et al. 2023): each cp rank holds S/P tokens with all heads, and whole weights; only
// attention changes the layout, by one packed all-to-all each way. Key and value heads fewer than ranks are copied, and their
// gradients' copies summed on the way back.
//
//	           forward                          backward
//	ToHeads    q, k, v: S(s) → S(g), S(r)       dq, dk, dv: ToTokens
//	ToTokens   o: S(g), S(r) → S(s)             do, delta: ToHeads
type ulysses struct{ heads comm.Heads }

// ToHeads makes [B,S,A/P,D] from [B,S/P,A,D].
func (u ulysses) ToHeads(g *comm.Group, site string, ts ...tensor.Tensor) []tensor.Tensor {
	return g.ToHeads(site, u.heads, ts...)
}

// ToTokens makes [B,S/P,A,D] from [B,S,A/P,D].
func (u ulysses) ToTokens(g *comm.Group, site string, ts ...tensor.Tensor) []tensor.Tensor {
	return g.ToTokens(site, u.heads, ts...)
}
