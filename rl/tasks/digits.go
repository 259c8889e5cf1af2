package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Numbers are written with the lowest digit first: a model that writes from left to right then knows each carry when it needs it (Lee et al. 2023,
// arXiv 2307.03381).
func reversed(n, width int) string {
	var b strings.Builder
	for ; width > 0; width-- {
		b.WriteByte(byte('0' + n%10))
		n /= 10
	}
	return b.String()
}

// operands reads "12+34=" or "12*34=" with the highest digit first.
func operands(task, text, op string) (a, b int, err error) {
	x, y, ok := strings.Cut(strings.TrimSuffix(text, "="), op)
	a, e1 := strconv.Atoi(x)
	b, e2 := strconv.Atoi(y)
	if !ok || !strings.HasSuffix(text, "=") || e1 != nil || e2 != nil || a < 0 || b < 0 || a >= 1e6 || b >= 1e6 {
		return 0, 0, fmt.Errorf("tasks: %s: %q is no prompt; hint: 12%s34=", task, text, op)
	}
	return a, b, nil
}

// number draws one of exactly n digits.
func number(r *rand.Rand, n int) int {
	low := 1
	for range n - 1 {
		low *= 10
	}
	return low + r.IntN(9*low)
}

func digitsAnd(signs string) (out []string) {
	for _, c := range "0123456789" + signs {
		out = append(out, string(c))
	}
	return out
}

// Addition asks for a sum, lowest digit first: "57+68=" is "521". Level l has operands of l+1 digits. The smallest task there is.
type Addition struct{ Digits int } // of the operands, at most

func (t Addition) Name() string       { return "add" }
func (t Addition) Levels() int        { return t.Digits }
func (t Addition) Alphabet() []string { return digitsAnd("+=") }
func (t Addition) Longest() (prompt, completion int) {
	return 2*t.Digits + 2, t.Digits + 1
}

func (t Addition) Prompt(d Draw) Prompt {
	return redraw(d, "add", func(r *rand.Rand) Prompt {
		text := fmt.Sprintf("%d+%d=", number(r, d.Level+1), number(r, d.Level+1))
		return Prompt{ID: text, Text: text, Level: d.Level}
	})
}

func (t Addition) answer(p Prompt) (string, error) {
	a, b, err := operands("add", p.Text, "+")
	return reversed(a+b, len(strconv.Itoa(a+b))), err
}

func (t Addition) Verify(_ context.Context, p Prompt, completion string) (Verdict, error) {
	want, err := t.answer(p)
	return exact(want, completion), err
}

// Demonstrate writes each digit anew with probability err; ten of eleven of those are then wrong or right by chance as digits are.
func (t Addition) Demonstrate(p Prompt, err float64, r *rand.Rand) string {
	want, _ := t.answer(p)
	return smudge(want, err, r)
}

func (t Addition) Successes(p Prompt, prefix string) []string {
	want, _ := t.answer(p)
	return startingWith([]string{want}, prefix)
}

// smudge replaces each digit by a random one with probability err.
func smudge(text string, err float64, r *rand.Rand) string {
	b := []byte(text)
	for i, c := range b {
		if c >= '0' && c <= '9' && r.Float64() < err {
			b[i] = byte('0' + r.IntN(10))
		}
	}
	return string(b)
}

// Multiplication asks for a product with its partial products, all lowest digit first: "34*27=" is "832+086=819": 34·7 = 238, 34·20 = 680, 918. The whole
// text counts, so the first wrong digit is irrecoverable. Level l has a second operand of l+1 digits.
type Multiplication struct{ First, Second int } // digits of the operands; Second at most

func (t Multiplication) Name() string       { return "mul" }
func (t Multiplication) Levels() int        { return t.Second }
func (t Multiplication) Alphabet() []string { return digitsAnd("*+=") }
func (t Multiplication) Longest() (prompt, completion int) {
	for i := range t.Second {
		completion += t.First + 2 + i
	}
	return t.First + t.Second + 2, completion + t.First + t.Second
}

func (t Multiplication) Prompt(d Draw) Prompt {
	return redraw(d, "mul", func(r *rand.Rand) Prompt {
		text := fmt.Sprintf("%d*%d=", number(r, t.First), number(r, d.Level+1))
		return Prompt{ID: text, Text: text, Level: d.Level}
	})
}

func (t Multiplication) answer(p Prompt) (string, error) {
	a, b, err := operands("mul", p.Text, "*")
	if err != nil {
		return "", err
	}
	var parts []string
	for rest, shift := b, 0; rest > 0; rest, shift = rest/10, shift+1 {
		parts = append(parts, strings.Repeat("0", shift)+reversed(a*(rest%10), len(strconv.Itoa(a*(rest%10)))))
	}
	return strings.Join(parts, "+") + "=" + reversed(a*b, len(strconv.Itoa(a*b))), nil
}

func (t Multiplication) Verify(_ context.Context, p Prompt, completion string) (Verdict, error) {
	want, err := t.answer(p)
	return exact(want, completion), err
}

// Demonstrate writes each digit anew with probability err.
func (t Multiplication) Demonstrate(p Prompt, err float64, r *rand.Rand) string {
	want, _ := t.answer(p)
	return smudge(want, err, r)
}

func (t Multiplication) Successes(p Prompt, prefix string) []string {
	want, _ := t.answer(p)
	return startingWith([]string{want}, prefix)
}
