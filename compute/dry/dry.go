// Package dry is the machine that has no memory and does no arithmetic. Under the front it yields the allocation plan and the
// call log of the machine it stands for.
package dry

import (
	"heddle/compute"
	"heddle/tensor"
)

// Leaf implements compute.Leaf.
type Leaf struct{}

var _ compute.Leaf = Leaf{}

func (Leaf) Alloc(int) tensor.Mem                                               { return tensor.Mem{} }
func (Leaf) Free(tensor.Mem, int)                                               {}
func (Leaf) Gemm(compute.Gemm, tensor.Tensor, tensor.Tensor, tensor.Tensor)     {}
func (Leaf) Add(_, _, _ tensor.Tensor)                                          {}
func (Leaf) Norm(_, _, _, _ tensor.Tensor, _ float64)                           {}
func (Leaf) NormAgain(_, _, _, _ tensor.Tensor)                                 {}
func (Leaf) NormBack(_, _, _, _, _, _ tensor.Tensor)                            {}
func (Leaf) Center(_, _ tensor.Tensor)                                          {}
func (Leaf) AddBias(_, _ tensor.Tensor)                                         {}
func (Leaf) BiasBack(_, _ tensor.Tensor)                                        {}
func (Leaf) GELU(_, _ tensor.Tensor)                                            {}
func (Leaf) GELUBack(_, _, _ tensor.Tensor)                                     {}
func (Leaf) Rope(_, _, _ tensor.Tensor, _ compute.Rope)                         {}
func (Leaf) NormBackAdd(_, _, _, _, _, _, _ tensor.Tensor)                      {}
func (Leaf) NormRope(_, _, _, _, _ tensor.Tensor, _ float64, _ compute.Rope)    {}
func (Leaf) NormRopeAgain(_, _, _, _, _ tensor.Tensor, _ compute.Rope)          {}
func (Leaf) NormRopeBack(_, _, _, _, _, _, _ tensor.Tensor, _ compute.Rope)     {}
func (Leaf) SwiGLU(_, _, _ tensor.Tensor)                                       {}
func (Leaf) SwiGLUBack(_, _, _, _, _ tensor.Tensor)                             {}
func (Leaf) Attention(_, _, _, _, _, _ tensor.Tensor)                           {}
func (Leaf) Delta(_, _, _ tensor.Tensor)                                        {}
func (Leaf) AttentionBack(compute.AttentionGrad, compute.AttentionSaved)        {}
func (Leaf) Embed(_, _, _ tensor.Tensor, _ int)                                 {}
func (Leaf) EmbedBack(_, _, _ tensor.Tensor, _ int)                             {}
func (Leaf) RowMax(_, _ tensor.Tensor, _ int)                                   {}
func (Leaf) SumExp(_, _, _, _ tensor.Tensor, _ compute.Vocab)                   {}
func (Leaf) TokenLoss(_, _, _ tensor.Tensor)                                    {}
func (Leaf) LossBack(_, _, _ tensor.Tensor, _ compute.Targets, _ compute.Vocab) {}
func (Leaf) Zero(tensor.Tensor)                                                 {}
func (Leaf) Copy(_, _ tensor.Tensor)                                            {}
func (Leaf) CopyBox(_, _ tensor.Tensor, _ compute.Box)                          {}
func (Leaf) SumSquares(_, _ tensor.Tensor)                                      {}
func (Leaf) Sum(_, _ tensor.Tensor)                                             {}
func (Leaf) Cast(_, _ tensor.Tensor)                                            {}
func (Leaf) AdamW(_, _, _, _, _, _ tensor.Tensor, _ compute.AdamW)              {}
func (Leaf) ClipScale(_, _ tensor.Tensor, _ float64)                            {}
func (Leaf) Upload(tensor.Tensor, []float64)                                    {}
func (Leaf) Download([]float64, tensor.Tensor)                                  {}
