package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"heddle/internal/atomicfile"
)

// pattern is the regular expression of a split as tokenizer.json writes it.
func (s Split) pattern() string {
	digits := `\p{N}`
	switch s {
	case GPT2:
		return `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	case Llama3:
		digits = `\p{N}{1,3}`
	}
	return `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|` + digits + `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
}

// json is the pre_tokenizer object of a split.
func (s Split) json(byteLevel string) string {
	first := `{"type": "Digits", "individual_digits": true}`
	if s == SmolLM {
		byteLevel = strings.Replace(byteLevel, `"use_regex": false`, `"use_regex": true`, 1)
	} else {
		first = `{"type": "Split", "pattern": {"Regex": ` + quote(s.pattern()) + `}, "behavior": "Isolated", "invert": false}`
	}
	return "{\"type\": \"Sequence\", \"pretokenizers\": [\n  " + first + ",\n  " + byteLevel + "]}"
}

// JSON is the tokenizer in the format of Hugging Face's tokenizer.json. The same tokenizer gives the same bytes.
func (t *Tokenizer) JSON() []byte {
	var b bytes.Buffer
	b.WriteString("{\n \"version\": \"1.0\",\n \"truncation\": null,\n \"padding\": null,\n \"added_tokens\": [")
	for i, s := range t.specials {
		fmt.Fprintf(&b, "%s\n  {\"id\": %d, \"content\": %s, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": %t, \"special\": %t}",
			comma(i), s.ID, quote(s.Content), s.Normalized, s.Control)
	}
	b.WriteString("\n ],\n \"normalizer\": ")
	if t.nfc {
		b.WriteString(`{"type": "NFC"}`)
	} else {
		b.WriteString("null")
	}
	const byteLevel = `{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}`
	fmt.Fprintf(&b, ",\n \"pre_tokenizer\": %s,\n", t.split.json(byteLevel))
	fmt.Fprintf(&b, " \"post_processor\": %s,\n \"decoder\": %s,\n", byteLevel, byteLevel)
	unknown := "null"
	if t.unknown >= 0 {
		unknown = quote(visibleToken(t, t.unknown))
	}
	fmt.Fprintf(&b, " \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": %s, \"continuing_subword_prefix\": null, "+
		"\"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": %t,\n  \"vocab\": {", unknown, t.ignoreMerges)
	t.writeVocab(&b)
	b.WriteString("\n  },\n  \"merges\": [")
	table := runes()
	for i, m := range t.merges {
		fmt.Fprintf(&b, "%s\n   %s", comma(i), quote(visible(t.tokens[m.left], &table)+" "+visible(t.tokens[m.right], &table)))
	}
	b.WriteString("\n  ]\n }\n}\n")
	return b.Bytes()
}

func (t *Tokenizer) writeVocab(b *bytes.Buffer) {
	table := runes()
	last := t.specialsAtEnd()
	for id, s := range t.tokens[:last] {
		if !t.isSpecial(int32(id)) {
			s = visible(s, &table)
		}
		fmt.Fprintf(b, "%s\n   %s: %d", comma(id), quote(s), id)
	}
}

// specialsAtEnd is the first of the ids at the end that special tokens have, in the order in which they are listed. Hugging Face's library counts those on from the end of
// the vocabulary, whatever id the file gives them; any other special token must be in the vocabulary to keep its id.
func (t *Tokenizer) specialsAtEnd() int {
	last := len(t.tokens)
	if t.unknown >= 0 { // the vocabulary must hold it
		return last
	}
	for i := len(t.specials) - 1; i >= 0 && int(t.specials[i].ID) == last-1; i-- {
		last--
	}
	return last
}

// visibleToken is a token as the file writes it.
func visibleToken(t *Tokenizer, id int32) string {
	if t.isSpecial(id) {
		return t.tokens[id]
	}
	table := runes()
	return visible(t.tokens[id], &table)
}

func (t *Tokenizer) isSpecial(id int32) bool {
	for _, s := range t.specials {
		if s.ID == id {
			return true
		}
	}
	return false
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// visible writes bytes in the alphabet of tokenizer.json.
func visible(s string, table *[256]rune) string {
	r := make([]rune, len(s))
	for i := range len(s) {
		r[i] = table[s[i]]
	}
	return string(r)
}

// quote is s as JSON; marshalling a string cannot fail.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// Write writes tokenizer.json to path, which holds the old file or the new one, never a part.
func (t *Tokenizer) Write(path string) error {
	err := atomicfile.Write(atomicfile.OS{}, path, func(w io.Writer) error {
		_, err := w.Write(t.JSON())
		return err
	})
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	return nil
}
