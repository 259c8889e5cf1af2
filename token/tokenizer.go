package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// Special is a token that stands for itself and is never made by merging, such as a document separator.
type Special struct {
	ID         int32
	Content    string
	Control    bool // "special" in tokenizer.json: it steers the model and is no text
	Normalized bool // looked for after normalization instead of before
}

// Tokenizer is a byte-level BPE. It is made by Train, Read or Parse and does not change afterwards.
type Tokenizer struct {
	split        Split
	nfc          bool     // text is brought to Unicode form C first
	ignoreMerges bool     // a whole word that is in the vocabulary is that token, whatever the merges say (Llama 3)
	tokens       []string // id → bytes; an id without a token has ""
	ids          map[string]int32
	bytes        [256]int32 // the token of each single byte, -1: none
	unknown      int32      // stands for a byte that has no token, -1: it is left out
	merges       []merge    // in rank order
	ranks        pairTable
	specials     []Special
	raw, normed  finder // specials looked for before and after normalization

	mu   sync.Mutex
	free []*scratch // word caches not in use
}

// merge says that left and right side by side become id.
type merge struct{ left, right, id int32 }

// VocabSize is one more than the largest id: the V of a model that uses this tokenizer.
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// Specials lists the special tokens by id. The caller must not change it.
func (t *Tokenizer) Specials() []Special { return t.specials }

// Special returns the id of the special token with this content.
func (t *Tokenizer) Special(content string) (int32, bool) {
	for _, s := range t.specials {
		if s.Content == content {
			return s.ID, true
		}
	}
	return 0, false
}

// EndOfText is the separator that Train adds.
const EndOfText = "<|endoftext|>"

// Separator returns the special token between documents: <|endoftext|> (GPT-2, Qwen and our own), <|end_of_text|> (Llama 3) or </s>.
func (t *Tokenizer) Separator() (int32, bool) {
	for _, name := range [...]string{EndOfText, "<|end_of_text|>", "</s>"} {
		if id, ok := t.Special(name); ok {
			return id, true
		}
	}
	return 0, false
}

// Token returns the bytes of one id, nil where there is none.
func (t *Tokenizer) Token(id int32) []byte {
	if id < 0 || int(id) >= len(t.tokens) {
		return nil
	}
	return []byte(t.tokens[id])
}

// Hash names the tokenizer: equal hashes give equal ids for every text.
func (t *Tokenizer) Hash() string {
	h := sha256.Sum256(t.JSON())
	return hex.EncodeToString(h[:16])
}

// Missing lists the bytes that have no token: control characters and bytes that occur in no UTF-8, in some vocabularies. As in Hugging Face's library they are left
// out, or become the file's unknown token: text with them does not come back from Decode.
func (t *Tokenizer) Missing() (missing []byte) {
	for c, id := range t.bytes {
		if id < 0 {
			missing = append(missing, byte(c))
		}
	}
	return missing
}

// Encode appends the ids of text to dst. Special tokens found in text become their own ids.
func (t *Tokenizer) Encode(dst []int32, text []byte) []int32 {
	s := t.borrow()
	defer t.giveBack(s)
	for len(text) > 0 {
		at, size, id := t.raw.next(text)
		dst = t.encodeNormalized(dst, text[:at], s)
		if size > 0 {
			dst = append(dst, id)
		}
		text = text[at+size:]
	}
	return dst
}

// encodeNormalized encodes text between the specials that are found before normalization.
func (t *Tokenizer) encodeNormalized(dst []int32, text []byte, s *scratch) []int32 {
	text = t.normalize(text)
	for len(text) > 0 {
		at, size, id := t.normed.next(text)
		dst = t.encodeWords(dst, text[:at], s)
		if size > 0 {
			dst = append(dst, id)
		}
		text = text[at+size:]
	}
	return dst
}

// EncodeText appends the ids of text to dst, taking special tokens in it for the characters they are written with.
func (t *Tokenizer) EncodeText(dst []int32, text []byte) []int32 {
	s := t.borrow()
	defer t.giveBack(s)
	return t.encodeWords(dst, t.normalize(text), s)
}

func (t *Tokenizer) normalize(text []byte) []byte {
	if !t.nfc || norm.NFC.IsNormal(text) {
		return text
	}
	return norm.NFC.Bytes(text)
}

func (t *Tokenizer) encodeWords(dst []int32, text []byte, s *scratch) []int32 {
	for len(text) > 0 {
		n := t.split.next(text)
		dst = s.word(t, dst, text[:n])
		text = text[n:]
	}
	return dst
}

// Decode appends the bytes of ids to dst. The bytes need not be valid UTF-8: a character may be spread over several tokens.
func (t *Tokenizer) Decode(dst []byte, ids []int32) ([]byte, error) {
	for i, id := range ids {
		if id < 0 || int(id) >= len(t.tokens) || t.tokens[id] == "" {
			return dst, fmt.Errorf("token: decode: id %d at position %d is not in the vocabulary of %d", id, i, len(t.tokens))
		}
		dst = append(dst, t.tokens[id]...)
	}
	return dst, nil
}

// borrow takes a scratch with a warm word cache where one is free.
func (t *Tokenizer) borrow() *scratch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		s := t.free[n-1]
		t.free = t.free[:n-1]
		return s
	}
	return newScratch()
}

func (t *Tokenizer) giveBack(s *scratch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, s)
}

// finder looks for special tokens in text.
type finder struct {
	first [256][]Special // by first byte, longest first
	any   bool
	byte  int // the only first byte there is, or -1
}

func newFinder(specials []Special) finder {
	f := finder{byte: -1}
	for _, s := range specials {
		c := s.Content[0]
		list := f.first[c]
		i := 0
		for i < len(list) && len(list[i].Content) >= len(s.Content) {
			i++
		}
		f.first[c] = append(list[:i:i], append([]Special{s}, list[i:]...)...)
		if !f.any {
			f.any, f.byte = true, int(c)
		} else if f.byte != int(c) {
			f.byte = -1
		}
	}
	return f
}

// next returns where the first special token starts, its size and id; where there is none it returns len(text), 0. Of several that start at the same
// place the longest counts.
func (f *finder) next(text []byte) (at, size int, id int32) {
	if !f.any {
		return len(text), 0, 0
	}
	for i := 0; i < len(text); i++ {
		if f.byte >= 0 {
			j := bytes.IndexByte(text[i:], byte(f.byte))
			if j < 0 {
				break
			}
			i += j
		}
		for _, s := range f.first[text[i]] {
			if len(text)-i >= len(s.Content) && string(text[i:i+len(s.Content)]) == s.Content {
				return i, len(s.Content), s.ID
			}
		}
	}
	return len(text), 0, 0
}
