package token

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// model reads the "model" object of tokenizer.json.
func (f *fileReader) model() error {
	f.hasModel = true
	kind := "BPE" // files of the first releases do not say
	err := f.Object(func(key string) (err error) {
		switch key {
		case "type":
			kind, err = f.String()
		case "vocab":
			return f.Object(f.vocabEntry)
		case "merges":
			return f.Array(func(int) error { return f.mergeEntry() })
		case "ignore_merges":
			f.parts.ignoreMerges, err = f.Bool()
		case "unk_token":
			if !f.Null() {
				f.parts.unknown, err = f.String()
			}
		case "fuse_unk":
			f.fuse, err = f.Bool()
		case "byte_fallback":
			var set bool
			if set, err = f.Bool(); set {
				return f.fault("byte_fallback: a BPE over characters, want one over bytes")
			}
		case "continuing_subword_prefix", "end_of_word_suffix":
			if f.Null() {
				return nil
			}
			var s string
			if s, err = f.String(); s != "" {
				return f.fault("%s %q is not supported", key, s)
			}
		case "dropout":
			if f.Null() {
				return nil
			}
			var p float64
			if p, err = f.Float(); err == nil && p != 0 {
				return f.fault("dropout %g: encoding would be random", p)
			}
		default:
			return f.fault("unknown key %q in model", key)
		}
		return err
	})
	if err == nil && kind != "BPE" {
		return f.fault("model %q, want BPE", kind)
	}
	return err
}

func (f *fileReader) vocabEntry(text string) error {
	id, err := f.id()
	if err != nil {
		return err
	}
	if len(text) > 2*maxToken {
		return f.fault("a token of %d bytes, want at most %d", len(text), maxToken)
	}
	f.vocab[text] = id
	f.entries = append(f.entries, entry{text, id})
	return nil
}

// mergeEntry reads "a b" or ["a", "b"].
func (f *fileReader) mergeEntry() error {
	var pair [2]string
	if f.peek() == '[' {
		n := 0
		err := f.Array(func(int) error {
			s, err := f.String()
			if n < 2 {
				pair[n] = s
			}
			n++
			return err
		})
		if err == nil && n != 2 {
			err = f.fault("a merge of %d tokens, want 2", n)
		}
		f.pairs = append(f.pairs, pair)
		return err
	}
	s, err := f.String()
	if err != nil {
		return err
	}
	a, b, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(b, " ") {
		return f.fault("merge %q, want two tokens with one space between them", s)
	}
	f.pairs = append(f.pairs, [2]string{a, b})
	return nil
}

// assemble turns what the file says into a tokenizer.
func (f *fileReader) assemble() (*Tokenizer, error) {
	p := f.parts
	specials := make(map[string]int32, len(p.specials))
	top := len(f.entries) // ids must be dense, so there cannot be more
	for _, s := range p.specials {
		if other, ok := specials[s.Content]; ok {
			return nil, fmt.Errorf("added token %q occurs twice, ids %d and %d", s.Content, other, s.ID)
		}
		specials[s.Content] = s.ID
		switch id, ok := f.vocab[s.Content]; {
		case !ok:
			top++
		case id != s.ID:
			return nil, fmt.Errorf("token %q has two ids, %d and %d", s.Content, id, s.ID)
		}
	}
	p.tokens = make([]string, top)
	put := func(id int32, name, bytes string) error {
		if int(id) >= top {
			return fmt.Errorf("token %q has id %d, but there are only %d tokens: ids have a hole", name, id, top)
		}
		if p.tokens[id] != "" {
			return fmt.Errorf("id %d belongs to %q and to %q", id, p.tokens[id], name)
		}
		p.tokens[id] = bytes
		return nil
	}
	for _, s := range p.specials {
		if err := put(s.ID, s.Content, s.Content); err != nil {
			return nil, err
		}
	}
	alphabet := byteOf()
	for _, e := range f.entries {
		if _, ok := specials[e.text]; ok {
			continue
		}
		bytes, ok := fromVisible(e.text, alphabet)
		if !ok {
			return nil, fmt.Errorf("token %q (id %d) is not written in the alphabet of byte-level BPE", e.text, e.id)
		}
		if err := put(e.id, e.text, bytes); err != nil {
			return nil, err
		}
	}
	var err error
	if p.merges, err = resolveMerges(f.pairs, f.vocab); err != nil {
		return nil, err
	}
	t, err := build(p)
	if err == nil && f.fuse && t.unknown >= 0 && len(t.Missing()) > 0 {
		return nil, fmt.Errorf("bytes %x have no id, and fuse_unk joins them, which is not supported", t.Missing())
	}
	return t, err
}

// resolveMerges turns merges as written into ids.
func resolveMerges(pairs [][2]string, vocab map[string]int32) ([]merge, error) {
	merges := make([]merge, len(pairs))
	seen := make(map[uint64]int, len(pairs))
	for i, p := range pairs {
		left, okL := vocab[p[0]]
		right, okR := vocab[p[1]]
		id, ok := vocab[p[0]+p[1]]
		switch {
		case !okL || p[0] == "":
			return nil, fmt.Errorf("merge %d: %q is not in the vocabulary", i, p[0])
		case !okR || p[1] == "":
			return nil, fmt.Errorf("merge %d: %q is not in the vocabulary", i, p[1])
		case !ok:
			return nil, fmt.Errorf("merge %d: %q + %q = %q is not in the vocabulary", i, p[0], p[1], p[0]+p[1])
		}
		if j, ok := seen[pairKey(left, right)]; ok {
			return nil, fmt.Errorf("merge %d of %q and %q is merge %d again", i, p[0], p[1], j)
		}
		seen[pairKey(left, right)] = i
		merges[i] = merge{left, right, id}
	}
	return merges, nil
}

// byteOf maps the characters of tokenizer.json's alphabet, all below U+0144, to bytes; -1 where there is none.
func byteOf() *[0x144]int16 {
	var table [0x144]int16
	for i := range table {
		table[i] = -1
	}
	for c, r := range runes() {
		table[r] = int16(c)
	}
	return &table
}

// fromVisible is the inverse of visible.
func fromVisible(s string, table *[0x144]int16) (string, bool) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r == utf8.RuneError || int(r) >= len(table) || table[r] < 0 {
			return "", false
		}
		b = append(b, byte(table[r]))
	}
	return string(b), true
}
