package train

import (
	"hash/fnv"
	"math"

	"heddle/compute"
	"heddle/data"
)

// Trial is what a few steps leave, on every rank.
type Trial struct {
	Losses, Norms []float64 // of the steps
	Digests       []uint64  // by rank: of the weights and moments it holds, bit for bit
	Memory        []compute.Memory
}

// Try takes a step on each batch, with fresh weights and without files, evaluation or talk. ready, if not nil, is called on each
// rank before its first step.
func Try(c Config, on Machine, batches []*data.Batch, ready func(*Rank)) (*Trial, error) {
	s, err := c.Check()
	if err != nil {
		return nil, &Invalid{err}
	}
	n := s.Mesh.Size()
	out := &Trial{Losses: make([]float64, len(batches)), Norms: make([]float64, len(batches)), Digests: make([]uint64, n), Memory: make([]compute.Memory, n)}
	on.Type = c.dtype()
	err = Ranks(s.Mesh, on, func(r *Rank) error {
		t, err := newTrainer(r, c, s)
		if err != nil {
			return err
		}
		if ready != nil {
			ready(r)
		}
		for i, b := range batches {
			loss, norm, err := t.step(b, c.Accumulate, c.Schedule.Peak)
			if err != nil {
				return err
			}
			if r.Index == 0 {
				out.Losses[i], out.Norms[i] = loss, norm
			}
		}
		out.Memory[r.Index] = r.Dev.Memory()
		if !on.Dry {
			out.Digests[r.Index] = t.digest()
		}
		return nil
	})
	return out, err
}

// digest is a hash of the bits of everything that rests on this rank.
func (t *trainer) digest() uint64 {
	h := fnv.New64a()
	var word [8]byte
	for _, p := range t.model.Shards.Pieces() {
		for _, k := range t.kinds(p) {
			for _, v := range t.Dev.Download(k.lies) {
				bits := math.Float64bits(v)
				for i := range word {
					word[i] = byte(bits >> (8 * i))
				}
				h.Write(word[:])
			}
		}
	}
	return h.Sum64()
}
