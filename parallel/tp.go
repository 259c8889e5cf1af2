package parallel

import (
	"heddle/comm"
	"heddle/mesh"
	"heddle/tensor"
)

// tensorParallel is Megatron-LM's tensor parallelism (Shoeybi et al. 2019): the residual stream is whole and alike on every
// rank, the pair f (identity, all-reduce) stands at Enter and g (all-reduce, identity) at Exit.
//
//	         forward                 backward
//	Enter    I → R  nothing          P → I  all-reduce [B,S,H]
//	Exit     P → I  all-reduce       I → R  nothing
type tensorParallel struct{ axes mesh.Set }

func (tensorParallel) Stream() mesh.Place { return mesh.I }
func (tensorParallel) Weight() mesh.Place { return mesh.I }

// Enter sees the stream [B,S,H] as replicated.
func (t tensorParallel) Enter(g *comm.Group, site string, x tensor.Tensor) tensor.Tensor {
	return g.Replicate(site, x, t.axes)
}

// EnterGrad sums the ranks' parts of the gradient.
func (t tensorParallel) EnterGrad(g *comm.Group, site string, dh tensor.Tensor) *comm.Handle {
	return g.StartAllReduce(site+" grad", dh, t.axes, mesh.I)
}

// Exit sums the ranks' parts of the output.
func (t tensorParallel) Exit(g *comm.Group, site string, y tensor.Tensor) tensor.Tensor {
	return g.AllReduce(site, y, t.axes, mesh.I)
}

// ExitGrad sees the gradient as replicated.
func (t tensorParallel) ExitGrad(g *comm.Group, site string, dy tensor.Tensor) tensor.Tensor {
	return g.Replicate(site+" grad", dy, t.axes)
}
