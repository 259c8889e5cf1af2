package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Countdown asks to reach a number from given ones, each used once: "3,7,25:46=" is "3*7=21,21+25=46;" or any other way. A step takes two of the numbers
// that are left and puts its result among them; subtraction must not go below zero and division must leave no rest. The first step after which the target
// is out of reach loses the rollout. Level 0 has three numbers, level 1 four.
type Countdown struct{ Largest int } // of the given numbers and the target

const operators = "+-*/"

func (t Countdown) Name() string       { return "countdown" }
func (t Countdown) Levels() int        { return 2 }
func (t Countdown) Alphabet() []string { return digitsAnd(operators + ",:=;") }

// Longest allows for intermediate results of twice the digits.
func (t Countdown) Longest() (prompt, completion int) {
	n := len(strconv.Itoa(t.Largest))
	return 5*n + 5, 3 * (6*n + 3)
}

// Prompt takes random steps from random numbers; where they end is the target.
func (t Countdown) Prompt(d Draw) Prompt {
	return redraw(d, "countdown", func(r *rand.Rand) Prompt {
		for {
			have := make([]int, 3+d.Level)
			for i := range have {
				have[i] = 1 + r.IntN(t.Largest)
			}
			text := strings.Trim(strings.ReplaceAll(fmt.Sprint(have), " ", ","), "[]")
			for len(have) > 1 {
				all := steps(have)
				have = all[r.IntN(len(all))].left
			}
			if have[0] >= 1 && have[0] <= t.Largest {
				text += fmt.Sprintf(":%d=", have[0])
				return Prompt{ID: text, Text: text, Level: d.Level}
			}
		}
	})
}

// step is one operation: its text, and what is left after it.
type step struct {
	text string
	left []int
}

// steps are all that can be done with the numbers, texts that are equal once.
func steps(have []int) (out []step) {
	seen := map[string]bool{}
	for i, a := range have {
		for j, b := range have {
			if i == j {
				continue
			}
			for _, op := range operators {
				v, ok := apply(op, a, b)
				text := fmt.Sprintf("%d%c%d=%d", a, op, b, v)
				if !ok || seen[text] {
					continue
				}
				seen[text] = true
				left := []int{v}
				for k, c := range have {
					if k != i && k != j {
						left = append(left, c)
					}
				}
				out = append(out, step{text, left})
			}
		}
	}
	return out
}

func apply(op rune, a, b int) (v int, ok bool) {
	switch op {
	case '+':
		return a + b, true
	case '-':
		return a - b, a >= b
	case '*':
		return a * b, a*b < 1e6
	default:
		if b == 0 || a%b != 0 {
			return 0, false
		}
		return a / b, true
	}
}

func (t Countdown) parse(text string) (have []int, target int, err error) {
	bad := fmt.Errorf("tasks: countdown: %q is no prompt; hint: 3,7,25:46=", text)
	numbers, goal, ok := strings.Cut(strings.TrimSuffix(text, "="), ":")
	target, e := strconv.Atoi(goal)
	if !ok || e != nil || !strings.HasSuffix(text, "=") {
		return nil, 0, bad
	}
	for f := range strings.SplitSeq(numbers, ",") {
		n, e := strconv.Atoi(f)
		if e != nil || n < 0 || n >= 1e4 || len(have) == 4 { // five numbers have too many ways to list
			return nil, 0, bad
		}
		have = append(have, n)
	}
	return have, target, nil
}

func (t Countdown) Verify(_ context.Context, p Prompt, completion string) (Verdict, error) {
	have, target, err := t.parse(p.Text)
	if err != nil {
		return Verdict{}, err
	}
	lost := 0
	for _, way := range ways(have, target, completion) {
		if way == completion {
			return Verdict{Reward: 1, Lost: Kept}, nil
		}
		lost = max(lost, common(way, completion))
	}
	return Verdict{Lost: lost}, nil
}

// ways lists completions that reach the target: all that share as many whole steps with text as any does. Others share less, so that they cannot tell where
// text was lost.
func ways(have []int, target int, text string) (out []string) {
	if len(have) == 1 {
		if have[0] == target {
			return []string{";"}
		}
		return nil
	}
	for _, follow := range [2]bool{true, false} { // first only the step that text takes
		for _, s := range steps(have) {
			part := s.text
			if len(s.left) > 1 {
				part += ","
			}
			rest, ok := strings.CutPrefix(text, part)
			if follow && !ok {
				continue
			}
			for _, w := range ways(s.left, target, rest) {
				out = append(out, part+w)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// Successes are all ways that begin with prefix.
func (t Countdown) Successes(p Prompt, prefix string) []string {
	have, target, err := t.parse(p.Text)
	if err != nil {
		return nil
	}
	var all []string
	var walk func(have []int, text string)
	walk = func(have []int, text string) {
		if len(have) == 1 && have[0] == target {
			all = append(all, text+";")
		}
		for _, s := range steps(have) {
			part := s.text
			if len(s.left) > 1 {
				part += ","
			}
			walk(s.left, text+part)
		}
	}
	walk(have, "")
	all = startingWith(all, prefix)
	slices.Sort(all)
	return slices.Compact(all)
}

// Demonstrate takes a random step that keeps the target within reach; with probability err, and where there is none, any step.
func (t Countdown) Demonstrate(p Prompt, err float64, r *rand.Rand) string {
	have, target, bad := t.parse(p.Text)
	if bad != nil {
		return ""
	}
	var b strings.Builder
	for len(have) > 1 {
		all := steps(have)
		if r.Float64() >= err {
			if keep := slices.DeleteFunc(slices.Clone(all), func(s step) bool { return !reachable(s.left, target) }); len(keep) > 0 {
				all = keep
			}
		}
		s := all[r.IntN(len(all))]
		b.WriteString(s.text)
		if have = s.left; len(have) > 1 {
			b.WriteByte(',')
		}
	}
	return b.String() + ";"
}

func reachable(have []int, target int) bool {
	if len(have) == 1 {
		return have[0] == target
	}
	return slices.ContainsFunc(steps(have), func(s step) bool { return reachable(s.left, target) })
}
