package rl

import (
	"heddle/rl/grpo"
	"heddle/rl/tasks"
	"heddle/sample"
)

// Rollout is one completion and what its verifier said.
type Rollout struct {
	Stream uint64         `json:"stream"` // of the random numbers
	Tokens []sample.Token `json:"tokens"` // with log-probability, entropy and the version of the weights, of each
	End    sample.End     `json:"end"`
	Text   string         `json:"text"`
	Scored bool           `json:"scored"` // the verifier answered with a number
	Reward float64        `json:"reward"`
	Lost   int            `json:"lost"` // index of the token at which it was lost, those of a prefix counted; tasks.Kept: nowhere, or not known
	Fault  string         `json:"fault,omitempty"`
}

// Truncated tells whether the completion was cut off.
func (r *Rollout) Truncated() bool { return r.End == sample.ByLength || r.End == sample.ByContext }

// Succeeded tells whether the completion is right.
func (r *Rollout) Succeeded() bool { return r.Scored && r.Reward >= 1 }

// Group is the completions of one prompt.
type Group struct {
	Prompt   tasks.Prompt `json:"prompt"`
	IDs      []int32      `json:"ids"`              // of the prompt, and of the prefix where there is one
	Prefix   []int32      `json:"prefix,omitempty"` // first tokens of every completion, drawn before
	Rollouts []*Rollout   `json:"rollouts"`

	start int // index in the draw
}

// Successes is how many are right.
func (g *Group) Successes() (n int) {
	for _, r := range g.Rollouts {
		if r.Succeeded() {
			n++
		}
	}
	return n
}

// row is one sequence to learn from: the prompt, then the completion.
type row struct {
	ids  []int32
	from int // where the completion begins
}

// packed is rows side by side, [B, S], padded. Token k of row i's completion is predicted at position from − 1 + k.
type packed struct {
	b, s        int
	ids, labels []int32
	mask        []float32
}

// pack makes B a multiple of ranks and S of step.
func pack(rows []row, ranks, step int) *packed {
	longest := 1
	for _, r := range rows {
		longest = max(longest, len(r.ids)-1)
	}
	p := &packed{b: max(1, (len(rows)+ranks-1)/ranks) * ranks, s: (longest + step - 1) / step * step}
	p.ids, p.labels, p.mask = make([]int32, p.b*p.s), make([]int32, p.b*p.s), make([]float32, p.b*p.s)
	for i, r := range rows {
		at := i * p.s
		copy(p.ids[at:], r.ids[:len(r.ids)-1])
		copy(p.labels[at:], r.ids[1:])
		for k := r.from - 1; k < len(r.ids)-1; k++ {
			p.mask[at+k] = 1
		}
	}
	return p
}

// samples hands groups to the loss: version is that of the weights about to learn.
func samples(groups []*Group, version uint64, s Staleness) (out []grpo.Group, old StaleCounts) {
	old.Histogram = map[int]int{}
	for _, g := range groups {
		var list grpo.Group
		for _, r := range g.Rollouts {
			x := grpo.Sample{Reward: r.reward(), Truncated: r.Truncated()}
			stale := 0
			for _, t := range r.Tokens {
				age := int(version - t.Version)
				old.Histogram[age]++
				stale = max(stale, age)
				tok := grpo.Token{Drawn: t.LogProb, Proximal: t.LogProb, Entropy: t.Entropy, Weight: s.weight(age)}
				if t.Injected {
					tok.Weight = 0
				}
				x.Tokens = append(x.Tokens, tok)
			}
			if s.drops(stale) {
				old.Dropped++
				x.Tokens = nil // its reward still counts in the baseline
			}
			list = append(list, x)
		}
		out = append(out, list)
	}
	return out, old
}
