package rl

import (
	"slices"

	"heddle/rl/tasks"
)

// Ways are all completions that succeed at a prompt, with their end, and the log-probabilities that a policy gives their tokens.
type Ways struct {
	IDs      [][]int32
	LogProbs [][]float64
}

// mostWays is how many successes of a prompt are enumerated; a prompt with more has no exact value.
const mostWays = 4096

// Ways enumerates the successes of prompts and scores them under the policy; nil where the task cannot list them, or has too many.
func (p *Policy) Ways(prompts []tasks.Prompt) ([]*Ways, error) {
	all, ok := p.Problem.Task.(tasks.Enumerator)
	if !ok {
		return make([]*Ways, len(prompts)), nil
	}
	l, err := NewLearner(LearnerConfig{Model: p.Model, Parallel: p.cfg.Parallel, Optim: p.cfg.Supervise.Optim, Rows: 256}, From(p.Weights), 0)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	out := make([]*Ways, len(prompts))
	var rows []row
	for i, q := range prompts {
		texts := all.Successes(q, "")
		if len(texts) == 0 || len(texts) > mostWays {
			continue
		}
		ids, err := p.Problem.Codec.Prompt(q.Text)
		if err != nil {
			return nil, err
		}
		out[i] = &Ways{}
		for _, text := range texts {
			way, err := p.Problem.Codec.Encode(text)
			if err != nil {
				return nil, err
			}
			way = append(way, p.Problem.Codec.End())
			out[i].IDs = append(out[i].IDs, way)
			rows = append(rows, row{append(slices.Clone(ids), way...), len(ids)})
		}
	}
	lp, err := l.LogProbs(rows)
	if err != nil {
		return nil, err
	}
	for _, w := range out {
		if w != nil {
			w.LogProbs, lp = lp[:len(w.IDs)], lp[len(w.IDs):]
		}
	}
	return out, nil
}
