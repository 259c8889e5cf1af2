package rl

import (
	"context"
	"fmt"
	"time"

	"heddle/rl/tasks"
)

// teacher writes demonstrations, never the same batch twice.
type teacher struct {
	problem Problem
	demo    tasks.Demonstrator
	cfg     Supervise
	seed    uint64
}

func newTeacher(c *Config, p Problem, seed uint64) (*teacher, error) {
	demo, ok := p.Task.(tasks.Demonstrator)
	if !ok {
		return nil, fmt.Errorf("rl: task %s has no demonstrations to learn from first; hint: start from a model, --init", p.Task.Name())
	}
	return &teacher{p, demo, c.Supervise, seed}, nil
}

// batch is the demonstrations of a step: prompts of all levels, none of them held out.
func (t *teacher) batch(step int) ([]row, error) {
	rows := make([]row, t.cfg.Batch)
	for i := range rows {
		index := uint64(step*t.cfg.Batch + i)
		p := t.problem.Task.Prompt(tasks.Draw{Seed: t.seed + 1, Index: index, Level: int(index) % t.problem.Task.Levels()})
		text := t.demo.Demonstrate(p, t.cfg.Errors, tasks.Random(t.seed, index, "demonstration"))
		ids, err := t.problem.Codec.Prompt(p.Text)
		if err != nil {
			return nil, err
		}
		answer, err := t.problem.Codec.Encode(text)
		if err != nil {
			return nil, err
		}
		from := len(ids)
		rows[i] = row{append(append(ids, answer...), t.problem.Codec.End()), from}
	}
	return rows, nil
}

// rate is the learning rate of a step: it rises over Warmup, then stays, so that supervision can go on for any time.
func (s Supervise) rate(step int) float64 {
	return s.LR * min(1, float64(step+1)/float64(max(1, s.Warmup)))
}

// Event is something that an experiment tells its subscribers.
type Event struct {
	Seed  int           `json:"seed"` // number of the repetition, from 1
	Phase Phase         `json:"phase"`
	Step  int           `json:"step"`
	Of    int           `json:"of"` // steps of the phase; 0: until a time is over
	Took  time.Duration `json:"took"`
	For   time.Duration `json:"for,omitempty"` // the time that a phase lasts, where that is given

	Loss      *float64    `json:"loss,omitempty"`
	Success   *float64    `json:"success,omitempty"` // held out
	Reinforce *StepReport `json:"reinforce,omitempty"`
}

// Phase is a part of a repetition.
type Phase string

const (
	Supervising  Phase = "supervise"
	Reinforcing  Phase = "reinforce"
	SupervisMore Phase = "supervise more"
)

// span is how long a phase lasts: steps, or a time.
type span struct {
	phase Phase
	first int // number of its first step in the teacher's count
	steps int
	time  time.Duration
}

// teach takes supervised steps and returns how many.
func (e *repetition) teach(ctx context.Context, l *Learner, s span) (n int, err error) {
	start := time.Now()
	for ; s.time > 0 && time.Since(start) < s.time || s.time == 0 && n < s.steps; n++ {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		rows, err := e.teacher.batch(s.first + n)
		if err != nil {
			return n, err
		}
		loss, _, err := l.Supervise(rows, e.cfg.Supervise.rate(s.first+n))
		if err != nil {
			return n, err
		}
		v := Event{Phase: s.phase, Step: n + 1, Of: s.steps, Took: time.Since(start), For: s.time, Loss: &loss}
		if each := e.cfg.Supervise.EvalEach; each > 0 && (n+1)%each == 0 && n+1 < s.steps {
			if v.Success, err = e.success(ctx, l.Weights); err != nil {
				return n, err
			}
		}
		e.tell(v)
	}
	return n, nil
}
