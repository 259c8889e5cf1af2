package train

import (
	"errors"
	"fmt"
	"math"

	"heddle/data"
	"heddle/model"
	"heddle/optim"
	"heddle/tensor"
)

// trainer is one rank's model and optimiser.
type trainer struct {
	*Rank
	model *model.Model
	opt   *optim.AdamW
}

// Metrics are what one step reports; the same on every rank.
type Metrics struct {
	Step     int     // from 1
	Tokens   int64   // seen since the start, unmasked
	Loss     float64 // nats a token, mean over the global batch
	GradNorm float64 // before clipping
	LR       float64
}

// step runs one global batch in micro-batches: gradients, then the optimiser. A loss or norm that is no number is an error that
// names the rank it comes from, and leaves the weights as they were.
func (t *trainer) step(b *data.Batch, micro int, lr float64) (loss, norm float64, err error) {
	sc := t.Dev.Open()
	loss, norm, err = t.whole(b, micro, lr)
	t.Dev.Close(sc) // not deferred: a fault leaves inner scopes open, and is what must be reported
	return loss, norm, err
}

func (t *trainer) whole(b *data.Batch, micro int, lr float64) (loss, norm float64, err error) {
	d := t.Dev
	d.At("forward", -1)
	batches := make([]model.Batch, micro)
	for i := range batches {
		p := b.Shard(i, micro)
		batches[i] = t.model.Put(model.Tokens{B: p.B, S: p.S, IDs: p.IDs, Labels: p.Labels, Mask: p.Mask, Segments: p.Segments})
	}
	total, count := t.gradients(batches)
	labels := d.Read(count, 1)
	if labels == 0 {
		return 0, 0, errors.New("train: no token of the batch has a label; hint: mask fewer of them")
	}
	var bad []tensor.Tensor
	if loss = d.Read(total, 1) / labels; !finite(loss) { // perhaps on this rank alone
		bad = append(bad, total, count)
	}
	if norm = t.opt.Step(lr, bad...); !finite(norm) {
		return loss, norm, t.again(batches)
	}
	return loss, norm, nil
}

// gradients adds up those of all micro-batches. It returns the summed loss and the number of labels.
func (t *trainer) gradients(batches []model.Batch) (total, count tensor.Tensor) {
	t.model.Shards.ZeroGrads()
	count = t.model.Count(batches...)
	sum := t.model.Gradients(batches[0], count)
	for _, b := range batches[1:] {
		t.Dev.AddInto(sum, t.model.Gradients(b, count))
	}
	return t.model.Total(sum), count
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// again runs a step that gave no number once more, every rank looking at what it sends: the first rank to meet a NaN of its own
// names it. Every rank comes here, because the norm is a sum over all. Where the second run is sound, the first was not wrong by
// the program's doing.
func (t *trainer) again(batches []model.Batch) error {
	t.Grp.Guard = true
	defer func() { t.Grp.Guard = false }()
	total, count := t.gradients(batches)
	for _, p := range t.model.Shards.Pieces() { // before Settle adds other ranks' to it
		if n := firstBad(t.Dev.Download(p.Grad)); n >= 0 && p.Row.Train {
			return fmt.Errorf("train: the gradient of %s is not finite (element %d of this rank's part)", p.Row.Name, n)
		}
	}
	t.Dev.At("optimizer", -1)
	t.model.Shards.Settle()
	loss := t.Dev.Read(total, 1) / t.Dev.Read(count, 1)
	var bad []tensor.Tensor
	if !finite(loss) {
		bad = append(bad, total, count)
	}
	if norm := math.Sqrt(t.Dev.Read(t.model.Shards.SquaredNorm(bad...), 1)); !finite(norm) {
		return fmt.Errorf("train: loss %g, gradient norm %g", loss, norm)
	}
	return &Passing{}
}

// Passing is the error of a step that gave no number, but did when it was run again on the same weights and batch.
type Passing struct{}

func (*Passing) Error() string {
	return "train: the loss or the gradient's norm was no number, but is one when the same step is run again: a passing fault of the machine (memory, heat), not of the run; hint: --resume"
}

func firstBad(x []float64) int {
	for i, v := range x {
		if !finite(v) {
			return i
		}
	}
	return -1
}

// evaluate is the summed loss in nats over batches that every rank sees alike.
func (t *trainer) evaluate(e *data.Eval) float64 {
	total := 0.0
	for b := range e.Batches() {
		total += t.loss(b)
	}
	return total
}

// loss is that of one batch.
func (t *trainer) loss(b *data.Batch) float64 {
	sc := t.Dev.Open()
	batch := t.model.NewBatch(b.B, b.S, b.IDs, b.Labels, b.Mask)
	nats := t.Dev.Read(t.model.Total(t.model.Loss(batch)), 0)
	t.Dev.Close(sc)
	return nats
}
