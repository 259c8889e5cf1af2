package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Columns of a record that mean something by themselves.
const (
	colText       = "text"
	colPrompt     = "prompt"
	colCompletion = "completion"
	colMessages   = "messages"
)

// record turns one JSON record into documents, and says why it left the record out where it did.
//
// Config.Field chooses the column: "messages" is a chat, "prompt" or "completion" the pair of both, anything else text. Without it the record must leave no
// choice.
func (c *Config) record(r map[string]json.RawMessage) (docs []document, dropped []string, err error) {
	field := c.Field
	if field == "" {
		if field, err = onlyField(r); err != nil {
			return nil, nil, err
		}
	}
	switch field {
	case colMessages:
		if c.Template == nil {
			return nil, nil, errors.New("a chat, but no chat template; hint: name the model's folder, or a field of text")
		}
		return c.Template.chat(r[colMessages], r["tools"])
	case colPrompt, colCompletion:
		prompt, err := textOf(r, colPrompt)
		if err != nil {
			return nil, nil, err
		}
		completion, err := textOf(r, colCompletion)
		if err != nil {
			return nil, nil, err
		}
		if completion == "" {
			return nil, []string{"empty completion"}, nil
		}
		return []document{{pieces: []piece{{text: []byte(prompt), silent: true}, {text: []byte(completion)}}}}, nil, nil
	}
	text, err := textOf(r, field)
	if err != nil {
		return nil, nil, err
	}
	if text == "" {
		return nil, []string{"empty " + field}, nil
	}
	return []document{{pieces: []piece{{text: []byte(text)}}}}, nil, nil
}

// onlyField decides what a record is when nobody has said so.
func onlyField(r map[string]json.RawMessage) (string, error) {
	var found []string
	for _, f := range [...]string{colText, colMessages} {
		if _, ok := r[f]; ok {
			found = append(found, f)
		}
	}
	_, p := r[colPrompt]
	if _, ok := r[colCompletion]; ok && p {
		found = append(found, colPrompt)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("columns %q, of which %d are text, messages, or prompt with completion, want 1; hint: name the field", slices.Sorted(maps.Keys(r)), len(found))
	}
	return found[0], nil
}

// textOf returns a column that must be text; null counts as empty, an absent column is an error.
func textOf(r map[string]json.RawMessage, field string) (string, error) {
	raw, ok := r[field]
	if !ok {
		return "", fmt.Errorf("no column %q among %q", field, slices.Sorted(maps.Keys(r)))
	}
	if string(raw) == "null" {
		return "", nil
	}
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("column %q is %.20s, want text", field, raw)
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}
