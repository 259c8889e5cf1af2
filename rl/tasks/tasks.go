// Package tasks holds problems that a program can check: prompts of graded difficulty, and a verifier that says whether a completion succeeds and, if not,
// where it was lost: the first byte after which no completion could have succeeded.
//
// A task of one's own implements Task. Demonstrator and Enumerator are for tasks that can do more. External takes prompts from a file and asks a command.
// Read Task, then path.go. Text is turned into ids by a Codec: a task's own symbols, or a tokenizer.
package tasks

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Prompt is one problem. It is the unit of every statistic.
type Prompt struct {
	ID     string `json:"id"`
	Text   string `json:"prompt"`
	Answer string `json:"answer,omitempty"` // what an external verifier compares with; the tasks here need none
	Level  int    `json:"level"`            // difficulty, from 0
}

// Verdict is what a verifier says about a completion.
type Verdict struct {
	Reward float64 // 1 success, 0 failure, or what an external verifier gives
	Lost   int     // byte of the completion that no success shares with it and those before; its length: it ended too early; Kept: nowhere
}

// Kept is Verdict.Lost of a success, and where the verifier cannot tell.
const Kept = -1

// Draw says which problem is wanted. The same draw gives the same problem.
type Draw struct {
	Seed, Index uint64
	Level       int
	HeldOut     bool // problems of one kind never appear as the other
}

// Task is what training and the study need to know about a kind of problem.
type Task interface {
	Name() string
	Levels() int        // difficulties 0 to Levels-1
	Alphabet() []string // the symbols its text is made of; nil: any text, for a model with a tokenizer
	Longest() (prompt, completion int)
	Prompt(Draw) Prompt
	// Verify judges a completion without its end symbol. An error is the verifier's own failure: the completion counts as unscorable, not as wrong.
	Verify(ctx context.Context, p Prompt, completion string) (Verdict, error)
}

// Demonstrator writes completions to learn from. With probability err a step is taken at random among those that are well formed, so that the rate at which
// demonstrations fail is known.
type Demonstrator interface {
	Demonstrate(p Prompt, err float64, r *rand.Rand) string
}

// Enumerator lists every completion that succeeds and begins with prefix. A policy's exact chance from a prefix is the sum of their probabilities.
type Enumerator interface {
	Successes(p Prompt, prefix string) []string
}

// Random is the generator that belongs to a draw and a purpose.
func Random(seed, index uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, purpose)
	return rand.New(rand.NewPCG(seed^h.Sum64(), index*0x9e3779b97f4a7c15+1))
}

// heldOut tells whether a problem belongs to the held-out quarter. It is a function of the problem alone.
func heldOut(text string) bool {
	h := fnv.New64a()
	fmt.Fprint(h, text)
	x := h.Sum64() // FNV's low bits mix badly over short texts that differ in the last symbol
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x%4 == 0
}

// redraw draws until the problem is of the kind that is wanted. Three quarters of many problems are trained on, so a thousand draws fail only where there
// are none; then the last is returned and a test of the task finds it.
func redraw(d Draw, name string, one func(r *rand.Rand) Prompt) (p Prompt) {
	r := Random(d.Seed, d.Index, fmt.Sprintf("%s level %d held out %v", name, d.Level, d.HeldOut))
	for range 1000 {
		if p = one(r); heldOut(p.Text) == d.HeldOut {
			return p
		}
	}
	return p
}

// exact judges a completion of which only one succeeds.
func exact(want, got string) Verdict {
	if want == got {
		return Verdict{Reward: 1, Lost: Kept}
	}
	return Verdict{Lost: common(want, got)}
}

// common is the length of the longest common prefix.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// startingWith keeps those that begin with prefix.
func startingWith(all []string, prefix string) (out []string) {
	for _, s := range all {
		if common(s, prefix) == len(prefix) {
			out = append(out, s)
		}
	}
	return out
}
