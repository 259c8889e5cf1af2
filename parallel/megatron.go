package parallel

import (
	"heddle/comm"
	"heddle/compute"
	"heddle/mesh"
	"heddle/tensor"
)

// megatron is Megatron-LM's sequence parallelism (Korthikanti et al. 2022): between sub-blocks each tp rank holds S/P tokens
// of the residual stream, inside them all tokens and 1/P of the width. The gathered input is not kept: Backward enters again.
//
//	         forward                       backward
//	Enter    S(s) → R  all-gather          P → S(s)  reduce-scatter
//	Exit     P → S(s)  reduce-scatter      S(s) → R  all-gather
type megatron struct{ axes mesh.Set }

func (megatron) Stream() mesh.Place { return mesh.S('s') }
func (megatron) Weight() mesh.Place { return mesh.R }

// Enter gathers [B,S/P,H] to [B,S,H].
func (m megatron) Enter(g *comm.Group, site string, x tensor.Tensor) tensor.Tensor {
	return g.AllGather(site, x, m.axes, 's')
}

// EnterGrad sums the ranks' parts and leaves each its tokens.
func (m megatron) EnterGrad(g *comm.Group, site string, dh tensor.Tensor) *comm.Handle {
	return g.StartReduceScatter(site+" grad", dh, m.axes, 's')
}

// Exit sums the ranks' parts of [B,S,H] and leaves each its [B,S/P,H].
func (m megatron) Exit(g *comm.Group, site string, y tensor.Tensor) tensor.Tensor {
	return g.ReduceScatter(site, y, m.axes, 's')
}

// ExitGrad gathers the gradient of every token.
func (m megatron) ExitGrad(g *comm.Group, site string, dy tensor.Tensor) tensor.Tensor {
	return g.StartAllGather(site+" grad", dy, m.axes, 's', compute.Scratch).Wait()
}
