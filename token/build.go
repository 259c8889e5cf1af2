package token

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Limits of what a file may claim.
const (
	maxVocab = 1 << 22
	maxToken = 1 << 16 // bytes of one token
)

// parts is a tokenizer before it is checked.
type parts struct {
	split        Split
	nfc          bool
	ignoreMerges bool
	tokens       []string // specials included
	merges       []merge
	specials     []Special
	unknown      string // content of the token for bytes without one; empty: they are left out
}

// build checks that the parts fit together and makes the tables that encoding needs.
func build(p parts) (*Tokenizer, error) {
	t := &Tokenizer{split: p.split, nfc: p.nfc, ignoreMerges: p.ignoreMerges, tokens: p.tokens, merges: p.merges, specials: p.specials,
		ids: make(map[string]int32, len(p.tokens))}
	special := make(map[int32]bool, len(p.specials))
	var raw, normed []Special
	for _, s := range p.specials {
		if s.Content == "" || !utf8.ValidString(s.Content) {
			return nil, fmt.Errorf("special token %d is %q, want text", s.ID, s.Content)
		}
		special[s.ID] = true
		if s.Normalized {
			normed = append(normed, s)
		} else {
			raw = append(raw, s)
		}
	}
	t.raw, t.normed = newFinder(raw), newFinder(normed)
	for id, s := range p.tokens {
		if s == "" || special[int32(id)] {
			continue
		}
		if other, ok := t.ids[s]; ok {
			return nil, fmt.Errorf("%q has two ids, %d and %d", s, other, id)
		}
		t.ids[s] = int32(id)
	}
	for c := range t.bytes {
		id, ok := t.ids[string([]byte{byte(c)})]
		if !ok && !rare(byte(c)) {
			return nil, fmt.Errorf("byte 0x%02x has no id; hint: the vocabulary of a byte-level BPE holds all bytes that text is made of", c)
		}
		if t.bytes[c] = id; !ok {
			t.bytes[c] = -1
		}
	}
	t.unknown = -1
	if p.unknown != "" {
		id := slices.Index(p.tokens, p.unknown)
		if id < 0 {
			return nil, fmt.Errorf("unk_token %q is not in the vocabulary", p.unknown)
		}
		t.unknown = int32(id)
	}
	t.ranks = newPairTable(p.merges)
	return t, nil
}

// rare tells whether a byte may lack a token: control characters other than white space, and bytes that begin no assigned character.
func rare(c byte) bool {
	return c < '\t' || '\r' < c && c < ' ' || c == 0x7F || c == 0xC0 || c == 0xC1 || c >= 0xF1
}

// byteOrder gives the id of each byte in GPT-2's order: the bytes that are printable in Latin-1 first, then the others.
func byteOrder() (order [256]int32) {
	n := int32(0)
	for _, printable := range [...]bool{true, false} {
		for c := range order {
			if isPrintable(byte(c)) == printable {
				order[c] = n
				n++
			}
		}
	}
	return order
}

// byteTokens is the 256 tokens of one byte, in order of id.
func byteTokens() []string {
	tokens := make([]string, 256)
	for c, id := range byteOrder() {
		tokens[id] = string([]byte{byte(c)})
	}
	return tokens
}

func isPrintable(c byte) bool { return '!' <= c && c <= '~' || 0xA1 <= c && c <= 0xAC || c >= 0xAE }

// runes is how tokenizer.json writes bytes: a printable one as the Latin-1 character of that number, the n-th other as U+0100+n.
func runes() (table [256]rune) {
	n := rune(0)
	for c := range table {
		if isPrintable(byte(c)) {
			table[c] = rune(c)
			continue
		}
		table[c] = 0x100 + n
		n++
	}
	return table
}
