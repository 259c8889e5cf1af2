package token

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader reads JSON token by token. encoding/json would accept what no tokenizer.json may hold: keys in another case, keys that occur twice, broken
// surrogates, bytes that are not UTF-8, text after the object.
type jsonReader struct {
	src   []byte
	at    int
	depth int
}

const maxDepth = 32

func (r *jsonReader) fault(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", r.at, fmt.Sprintf(format, args...))
}

// peek skips white space and returns the byte that follows, 0 at the end.
func (r *jsonReader) peek() byte {
	for r.at < len(r.src) {
		switch c := r.src[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) expect(c byte) error {
	if got := r.peek(); got != c {
		return r.fault("got %q, want %q", got, c)
	}
	r.at++
	return nil
}

// end makes sure that nothing follows.
func (r *jsonReader) end() error {
	if r.peek() != 0 || r.at < len(r.src) {
		return r.fault("text after the end of the object")
	}
	return nil
}

// list reads what open and close enclose, calling item for each element.
func (r *jsonReader) list(open, shut byte, item func() error) error {
	if err := r.expect(open); err != nil {
		return err
	}
	if r.depth++; r.depth > maxDepth {
		return r.fault("nested deeper than %d", maxDepth)
	}
	defer func() { r.depth-- }()
	if r.peek() == shut {
		r.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if r.peek() == shut {
			r.at++
			return nil
		}
		if err := r.expect(','); err != nil {
			return err
		}
	}
}

// array calls item before each element; item must read it.
func (r *jsonReader) array(item func() error) error { return r.list('[', ']', item) }

// pairs calls member with each key; member must read the value. Keys may repeat: the caller decides.
func (r *jsonReader) pairs(member func(key string) error) error {
	return r.list('{', '}', func() error {
		key, err := r.string()
		if err == nil {
			err = r.expect(':')
		}
		if err != nil {
			return err
		}
		return member(key)
	})
}

// object calls member with each key, refusing one that occurs twice.
func (r *jsonReader) object(member func(key string) error) error {
	seen := make(map[string]bool)
	return r.pairs(func(key string) error {
		if seen[key] {
			return r.fault("key %q occurs twice", key)
		}
		seen[key] = true
		return member(key)
	})
}

// word reads null, true, false, or nothing.
func (r *jsonReader) word(w string) bool {
	if r.peek(); bytes.HasPrefix(r.src[r.at:], []byte(w)) {
		r.at += len(w)
		return true
	}
	return false
}

func (r *jsonReader) bool() (bool, error) {
	switch {
	case r.word("true"):
		return true, nil
	case r.word("false"):
		return false, nil
	}
	return false, r.fault("want true or false")
}

// number reads a number as it is written.
func (r *jsonReader) number() (string, error) {
	r.peek()
	start := r.at
	for r.at < len(r.src) && bytes.IndexByte([]byte("+-.eE0123456789"), r.src[r.at]) >= 0 {
		r.at++
	}
	text := string(r.src[start:r.at])
	_, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || text == "" || text[0] == '+' || text[0] == '.' {
		r.at = start
		return "", r.fault("want a number")
	}
	return text, nil
}

// id reads a token id: a whole number from 0 to maxVocab-1, written without sign, fraction or exponent.
func (r *jsonReader) id() (int32, error) {
	text, err := r.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n >= maxVocab || len(text) > 1 && text[0] == '0' {
		return 0, r.fault("id %s, want a whole number below %d", text, maxVocab)
	}
	return int32(n), nil
}

// string reads a string.
func (r *jsonReader) string() (string, error) {
	if err := r.expect('"'); err != nil {
		return "", err
	}
	start := r.at
	for r.at < len(r.src) && r.src[r.at] != '"' && r.src[r.at] != '\\' && r.src[r.at] >= ' ' {
		r.at++
	}
	s := r.src[start:r.at:r.at] // what follows an escape goes to a copy
	for r.at < len(r.src) && r.src[r.at] != '"' {
		c := r.src[r.at]
		switch {
		case c < ' ':
			return "", r.fault("control character 0x%02x in a string", c)
		case c != '\\':
			s = append(s, c)
			r.at++
		default:
			u, err := r.escape()
			if err != nil {
				return "", err
			}
			s = utf8.AppendRune(s, u)
		}
	}
	if !utf8.Valid(s) {
		return "", r.fault("string is not UTF-8")
	}
	return string(s), r.expect('"')
}

// escape reads \n, \u12ab or a pair of surrogates.
func (r *jsonReader) escape() (rune, error) {
	if r.at+1 >= len(r.src) {
		return 0, r.fault("the file ends within a string")
	}
	c := r.src[r.at+1]
	if i := bytes.IndexByte([]byte(`"\/bfnrt`), c); i >= 0 {
		r.at += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	u, err := r.unit()
	if err != nil || !utf16.IsSurrogate(u) {
		return u, err
	}
	low, err := r.unit()
	if err != nil {
		return 0, err
	}
	if u = utf16.DecodeRune(u, low); u == utf8.RuneError {
		return 0, r.fault("half of a surrogate pair")
	}
	return u, nil
}

// unit reads \u12ab.
func (r *jsonReader) unit() (rune, error) {
	if len(r.src)-r.at < 6 || r.src[r.at] != '\\' || r.src[r.at+1] != 'u' {
		return 0, r.fault("bad escape in a string")
	}
	n, err := strconv.ParseUint(string(r.src[r.at+2:r.at+6]), 16, 16)
	if err != nil || r.src[r.at+2] == '+' {
		return 0, r.fault("bad escape in a string")
	}
	r.at += 6
	return rune(n), nil
}

// skip reads any value and forgets it.
func (r *jsonReader) skip() (err error) {
	switch c := r.peek(); {
	case c == '{':
		return r.object(func(string) error { return r.skip() })
	case c == '[':
		return r.array(r.skip)
	case c == '"':
		_, err = r.string()
		return err
	case r.word("null") || r.word("true") || r.word("false"):
		return nil
	}
	_, err = r.number()
	return err
}
