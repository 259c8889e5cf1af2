package mesh

import (
	"fmt"
	"strings"
)

// Operand is what the rules know of a tensor: its dims' letters and its places. Const marks data without a gradient (ids,
// labels, positions, masks, counts): for it R and I are the same.
type Operand struct {
	Letters string
	At      Places
	Const   bool
}

// Linear is the rule for every operation that is linear in each operand, one axis at a time:
//
//   - one operand is S(l): every operand with dim l is S(l), the rest R; the result is S(l), or P where l is contracted;
//   - one operand is P and the rest R: the result is P;
//   - all are R, or all are I: so is the result.
//
// Anything else has no rule. Backward passes are linear in the gradient, so they use the same rule.
func (m *Mesh) Linear(op, out string, in ...Operand) (at Places, err error) {
	for a := range m.axes {
		if at[a], err = linearOn(out, a, in); err != nil {
			return at, fmt.Errorf("%s on axis %s: %w", op, m.axes[a].Name, err)
		}
	}
	return at, nil
}

func linearOn(out string, a int, in []Operand) (Place, error) {
	var letter byte
	var partial, replicated, invariant, free int
	for _, t := range in {
		switch p := t.At[a]; {
		case t.Const && (p == R || p == I):
			free++
		case p.Sharded():
			if letter != 0 && letter != p.Letter() {
				return 0, fmt.Errorf("shards both %c and %c: %s", letter, p.Letter(), list(in, a))
			}
			letter = p.Letter()
		case p == P:
			partial++
		case p == R:
			replicated++
		case p == I:
			invariant++
		default:
			return 0, fmt.Errorf("no rule for %s", list(in, a))
		}
	}
	n := len(in)
	switch {
	case letter != 0:
		return sharded(out, letter, a, in)
	case partial == 1 && replicated+free == n-1:
		return P, nil
	case replicated+free == n:
		return R, nil
	case invariant+free == n:
		return I, nil
	}
	return 0, fmt.Errorf("no rule for %s", list(in, a))
}

func sharded(out string, letter byte, a int, in []Operand) (Place, error) {
	for _, t := range in {
		has := strings.IndexByte(t.Letters, letter) >= 0
		p := t.At[a]
		ok := has && p == S(letter) || !has && (p == R || t.Const && p == I)
		if !ok {
			return 0, fmt.Errorf("%c is sharded, but %s is %s: %s", letter, t.Letters, p, list(in, a))
		}
	}
	if strings.IndexByte(out, letter) >= 0 {
		return S(letter), nil
	}
	return P, nil
}

// Pointwise is the rule for operations that are not linear: as Linear, but partial operands are refused, and so is a shard
// of any letter in whole (a norm needs all of h, attention all of s and d).
func (m *Mesh) Pointwise(op, out, whole string, in ...Operand) (Places, error) {
	for a := range m.axes {
		for _, t := range in {
			p := t.At[a]
			if p == P || p == M || p.Sharded() && strings.IndexByte(whole, p.Letter()) >= 0 {
				return Places{}, fmt.Errorf("%s of %s at %s on axis %s", op, t.Letters, p, m.axes[a].Name)
			}
		}
	}
	return m.Linear(op, out, in...)
}

func list(in []Operand, a int) string {
	var s []string
	for _, t := range in {
		l := t.Letters
		if l == "" {
			l = "scalar"
		}
		s = append(s, l+":"+t.At[a].String())
	}
	return strings.Join(s, " ")
}
