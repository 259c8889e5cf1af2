package train

import (
	"fmt"

	"heddle/compute"
)

// TooLarge says that a machine has not the memory that a program was planned to take. Nothing was allocated.
type TooLarge struct {
	Err error // the machine's
	Of  compute.Category
	Max int    // bytes of that category on the rank that has most of it, when that rank's memory was fullest
	Fit string // what would fit, as overrides; "": nothing that was tried
}

func (e *TooLarge) Error() string {
	hint := "no accumulation or recomputation fits; a shorter seq, a smaller model or more cards may"
	if e.Fit != "" {
		hint = e.Fit + " fits"
	}
	return fmt.Sprintf("train: %v; most of it is %s, %.1f GiB; hint: %s", e.Err, e.Of, float64(e.Max)/(1<<30), hint)
}

func (e *TooLarge) Unwrap() error { return e.Err }

// fits plans a run and takes its memory for a moment. full tells that the machine said no.
func (j *Job) fits() (memory []compute.Memory, full, err error) {
	f, err := j.Fleet(j.Scheme.Mesh.Size())
	if err != nil {
		return nil, nil, err
	}
	memory = make([]compute.Memory, j.Scheme.Mesh.Size())
	on := Machine{Type: j.Config.dtype(), Dry: true, seat: func(rank int) (Seat, error) { return Seat{Leaf: f.Plan(rank)}, nil }}
	err = Ranks(j.Scheme.Mesh, on, func(r *Rank) error {
		err := j.plan(r)
		memory[r.Index] = r.Dev.Memory()
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	full = f.Start()
	return memory, full, f.End()
}

// Fits tells whether the job's fleet has the memory for it; a *TooLarge says what is in the way and which change of accumulation or recomputation, tried in rising
// cost of time, fits.
func (j *Job) Fits() error {
	if j.Fleet == nil {
		return nil
	}
	memory, full, err := j.fits()
	if err != nil || full == nil {
		return err
	}
	e := &TooLarge{Err: full}
	for _, m := range memory {
		for c, n := range m.AtPeak {
			if n > e.Max {
				e.Of, e.Max = compute.Category(c), n
			}
		}
	}
	for _, try := range j.smaller() {
		k := *j
		k.Config = try.config
		if _, full, err := k.fits(); err == nil && full == nil {
			e.Fit = try.name
			break
		}
	}
	return e
}

// change is a variation of a configuration.
type change struct {
	name   string
	config Config
}

// smaller are variations that take less memory: more micro-batches, then whole layers computed again.
func (j *Job) smaller() (all []change) {
	for _, full := range []bool{false, true} {
		c := j.Config
		if full {
			c.Recompute.Mode, c.Recompute.Every = "full", 1
		}
		for n := c.Accumulate; n <= c.Batch; n *= 2 {
			if c.Accumulate = n; n == j.Config.Accumulate && !full || c.Batch%n != 0 {
				continue
			}
			if _, err := c.Check(); err != nil {
				continue
			}
			name := fmt.Sprintf("accumulate=%d", n)
			if full {
				name += " recompute.mode=full"
			}
			all = append(all, change{name, c})
		}
	}
	return all
}
