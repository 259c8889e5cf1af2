package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"heddle/token"
)

// Prompt turns text into ids, special tokens in it into themselves, after the token that texts begin with. An empty text
// begins as a new document does.
func (m *Model) Prompt(text string) ([]int32, error) {
	var ids []int32
	if m.Begin >= 0 {
		ids = append(ids, m.Begin)
	}
	ids = m.Tokenizer.Encode(ids, []byte(text))
	if len(ids) > 0 {
		return ids, nil
	}
	if id, ok := m.Tokenizer.Separator(); ok {
		return []int32{id}, nil
	}
	return nil, errors.New("text: the prompt is empty and the tokenizer has no token that separates documents")
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // system, user, assistant
	Content string `json:"content"`
}

// Chat turns a conversation into ids that end where the assistant's answer begins, as the model's chat template writes it.
func (m *Model) Chat(messages ...Message) (text string, ids []int32, err error) {
	if m.Template == nil {
		return "", nil, fmt.Errorf("text: %s has no chat template", m.Path)
	}
	raw := make([]json.RawMessage, len(messages))
	for i, t := range messages {
		if raw[i], err = json.Marshal(t); err != nil {
			return "", nil, err
		}
	}
	if text, err = m.Template.Render(raw, nil, true); err != nil {
		return "", nil, err
	}
	return text, m.Tokenizer.Encode(nil, []byte(text)), nil // the template writes the first token itself
}

// Stream turns ids into text as they come: a character that several tokens make appears with the last of them.
type Stream struct {
	Tokenizer *token.Tokenizer
	rest      []byte // the beginning of a character
}

// Add gives the text that an id completes. An id without a token, which some vocabularies have, gives none.
func (s *Stream) Add(id int32) string {
	s.rest = append(s.rest, s.Tokenizer.Token(id)...)
	n := len(s.rest)
	for back := 1; back <= min(utf8.UTFMax-1, n); back++ {
		if c := s.rest[n-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(s.rest[n-back:]) {
				n -= back
			}
			break
		}
	}
	text := token.Text(s.rest[:n])
	s.rest = append(s.rest[:0], s.rest[n:]...)
	return text
}

// End gives what is left when no more comes.
func (s *Stream) End() string {
	text := token.Text(s.rest)
	s.rest = s.rest[:0]
	return text
}
