package train

import (
	"errors"
	"fmt"
	"math"

	"heddle/data"
	"heddle/model"
	"heddle/optim"
	"heddle/parallel"
)

// trainer is one rank's model and optimiser.
type trainer struct {
	*Rank
	scheme *parallel.Scheme
	model  *model.Model
	opt    *optim.AdamW
}

// Metrics are what one step reports; the same on every rank.
type Metrics struct {
	Step     int     // from 1
	Tokens   int64   // seen since the start, unmasked
	Loss     float64 // nats a token, mean over the global batch
	GradNorm float64 // before clipping
	LR       float64
}

// step runs one global batch in micro-batches: gradients, then the optimiser.
func (t *trainer) step(b *data.Batch, micro int, lr float64) (loss, norm float64, err error) {
	d := t.Dev
	sc := d.Open()
	defer d.Close(sc)
	d.At("forward", -1)
	batches := make([]model.Batch, micro)
	for i := range batches {
		p := b.Shard(i, micro)
		batches[i] = t.model.Put(model.Tokens{B: p.B, S: p.S, IDs: p.IDs, Labels: p.Labels, Mask: p.Mask, Segments: p.Segments})
	}
	t.model.Shards.ZeroGrads()
	count := t.model.Count(batches...)
	sum := t.model.Gradients(batches[0], count)
	for _, b := range batches[1:] {
		d.AddInto(sum, t.model.Gradients(b, count))
	}
	mine := d.ReadPart(sum, 1)
	total, labels := t.model.Total(sum), d.Read(count, 1)
	if labels == 0 {
		return 0, 0, errors.New("train: no token of the batch has a label; hint: mask fewer of them")
	}
	loss = d.Read(total, 1) / labels
	norm = t.opt.Step(lr)
	if !finite(loss) || !finite(norm) {
		return loss, norm, t.blame(mine)
	}
	return loss, norm, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// blame finds what made the loss or the norm not finite on this rank. A rank that finds nothing waits for the one that does.
func (t *trainer) blame(loss float64) error {
	for _, p := range t.model.Shards.Pieces() {
		if n := firstBad(t.Dev.Download(p.Grad)); n >= 0 && p.Row.Train {
			what := "the loss of this rank is finite"
			if !finite(loss) {
				what = fmt.Sprintf("the loss of this rank is %g", loss)
			}
			return fmt.Errorf("train: the gradient of %s is not finite (element %d of this rank's part); %s", p.Row.Name, n, what)
		}
	}
	t.Grp.Barrier("wait for the rank at fault", t.Dev.Mesh.Every())
	return fmt.Errorf("train: loss or gradient norm is not finite")
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
		sc := t.Dev.Open()
		batch := t.model.NewBatch(b.B, b.S, b.IDs, b.Labels, b.Mask)
		total += t.Dev.Read(t.model.Total(t.model.Loss(batch)), 0)
		t.Dev.Close(sc)
	}
	return total
}
