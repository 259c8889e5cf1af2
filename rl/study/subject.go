package study

import (
	"context"

	"heddle/rl"
)

// Of makes a taught policy the subject of a study: its held-out prompts, its exact values where its task can list successes, and, later, what it becomes by
// reinforcement.
func Of(p *rl.Policy) Subject {
	return Subject{
		World: p, Prompts: p.HeldOut, Levels: p.Problem.Task.Levels(), Hidden: p.Model.Hidden, Success: p.Success, Task: p.Problem.Task.Name(),
		Ways: func() ([]*rl.Ways, error) { return p.Ways(p.HeldOut) },
		Later: func(ctx context.Context, steps int) (World, error) {
			return p, p.Reinforce(ctx, steps)
		},
	}
}
