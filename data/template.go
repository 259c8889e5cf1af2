package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

const (
	maxTemplate = 1 << 20  // bytes of a chat template
	maxRendered = 64 << 20 // bytes of a rendered conversation
	maxRange    = 100_000  // numbers of one range(), as in Jinja's own sandbox
)

// Template is a model's chat template: the Jinja program that writes a conversation as the text the model was trained on. A record of messages becomes one
// document; the assistant's turns, up to the end the template gives them, are predicted, the rest is given.
//
// A template is a program from a file: it reads no other file, writes at most 64 MiB, counts to 100,000 at most in one range, and a failing one is an error
// of that record. Loops within loops can still keep it busy: take templates from where you take models.
type Template struct {
	source string
	vars   map[string]string // bos_token, eos_token, …
	parsed *exec.Template
}

// ReadTemplate reads the chat template of a model's folder: chat_template.jinja, or chat_template in tokenizer_config.json, which also names the special
// tokens that templates use.
func ReadTemplate(folder string) (*Template, error) {
	path := filepath.Join(folder, "tokenizer_config.json")
	src, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	var c map[string]json.RawMessage
	if err := json.Unmarshal(src, &c); err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	vars := make(map[string]string)
	for _, name := range [...]string{"bos_token", "eos_token", "pad_token", "unk_token"} {
		if text, ok := tokenText(c[name]); ok {
			vars[name] = text
		}
	}
	var source string
	jinja, err := readSmall(filepath.Join(folder, "chat_template.jinja"))
	switch {
	case err == nil:
		path, source = filepath.Join(folder, "chat_template.jinja"), string(jinja)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	case json.Unmarshal(c["chat_template"], &source) != nil || source == "":
		return nil, invalid(path, "no chat_template that is one text; hint: a model without one takes prompt and completion, or text")
	}
	t, err := NewTemplate(source, vars)
	if err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	return t, nil
}

// tokenText is a special token of tokenizer_config.json: text, or an object with content.
func tokenText(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text, true
	}
	var object struct{ Content string }
	return object.Content, json.Unmarshal(raw, &object) == nil && object.Content != ""
}

func readSmall(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	if !st.Mode().IsRegular() || st.Size() > 16<<20 {
		return nil, invalid(path, "%d bytes, want a regular file of at most 16 MiB", st.Size())
	}
	return readRange(path, 0, st.Size())
}

// NewTemplate parses a chat template. vars are the special tokens it may name, such as bos_token.
func NewTemplate(source string, vars map[string]string) (t *Template, err error) {
	if len(source) > maxTemplate {
		return nil, invalid("", "chat template of %d bytes, want at most %d", len(source), maxTemplate)
	}
	defer func() { // the library panics on some broken templates
		if p := recover(); p != nil {
			err = invalid("", "chat template: %v", p)
		}
	}()
	const name = "/chat"
	loader, err := loaders.NewMemoryLoader(map[string]string{name: source})
	if err != nil {
		return nil, invalid("", "chat template: %w", err)
	}
	c := config.New()
	c.TrimBlocks, c.LeftStripBlocks, c.KeepTrailingNewline = true, true, false // as transformers renders them
	env := exec.Environment{Filters: exec.NewFilterSet(map[string]exec.FilterFunction{}).Update(builtins.Filters), ControlStructures: builtins.ControlStructures,
		Tests: builtins.Tests, Methods: builtins.Methods, Context: exec.EmptyContext().Update(builtins.GlobalFunctions)}
	if err := env.Filters.Replace("tojson", toJSON); err != nil {
		return nil, err
	}
	parsed, err := exec.NewTemplate(name, c, loader, &env)
	if err != nil {
		return nil, invalid("", "chat template: %w", err)
	}
	return &Template{source: source, vars: vars, parsed: parsed}, nil
}

// limited is a buffer that refuses to grow for ever.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("more than %d bytes", maxRendered)
	}
	return l.Builder.Write(p)
}

// Render writes a conversation: JSON of the messages, and of the tools where there are any. With answer, it ends in the start of an assistant's turn.
func (t *Template) Render(messages []json.RawMessage, tools json.RawMessage, answer bool) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("chat template: %v", p)
		}
	}()
	list := make([]any, len(messages))
	for i, m := range messages {
		if list[i], err = ordered(m); err != nil {
			return "", err
		}
	}
	vars := map[string]any{"messages": list, "add_generation_prompt": answer, "raise_exception": raise, "range": numbers}
	if len(tools) > 0 {
		if vars["tools"], err = ordered(tools); err != nil {
			return "", err
		}
	}
	for name, text := range t.vars {
		vars[name] = text
	}
	var out limited
	if err := t.parsed.Execute(&out, exec.NewContext(vars)); err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return out.String(), nil
}

// raise is raise_exception of templates.
func raise(_ *exec.Evaluator, args *exec.VarArgs) *exec.Value {
	return exec.AsValue(errors.New(args.First().String()))
}

// numbers is range() of templates, with a bound.
func numbers(_ *exec.Evaluator, args *exec.VarArgs) *exec.Value {
	v := [3]int{0, 0, 1} // start, stop, step
	for i, a := range args.Args {
		if i == len(v) || !a.IsInteger() {
			return exec.AsValue(errors.New("range wants one to three integers"))
		}
		v[i] = a.Integer()
	}
	switch len(args.Args) {
	case 0:
		return exec.AsValue(errors.New("range wants one to three integers"))
	case 1:
		v[0], v[1] = 0, v[0]
	}
	if v[2] == 0 {
		return exec.AsValue(errors.New("range with a step of 0"))
	}
	list := []int{}
	for i := v[0]; v[2] > 0 && i < v[1] || v[2] < 0 && i > v[1]; i += v[2] {
		if len(list) == maxRange {
			return exec.AsValue(fmt.Errorf("range of more than %d numbers", maxRange))
		}
		list = append(list, i)
	}
	return exec.AsValue(list)
}

// ordered decodes JSON for a template, with the members of objects in the order of the text.
func ordered(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := orderedValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("text after the value")
	}
	return v, nil
}

func orderedValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := orderedValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		dict := exec.NewDict()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := orderedValue(d)
			if err != nil {
				return nil, err
			}
			dict.Pairs = append(dict.Pairs, &exec.Pair{Key: exec.AsValue(key), Value: exec.AsValue(v)})
		}
		_, err = d.Token()
		return dict, err
	}
	if n, ok := t.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return int(i), nil
		}
		return n.Float64()
	}
	return t, nil
}
