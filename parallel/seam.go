package parallel

import (
	"heddle/comm"
	"heddle/mesh"
	"heddle/tensor"
)

// Residual is the seam where a sub-block meets the residual stream. Enter takes the normed stream into the sub-block, Exit
// takes the sub-block's partial sums back; each has its gradient beside it. The gradient of an Enter is started, not awaited:
// weight gradients fit in between.
type Residual interface {
	// Stream is the place of the residual stream [b,s,h] on the tp axes, Weight the place of its norms' weights.
	Stream() mesh.Place
	Weight() mesh.Place

	Enter(g *comm.Group, site string, x tensor.Tensor) tensor.Tensor
	EnterGrad(g *comm.Group, site string, dh tensor.Tensor) *comm.Handle
	Exit(g *comm.Group, site string, y tensor.Tensor) tensor.Tensor
	ExitGrad(g *comm.Group, site string, dy tensor.Tensor) tensor.Tensor
}

// Attend is the seam around attention. ToHeads makes whole sequences of some heads from some tokens of all heads, ToTokens
// the reverse; each is the other's gradient.
type Attend interface {
	ToHeads(g *comm.Group, site string, ts ...tensor.Tensor) []tensor.Tensor
	ToTokens(g *comm.Group, site string, ts ...tensor.Tensor) []tensor.Tensor
}

// single is the residual seam without tensor parallelism: nothing to do.
type single struct{}

func (single) Stream() mesh.Place { return mesh.R }
func (single) Weight() mesh.Place { return mesh.R }

func (single) Enter(_ *comm.Group, _ string, x tensor.Tensor) tensor.Tensor { return x }
func (single) EnterGrad(_ *comm.Group, _ string, dh tensor.Tensor) *comm.Handle {
	return comm.Done(dh)
}
func (single) Exit(_ *comm.Group, _ string, y tensor.Tensor) tensor.Tensor      { return y }
func (single) ExitGrad(_ *comm.Group, _ string, dy tensor.Tensor) tensor.Tensor { return dy }

// local is the attention seam of ranks that hold whole sequences.
type local struct{}

func (local) ToHeads(_ *comm.Group, _ string, ts ...tensor.Tensor) []tensor.Tensor  { return ts }
func (local) ToTokens(_ *comm.Group, _ string, ts ...tensor.Tensor) []tensor.Tensor { return ts }
