package parallel

import (
	"fmt"

	"heddle/compute"
	"heddle/mesh"
	"heddle/tensor"
)

// Settle takes every gradient that is still partial to rest, once a step after the last micro-batch: first one all-reduce of
// the whole buffer over the axes on which every parameter is partial (dp; cp), then one for each further set of axes (tp, for
// norms and copied heads), with the parameters it concerns packed side by side. It serves data parallelism, q/k-norm, Ulysses
// and copied key/value heads alike.
func (s *Shards) Settle() {
	pieces := s.Pieces()
	common := s.common(pieces)
	if common != 0 {
		s.all = s.reduceWhole(common)
	}
	for _, set := range s.sets(pieces, common) {
		s.settlePacked(pieces, set, common)
	}
	s.settled = true
}

// partial is the set of axes on which a row's gradient is still partial after the scatter over fsdp.
func (s *Shards) partial(p *Piece) mesh.Set {
	return p.Row.Use.Dual().Axes(mesh.P) &^ s.fsdp
}

func (s *Shards) common(pieces []Piece) mesh.Set {
	set := s.dev.Mesh.Every() &^ s.fsdp
	for i := range s.Table { // of the table, not of this rank's pieces: every rank must make the same calls
		if s.Table[i].Train {
			set &= s.partial(&Piece{Row: &s.Table[i]})
		}
	}
	return set
}

// sets lists the axis sets that remain after common, in the order of the table.
func (s *Shards) sets(pieces []Piece, common mesh.Set) (out []mesh.Set) {
	seen := map[mesh.Set]bool{0: true}
	for i := range s.Table {
		set := s.partial(&Piece{Row: &s.Table[i]}) &^ common
		if s.Table[i].Train && !seen[set] {
			seen[set] = true
			out = append(out, set)
		}
	}
	return out
}

func (s *Shards) reduceWhole(common mesh.Set) tensor.Tensor {
	at := s.all.At
	flat := s.grp.AllReduceInPlace("settle", as(s.all, at.With(common, mesh.P)), common, mesh.I)
	s.rest(flat, common)
	return as(flat, at)
}

// rest checks that a reduction has really made t whole on the axes.
func (s *Shards) rest(t tensor.Tensor, axes mesh.Set) {
	for a := range axes.All() {
		if t.At[a] != mesh.I {
			s.dev.Fail("settle", fmt.Errorf("settle: gradients reach the optimiser at %s on axis %s", t.At[a], s.dev.Mesh.Axes()[a].Name))
		}
	}
}

func (s *Shards) settlePacked(pieces []Piece, set, common mesh.Set) {
	var mine []Piece
	n := 0
	for _, p := range pieces {
		if p.Row.Train && s.partial(&p)&^common == set {
			mine = append(mine, p)
			n += p.Hi - p.Lo
		}
	}
	if n == 0 { // the same on every rank of the set: they hold the same part of every row
		return
	}
	sc := s.dev.Open()
	packed := s.dev.NewIn(compute.Comm, s.dev.Type.Wide(), "x", []int{n}, s.dev.Mesh.Uniform(mesh.R).With(set, mesh.P))
	at := 0
	for _, p := range mine {
		s.dev.Copy(packed.As("x", []int{p.Hi - p.Lo}, at), p.Grad)
		at += p.Hi - p.Lo
	}
	packed = s.grp.AllReduceUneven("settle packed", packed, set, mesh.I)
	s.rest(packed, set)
	at = 0
	for _, p := range mine {
		s.dev.Copy(p.Grad, packed.As("x", []int{p.Hi - p.Lo}, at))
		at += p.Hi - p.Lo
	}
	s.dev.Close(sc)
}

// Counts tells whether this rank counts the i-th of its Pieces, of all ranks that hold a copy of it. Copies take turns by piece, so
// that work is shared: the norm's sum, a checkpoint's bytes. The list of pieces is the same on every rank that holds the copies;
// slices over fsdp are no copies.
func (s *Shards) Counts(i int, p *Piece) bool {
	m := s.dev.Mesh
	var copies mesh.Set
	for a := range (m.Every() &^ s.fsdp).All() {
		if !p.Row.Use[a].Sharded() {
			copies |= 1 << a
		}
	}
	return m.Index(s.dev.Rank, copies) == i%m.Count(copies)
}

// SquaredNorm is the squared norm of the whole gradient, the same on every rank: each element is counted by one of the ranks
// that hold a copy of it. bad are added on this rank: what is no number there makes the norm none everywhere.
func (s *Shards) SquaredNorm(bad ...tensor.Tensor) tensor.Tensor {
	if !s.settled {
		s.dev.Fail("norm", fmt.Errorf("norm: gradients are not settled"))
	}
	m := s.dev.Mesh
	sq := s.dev.New(s.dev.Type.Wide(), "", nil, m.Uniform(mesh.P))
	s.dev.Zero(sq)
	mine := func(i int, p *Piece) (int, bool) { return 0, p.Row.Train && s.Counts(i, p) }
	for _, r := range s.Runs(s.Pieces(), mine) {
		s.dev.AddSumSquares(sq, r.Grad)
	}
	for _, t := range bad {
		s.dev.AddSumSquares(sq, t)
	}
	return s.grp.AllReduce("gradient norm", sq, m.Every(), mesh.I)
}
