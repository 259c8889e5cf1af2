package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Arithmetic asks for a sum in words, of a model with a tokenizer: "What is 57 + 68? Reply with the number alone." The answer is the first whole number after
// the last "=", or the first of all where there is none. Free text can always be taken back, so the verdict does not say where a completion was lost. Level l has operands of l/2+1 and (l+1)/2+1 digits: 1 and 1, 1 and 2, 2 and 2, …
type Arithmetic struct{ Digits int } // of the operands, at most

func (t Arithmetic) Name() string       { return "arithmetic" }
func (t Arithmetic) Levels() int        { return 2*t.Digits - 1 }
func (t Arithmetic) Alphabet() []string { return nil }

// Longest counts tokens, of which digits and words have few each, with room for a chat's frame.
func (t Arithmetic) Longest() (prompt, completion int) { return 80 + 2*t.Digits, 12 + t.Digits }

const question = "What is %d + %d? Reply with the number alone."

func (t Arithmetic) Prompt(d Draw) Prompt {
	return redraw(d, "arithmetic", func(r *rand.Rand) Prompt {
		text := fmt.Sprintf(question, number(r, d.Level/2+1), number(r, (d.Level+1)/2+1))
		return Prompt{ID: text, Text: text, Level: d.Level}
	})
}

// Verify compares the number with the sum.
func (t Arithmetic) Verify(_ context.Context, p Prompt, completion string) (Verdict, error) {
	var a, b int
	if n, err := fmt.Sscanf(p.Text, question, &a, &b); n != 2 || err != nil || a < 0 || b < 0 || a > 1e9 || b > 1e9 {
		return Verdict{}, fmt.Errorf("tasks: arithmetic: %q is no prompt; hint: %q", p.Text, fmt.Sprintf(question, 12, 34))
	}
	text := completion[strings.LastIndex(completion, "=")+1:]
	at := strings.IndexAny(text, "0123456789")
	if at < 0 {
		return Verdict{Lost: Kept}, nil
	}
	digits := text[at:]
	if end := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); end >= 0 {
		digits = digits[:end]
	}
	v := Verdict{Lost: Kept}
	if digits == strconv.Itoa(a+b) {
		v.Reward = 1
	}
	return v, nil
}
