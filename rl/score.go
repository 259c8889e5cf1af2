package rl

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"heddle/rl/tasks"
)

// Faults counts what verifiers failed at.
type Faults struct {
	Unscorable int    `json:"unscorable"`
	First      string `json:"first,omitempty"` // error of the run
}

// score has every rollout judged by workers at once. A verifier that fails, panics or answers NaN makes its rollout unscorable; the run goes on.
func score(ctx context.Context, t tasks.Task, c tasks.Codec, groups []*Group, workers int) (Faults, error) {
	type job struct {
		g *Group
		r *Rollout
	}
	jobs := make(chan job)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for j := range jobs {
				judge(ctx, t, c, j.g, j.r)
			}
		})
	}
	for _, g := range groups {
		for _, r := range g.Rollouts {
			jobs <- job{g, r}
		}
	}
	close(jobs)
	wg.Wait()
	var f Faults
	for _, g := range groups {
		for _, r := range g.Rollouts {
			if !r.Scored {
				if f.Unscorable++; f.First == "" {
					f.First = r.Fault
				}
			}
		}
	}
	return f, ctx.Err()
}

// judge asks the verifier and finds the token at which the rollout was lost.
func judge(ctx context.Context, t tasks.Task, c tasks.Codec, g *Group, r *Rollout) {
	defer func() {
		if p := recover(); p != nil {
			r.Scored, r.Fault = false, fmt.Sprintf("rl: the verifier of %s panicked: %v", t.Name(), p)
		}
	}()
	ids := slices.Clone(g.Prefix)
	for _, x := range r.Tokens {
		ids = append(ids, x.ID)
	}
	var err error
	if r.Text, err = c.Decode(ids); err != nil {
		r.Fault = err.Error()
		return
	}
	v, err := t.Verify(ctx, g.Prompt, r.Text)
	switch {
	case err != nil:
		r.Fault = err.Error()
		return
	case !finite(v.Reward):
		r.Fault = fmt.Sprintf("rl: the verifier of %s gave the reward %g", t.Name(), v.Reward)
		return
	}
	r.Scored, r.Reward, r.Lost = true, v.Reward, tasks.Kept
	if r.Truncated() && t.Alphabet() != nil && v.Lost == tasks.Kept { // the end symbol is part of an answer
		r.Reward, v.Lost = 0, len(r.Text)
	}
	if v.Lost >= 0 {
		r.Lost = lostToken(c, ids, v.Lost)
	}
}

// lostToken is the token that holds byte at of the text, or ended it there.
func lostToken(c tasks.Codec, ids []int32, at int) int {
	for i := range ids {
		if text, err := c.Decode(ids[:i+1]); err != nil || len(text) > at {
			return i
		}
	}
	return max(0, len(ids)-1)
}
