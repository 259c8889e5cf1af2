package data

import "fmt"

// Ignore is the label of a position that is not predicted.
const Ignore = -100

// Batch is B samples of S positions, row by row.
type Batch struct {
	B, S     int
	IDs      []int32   // [B, S] inputs
	Labels   []int32   // [B, S] the token that follows, or Ignore
	Mask     []float32 // [B, S] 1 where Labels is a token, else 0
	Segments []int32   // [B, S] the document a position belongs to, counted from 0 in each row; nil unless Pack.Segments
	Tokens   int       // positions with a label: the loss of the global batch is divided by this
}

func newBatch(b, s int, segments bool) *Batch {
	n := b * s
	x := &Batch{B: b, S: s, IDs: make([]int32, n), Labels: make([]int32, n), Mask: make([]float32, n)}
	if segments {
		x.Segments = make([]int32, n)
	}
	for i := range x.Labels {
		x.Labels[i] = Ignore
	}
	return x
}

// Shard returns the rows of data rank `rank` of `size`: consecutive rows, a view of the batch. B must be divisible by size, which the
// configuration checks before anything is allocated. Tokens counts the labels of these rows only.
func (b *Batch) Shard(rank, size int) *Batch {
	if size < 1 || b.B%size != 0 || rank < 0 || rank >= size {
		panic(fmt.Sprintf("data: rank %d of %d of a batch of %d sequences", rank, size, b.B))
	}
	rows := b.B / size
	lo, hi := rank*rows*b.S, (rank+1)*rows*b.S
	x := &Batch{B: rows, S: b.S, IDs: b.IDs[lo:hi], Labels: b.Labels[lo:hi], Mask: b.Mask[lo:hi]}
	if b.Segments != nil {
		x.Segments = b.Segments[lo:hi]
	}
	for _, m := range x.Mask {
		x.Tokens += int(m)
	}
	return x
}

// set writes input id and label of position i; label Ignore leaves it unpredicted.
func (b *Batch) set(i int, id, label int32) {
	b.IDs[i], b.Labels[i] = id, label
	if label != Ignore {
		b.Mask[i] = 1
		b.Tokens++
	}
}
