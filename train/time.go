package train

import (
	"fmt"
	"time"

	"heddle/compute"
	"heddle/num"
)

// Timing is what steps on random tokens took.
type Timing struct {
	Steps  []time.Duration // each with its wait for the loss
	Ready  time.Duration   // from the call until the weights are there
	Start  time.Duration   // to the end of the first step
	Losses []float64
	Memory []compute.Memory // by rank
}

// Time takes steps on random tokens with fresh weights, the same batch each time, and measures them on rank 0. watch, if not nil, is called before each step.
func Time(c Config, on Machine, steps int, watch func(step int)) (*Timing, error) {
	s, err := c.Check()
	if err != nil {
		return nil, &Invalid{err}
	}
	b := c.blank()
	for i := range b.IDs {
		b.IDs[i], b.Mask[i] = int32(num.Uniform(c.Seed, 7, uint64(i))*float64(c.Model.Vocab)), 1
	}
	for i := range b.IDs {
		b.Labels[i] = b.IDs[min(i+1, len(b.IDs)-1)]
	}
	out := &Timing{Steps: make([]time.Duration, steps), Losses: make([]float64, steps), Memory: make([]compute.Memory, s.Mesh.Size())}
	on.Type = c.dtype()
	began := time.Now()
	err = on.Planned(s.Mesh.Size(), func(on Machine) error {
		return Ranks(s.Mesh, on, func(r *Rank) error {
			t, err := newTrainer(r, c, s)
			if err != nil {
				return err
			}
			if r.Index == 0 {
				out.Ready = time.Since(began)
			}
			for i := range steps {
				if on.Dry && i > 0 {
					break
				}
				if watch != nil && r.Index == 0 && !on.Dry {
					watch(i)
				}
				start := time.Now()
				loss, _, err := t.step(b, c.Accumulate, c.Schedule.Peak)
				if err != nil {
					return fmt.Errorf("step %d: %w", i+1, err)
				}
				if r.Index == 0 {
					out.Steps[i], out.Losses[i] = time.Since(start), loss
					if i == 0 {
						out.Start = time.Since(began)
					}
				}
			}
			out.Memory[r.Index] = r.Dev.Memory()
			return nil
		})
	})
	return out, err
}
