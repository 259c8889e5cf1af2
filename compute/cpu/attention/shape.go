package attention

import (
	"fmt"
	"math"

	"heddle/compute/cpu/blas"
)

// Float is an element type of this package.
type Float = blas.Float

// Shape is B sequences of Sq queries and Sk keys, G key/value heads, R query
// heads to each of them (A = G·R; query head a reads key head a/R), D elements
// a head.
type Shape struct {
	B, Sq, Sk, G, R, D int

	// QPos are the positions of the queries, [Sq] for all sequences or [B, Sq];
	// KPos those of the keys, [Sk]. Both rise within a sequence; nil means
	// First, First+1, … for queries and 0, 1, 2, … for keys. A query attends to
	// the keys at its own position and before.
	QPos, KPos []int
	First      int

	// From are the first keys that queries attend to, [B, Sq], rising within a
	// sequence: documents that follow each other see only themselves. nil: key 0.
	From []int

	QRow, KRow     int // elements from one token to the next in q, dq and in k, v, dk, dv; 0 means A·D and G·D
	QBatch, KBatch int // elements from one sequence to the next; 0 means Sq·QRow and Sk·KRow

	Scale float64 // of the scores; 0 means 1/√D
}

// Tensors are what Forward reads and writes.
type Tensors[T Float] struct {
	Q    []T // [B, Sq, A, D], strides QBatch, QRow
	K, V []T // [B, Sk, G, D], strides KBatch, KRow
	O    []T // [B, Sq, A, D], dense; 0 where a query has no key
	LSE  []T // [B, Sq, A], ln Σ exp(score); −Inf where a query has no key
}

// Grads are what Backward reads and writes beside Tensors.
type Grads[T Float] struct {
	DO     []T // [B, Sq, A, D], dense
	Delta  []T // [B, Sq, A], Σ_d do·o; nil: computed from O
	DQ     []T // like Q, overwritten
	DK, DV []T // like K, overwritten
}

// Tiles of scores. keyTile is a multiple of every kernel's panel width. Few
// queries a tile waste little above the diagonal; backward multiplies over
// queries too and wants more of them.
const (
	forwardRows  = 36
	backwardRows = 48
	keyTile      = 64
)

// Error is a misuse of this package by its caller: shapes that do not fit.
type Error struct{ What string }

func (e *Error) Error() string { return "attention: " + e.What }

func fail(format string, args ...any) { panic(&Error{fmt.Sprintf(format, args...)}) }

// fill puts the defaults in.
func (s *Shape) fill() {
	if s.QRow == 0 {
		s.QRow = s.G * s.R * s.D
	}
	if s.KRow == 0 {
		s.KRow = s.G * s.D
	}
	if s.QBatch == 0 {
		s.QBatch = s.Sq * s.QRow
	}
	if s.KBatch == 0 {
		s.KBatch = s.Sk * s.KRow
	}
	if s.Scale == 0 {
		s.Scale = 1 / math.Sqrt(float64(s.D))
	}
}

func (s *Shape) check() {
	if s.B < 0 || s.Sq < 0 || s.Sk < 0 || s.G < 1 || s.R < 1 || s.D < 1 {
		fail("shape B %d, Sq %d, Sk %d, G %d, R %d, D %d, want sizes of 0 or more and G, R, D of 1 or more", s.B, s.Sq, s.Sk, s.G, s.R, s.D)
	}
	if s.QPos != nil && len(s.QPos) != s.Sq && len(s.QPos) != s.B*s.Sq {
		fail("%d query positions, want %d or %d", len(s.QPos), s.Sq, s.B*s.Sq)
	}
	if s.KPos != nil && len(s.KPos) != s.Sk {
		fail("%d key positions, want %d", len(s.KPos), s.Sk)
	}
	if s.From != nil && len(s.From) != s.B*s.Sq {
		fail("%d first keys, want %d", len(s.From), s.B*s.Sq)
	}
	for i, from := range s.From {
		if from < 0 || i%s.Sq != 0 && from < s.From[i-1] {
			fail("first key %d at %d, want them rising from 0", from, i)
		}
	}
	for i := 1; i < len(s.KPos); i++ {
		if s.KPos[i] <= s.KPos[i-1] {
			fail("key positions %d, %d at %d, want them rising", s.KPos[i-1], s.KPos[i], i)
		}
	}
	for i := 1; i < len(s.QPos); i++ {
		if i%s.Sq != 0 && s.QPos[i] < s.QPos[i-1] {
			fail("query positions %d, %d at %d, want them rising", s.QPos[i-1], s.QPos[i], i)
		}
	}
}

// need is the length of a strided [batch, tokens, width] tensor.
func need(batch, tokens, width, batchStride, rowStride int) int {
	if batch == 0 || tokens == 0 {
		return 0
	}
	return (batch-1)*batchStride + (tokens-1)*rowStride + width
}

func checkLen(name string, got, want int) {
	if got < want {
		fail("%s has %d elements, want %d", name, got, want)
	}
}

func checkTensors[T Float](s *Shape, t *Tensors[T]) {
	width := s.G * s.R * s.D
	checkLen("q", len(t.Q), need(s.B, s.Sq, width, s.QBatch, s.QRow))
	checkLen("k", len(t.K), need(s.B, s.Sk, s.G*s.D, s.KBatch, s.KRow))
	checkLen("v", len(t.V), need(s.B, s.Sk, s.G*s.D, s.KBatch, s.KRow))
	checkLen("lse", len(t.LSE), s.B*s.Sq*s.G*s.R)
}

func checkOutput[T Float](s *Shape, o []T) {
	checkLen("o", len(o), s.B*s.Sq*s.G*s.R*s.D)
}

// visible is how many keys, from key 0, query i of sequence b attends to. from
// is the answer for an earlier query, where the search starts.
func (s *Shape) visible(b, i, from int) int {
	at := s.First + i
	if s.QPos != nil {
		if len(s.QPos) > s.Sq {
			i += b * s.Sq
		}
		at = s.QPos[i]
	}
	if s.KPos == nil {
		return max(0, min(s.Sk, at+1))
	}
	for from < s.Sk && s.KPos[from] <= at {
		from++
	}
	return from
}

// span are the keys [lo, hi) that query i of sequence b attends to. hi is also
// the answer's for an earlier query, where the search starts.
func (s *Shape) span(b, i, hi int) span {
	lo := 0
	if s.From != nil {
		lo = s.From[b*s.Sq+i]
	}
	return span{lo, s.visible(b, i, hi)}
}

type span struct{ lo, hi int }

// in are the span's places within the cols keys from j.
func (k span) in(j, cols int) (lo, hi int) {
	lo = max(0, min(cols, k.lo-j))
	return lo, max(lo, min(cols, k.hi-j))
}

// firstTile is where the tiles that a query of the span reads begin.
func (k span) firstTile() int { return k.lo / keyTile * keyTile }
