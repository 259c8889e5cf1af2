package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// chat turns a conversation into documents in which only the assistant's turns are predicted.
//
// Where the rendering of a conversation up to each turn is the beginning of the rendering of the whole, that is one document. Some templates rewrite
// earlier turns (Qwen 3 removes the reasoning from all but the last): there, every assistant's turn becomes a document of its own behind the conversation
// as the model would have seen it at that point.
func (t *Template) chat(raw, tools json.RawMessage) (docs []document, dropped []string, err error) {
	var messages []json.RawMessage
	if err := json.Unmarshal(raw, &messages); err != nil {
		return nil, nil, errors.New("messages is no list")
	}
	var turns []turn
	for i, m := range messages {
		var who struct{ Role *string }
		if err := json.Unmarshal(m, &who); err != nil || who.Role == nil {
			return nil, nil, fmt.Errorf("message %d has no role", i)
		}
		if *who.Role != "assistant" {
			continue
		}
		before, err := t.Render(messages[:i], tools, true)
		if err != nil {
			return nil, nil, fmt.Errorf("before message %d: %w", i, err)
		}
		after, err := t.Render(messages[:i+1], tools, false)
		if err != nil {
			return nil, nil, fmt.Errorf("message %d: %w", i, err)
		}
		if !strings.HasPrefix(after, before) || len(after) == len(before) {
			return nil, []string{"the chat template does not start an assistant's turn with its generation prompt"}, nil
		}
		turns = append(turns, turn{before, after})
	}
	if len(turns) == 0 {
		return nil, []string{"a chat without an assistant's turn"}, nil
	}
	if d, ok := oneDocument(turns); ok {
		return []document{d}, nil, nil
	}
	for _, x := range turns {
		docs = append(docs, document{open: true, pieces: []piece{{text: []byte(x.before), silent: true, control: true}, {text: []byte(x.after[len(x.before):]), control: true}}})
	}
	return docs, nil, nil
}

// turn is an assistant's turn: the conversation before it, ready for its answer, and with the answer.
type turn struct{ before, after string }

// oneDocument joins turns if each continues the one before it.
func oneDocument(turns []turn) (d document, ok bool) {
	d.open = true
	done := ""
	for _, x := range turns {
		if !strings.HasPrefix(x.before, done) {
			return d, false
		}
		d.pieces = append(d.pieces, piece{text: []byte(x.before[len(done):]), silent: true, control: true},
			piece{text: []byte(x.after[len(x.before):]), control: true})
		done = x.after
	}
	return d, true
}

// toJSON is the filter tojson as transformers defines it: json.dumps of Python with ensure_ascii off, not the HTML-safe one of Jinja.
func toJSON(_ *exec.Evaluator, in *exec.Value, params *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	if len(params.KwArgs) > 0 || len(params.Args) > 0 {
		return exec.AsValue(errors.New("tojson with arguments is not supported"))
	}
	var b strings.Builder
	if err := dump(&b, in, 0); err != nil {
		return exec.AsValue(err)
	}
	return exec.AsSafeValue(b.String())
}

// dump writes a value with Python's separators, ", " and ": ".
func dump(b *strings.Builder, v *exec.Value, depth int) error {
	if depth > 100 {
		return errors.New("tojson: nested deeper than 100")
	}
	var err error
	item := func(i int) {
		if i > 0 {
			b.WriteString(", ")
		}
	}
	switch {
	case v.IsNil():
		b.WriteString("null")
	case v.IsBool():
		fmt.Fprint(b, v.Bool())
	case v.IsInteger():
		fmt.Fprint(b, v.Integer())
	case v.IsFloat():
		b.WriteString(pythonFloat(v.Float()))
	case v.IsString():
		quote(b, v.String())
	case v.IsDict():
		b.WriteByte('{')
		v.Iterate(func(i, _ int, key, value *exec.Value) bool {
			item(i)
			quote(b, key.String())
			b.WriteString(": ")
			err = dump(b, value, depth+1)
			return err == nil
		}, func() {})
		b.WriteByte('}')
	case v.IsList():
		b.WriteByte('[')
		v.Iterate(func(i, _ int, value, _ *exec.Value) bool {
			item(i)
			err = dump(b, value, depth+1)
			return err == nil
		}, func() {})
		b.WriteByte(']')
	default:
		return fmt.Errorf("tojson of %s", v.String())
	}
	return err
}

// quote writes a string as Python's json does with ensure_ascii off: only what JSON demands is escaped.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		default:
			if r < ' ' {
				fmt.Fprintf(b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	b.WriteByte('"')
}

// pythonFloat writes a number as Python's repr: the shortest digits that give it back, an exponent below 1e-4 and from 1e16 on.
func pythonFloat(f float64) string {
	s := strconv.FormatFloat(f, 'e', -1, 64)
	_, exp, _ := strings.Cut(s, "e")
	if n, err := strconv.Atoi(exp); err != nil || n < -4 || n >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
