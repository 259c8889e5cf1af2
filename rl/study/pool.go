package study

import (
	"context"
	"fmt"

	"heddle/rl"
	"heddle/rl/tasks"
)

// pool is several policies as one world: a prompt belongs to one of them.
type pool struct {
	policies []*rl.Policy
	of       map[string]int          // policy of a prompt
	prompt   map[string]tasks.Prompt // as that policy knows it
}

// Pool makes several taught policies, of different seeds, one subject: more prompts, and an answer that is not one model's. Hidden states of different models do
// not compare, so that there is no probe.
func Pool(policies ...*rl.Policy) Subject {
	if len(policies) == 1 {
		return Of(policies[0])
	}
	w := &pool{policies, map[string]int{}, map[string]tasks.Prompt{}}
	first := policies[0].Problem.Task
	s := Subject{World: w, Levels: first.Levels(), Task: fmt.Sprintf("%s, %d policies", first.Name(), len(policies))}
	for i := 0; ; i++ { // a prompt of each in turn, so that both halves have all policies
		more := false
		for k, p := range policies {
			if i >= len(p.HeldOut) {
				continue
			}
			q := p.HeldOut[i]
			q.ID = fmt.Sprintf("%d/%s", k, q.ID)
			w.of[q.ID], w.prompt[q.ID] = k, p.HeldOut[i]
			s.Prompts, more = append(s.Prompts, q), true
		}
		if !more {
			break
		}
	}
	for _, p := range policies {
		s.Success += p.Success / float64(len(policies))
	}
	s.Ways = func() ([]*rl.Ways, error) { return w.ways(s.Prompts) }
	s.Later = func(ctx context.Context, steps int) (World, error) {
		for _, p := range policies {
			if err := p.Reinforce(ctx, steps); err != nil {
				return nil, err
			}
		}
		return w, nil
	}
	return s
}

// Draw hands each start to its policy. Groups come back in the order of the starts.
func (w *pool) Draw(ctx context.Context, d rl.Draw) (*rl.Drawn, error) {
	out := &rl.Drawn{Groups: make([]*rl.Group, len(d.Starts))}
	for k, p := range w.policies {
		part := d
		part.Starts = nil
		var at []int
		for i, s := range d.Starts {
			if w.of[s.Prompt.ID] == k {
				s.Prompt = w.prompt[s.Prompt.ID]
				part.Starts, at = append(part.Starts, s), append(at, i)
			}
		}
		if len(at) == 0 {
			continue
		}
		drawn, err := p.Draw(ctx, part)
		if err != nil {
			return nil, err
		}
		if len(drawn.Groups) != len(at) {
			return nil, fmt.Errorf("study: policy %d has no room for %d prompts", k, drawn.TooLong)
		}
		for j, g := range drawn.Groups {
			g.Prompt = d.Starts[at[j]].Prompt
			out.Groups[at[j]] = g
		}
		out.Bill.Sampled += drawn.Bill.Sampled
	}
	return out, nil
}

func (w *pool) ways(prompts []tasks.Prompt) ([]*rl.Ways, error) {
	out := make([]*rl.Ways, len(prompts))
	for k, p := range w.policies {
		var mine []tasks.Prompt
		var at []int
		for i, q := range prompts {
			if w.of[q.ID] == k {
				mine, at = append(mine, w.prompt[q.ID]), append(at, i)
			}
		}
		ways, err := p.Ways(mine)
		if err != nil {
			return nil, err
		}
		for j, x := range ways {
			out[at[j]] = x
		}
	}
	return out, nil
}
