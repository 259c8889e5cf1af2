package tasks

import (
	"fmt"
	"slices"
	"strings"
)

// Codec turns text into ids and back. End closes a completion and fills the rest of a row.
type Codec interface {
	Size() int
	End() int32
	Prompt(text string) ([]int32, error) // of a prompt, in the frame that the model knows
	Encode(text string) ([]int32, error) // of a completion, or a part of one
	Decode(ids []int32) (string, error)  // without End and what follows it
}

// Symbols is the codec of an alphabet: id 0 is the end, id i+1 symbol i. Text is cut greedily, the longest symbol first.
type Symbols struct {
	list   []string
	length int // of the longest
	id     map[string]int32
}

// NewSymbols checks that the alphabet has no empty and no double symbol.
func NewSymbols(alphabet []string) (*Symbols, error) {
	s := &Symbols{list: slices.Clone(alphabet), id: map[string]int32{}}
	for i, x := range s.list {
		if _, twice := s.id[x]; twice || x == "" {
			return nil, fmt.Errorf("tasks: symbol %d of the alphabet, %q, is empty or there twice", i, x)
		}
		s.id[x] = int32(i + 1)
		s.length = max(s.length, len(x))
	}
	return s, nil
}

func (s *Symbols) Size() int  { return len(s.list) + 1 }
func (s *Symbols) End() int32 { return 0 }

// Prompt has no frame.
func (s *Symbols) Prompt(text string) ([]int32, error) { return s.Encode(text) }

// Encode refuses text with anything else in it.
func (s *Symbols) Encode(text string) (ids []int32, err error) {
next:
	for at := 0; at < len(text); {
		for n := min(s.length, len(text)-at); n > 0; n-- {
			if id, ok := s.id[text[at:at+n]]; ok {
				ids, at = append(ids, id), at+n
				continue next
			}
		}
		return nil, fmt.Errorf("tasks: no symbol of the alphabet begins at byte %d of %q", at, text)
	}
	return ids, nil
}

// Decode joins symbols up to End.
func (s *Symbols) Decode(ids []int32) (string, error) {
	var b strings.Builder
	for i, id := range ids {
		if id == 0 {
			break
		}
		if id < 0 || int(id) > len(s.list) {
			return "", fmt.Errorf("tasks: id %d at %d is no symbol; the alphabet has %d", id, i, len(s.list))
		}
		b.WriteString(s.list[id-1])
	}
	return b.String(), nil
}
