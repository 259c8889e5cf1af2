package tile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a layout as CuTe prints it, "(4,(2,8)):(2,(1,16))"; a leading underscore of a static integer (_4) is dropped. A shape without
// stride is column-major: "(4,8)" means "(4,8):(1,4)".
func Parse(s string) (Layout, error) {
	p := parser{text: s}
	shape, err := p.tuple(0)
	if err != nil {
		return Layout{}, err
	}
	if p.end() {
		return Compact(shape)
	}
	if !p.accept(':') {
		return Layout{}, p.fault("want ':' between shape and stride")
	}
	stride, err := p.tuple(0)
	if err != nil {
		return Layout{}, err
	}
	if !p.end() {
		return Layout{}, p.fault("want the end")
	}
	return New(shape, stride)
}

// ParseTuple reads a shape, a stride or a coordinate such as "(_,(3,_))". JSON's brackets are accepted in place of parentheses, null in place of _.
func ParseTuple(s string) (Tuple, error) {
	p := parser{text: s}
	t, err := p.tuple(0)
	if err == nil && !p.end() {
		err = p.fault("want the end")
	}
	if err != nil {
		return Tuple{}, err
	}
	return t, nil
}

// parser reads one tuple after the other from text.
type parser struct {
	text  string
	pos   int
	count int // integers so far
}

func (p *parser) fault(want string) error {
	text := p.text
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return fmt.Errorf("tile: %q, character %d: %s; hint: a layout looks like (4,(2,8)):(2,(1,16))", text, p.pos+1, want)
}

func (p *parser) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) end() bool { p.space(); return p.pos == len(p.text) }

func (p *parser) accept(c byte) bool {
	if p.space(); p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) tuple(depth int) (Tuple, error) {
	if depth > MaxDepth {
		return Tuple{}, p.fault(fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	closing := byte(')')
	switch {
	case p.accept('('):
	case p.accept('['):
		closing = ']'
	default:
		return p.leaf()
	}
	t := Tuple{Modes: []Tuple{}}
	for !p.accept(closing) {
		if len(t.Modes) > 0 && !p.accept(',') {
			return Tuple{}, p.fault("want ',' or '" + string(closing) + "'")
		}
		if len(t.Modes) > 0 && p.accept(closing) { // (4,) is how Python prints a tuple of one
			return t, nil
		}
		m, err := p.tuple(depth + 1)
		if err != nil {
			return Tuple{}, err
		}
		t.Modes = append(t.Modes, m)
	}
	return t, nil
}

func (p *parser) leaf() (Tuple, error) {
	if p.count++; p.count > 2*MaxLeaves {
		return Tuple{}, p.fault(fmt.Sprintf("more than %d integers", 2*MaxLeaves))
	}
	if p.space(); strings.HasPrefix(p.text[p.pos:], "null") {
		p.pos += len("null")
		return Tuple{Free: true}, nil
	}
	free := p.accept('_')
	from := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	digits := p.text[from:p.pos]
	if digits == "" && free {
		return Tuple{Free: true}, nil
	}
	n, err := strconv.Atoi(digits)
	if p.pos == from || err != nil || n > MaxOffset {
		p.pos = from
		return Tuple{}, p.fault("want an integer of [0, 2^48]")
	}
	return Tuple{Value: n}, nil
}

// String prints a tuple as CuTe does: (4,(2,8)), with _ for a free mode.
func (t Tuple) String() string { return string(t.append(nil, "()", "_")) }

func (t Tuple) append(b []byte, brackets, free string) []byte {
	switch {
	case t.Free:
		return append(b, free...)
	case t.Modes == nil:
		return strconv.AppendInt(b, int64(t.Value), 10)
	}
	b = append(b, brackets[0])
	for i, m := range t.Modes {
		if i > 0 {
			b = append(b, ',')
		}
		b = m.append(b, brackets, free)
	}
	return append(b, brackets[1])
}

// String prints a layout as Parse reads it.
func (l Layout) String() string { return l.Shape().String() + ":" + l.Stride().String() }

// MarshalJSON writes nested lists, null for a free mode.
func (t Tuple) MarshalJSON() ([]byte, error) { return t.append(nil, "[]", "null"), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Tuple) UnmarshalJSON(b []byte) (err error) {
	*t, err = ParseTuple(string(b))
	return err
}

// jsonLayout is a layout in JSON: {"shape": [4,[2,8]], "stride": [2,[1,16]]}.
type jsonLayout struct {
	Shape  *Tuple `json:"shape"`
	Stride *Tuple `json:"stride"`
}

// MarshalJSON writes {"shape": …, "stride": …} with nested lists.
func (l Layout) MarshalJSON() ([]byte, error) {
	shape, stride := l.Shape(), l.Stride()
	return json.Marshal(jsonLayout{&shape, &stride})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Layout) UnmarshalJSON(b []byte) error {
	var j jsonLayout
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.Shape == nil || j.Stride == nil {
		return fmt.Errorf("tile: layout %.60s: want shape and stride", b)
	}
	got, err := New(*j.Shape, *j.Stride)
	if err != nil {
		return err
	}
	*l = got
	return nil
}
