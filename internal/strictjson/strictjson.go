// Package strictjson pulls JSON values out of untrusted bytes, one at a time, and refuses what encoding/json lets pass: a key that occurs
// twice, keys matched without regard to case, text that is not UTF-8, lone surrogates, a value of another kind, anything after the end.
//
// The caller says what it expects next (Object, Array, String, Uint…), so nothing is built that nobody asked for. Start with Reader.
package strictjson

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds nesting: no file format of ours nests deeper than eight.
const maxDepth = 64

// Error says what is wrong with the text, and at which byte of it.
type Error struct {
	Offset int // in bytes from the start of the text
	What   string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.What) }

// Reader stands somewhere in a JSON text. Its methods consume the next value or say why they cannot.
type Reader struct {
	text  []byte
	pos   int
	depth int
}

// New starts at the beginning of text, which is not copied.
func New(text []byte) *Reader { return &Reader{text: text} }

// Offset is the position of the next byte that is not white space.
func (r *Reader) Offset() int {
	r.space()
	return r.pos
}

// Errorf makes an error at the given offset.
func Errorf(offset int, format string, args ...any) error {
	return &Error{offset, fmt.Sprintf(format, args...)}
}

// Object consumes an object. member is called after each key and must consume its value. A key that occurs twice is an error.
func (r *Reader) Object(member func(key string) error) error {
	if err := r.open('{', "an object"); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	seen := map[string]struct{}{}
	for first := true; ; first = false {
		done, err := r.next('}', first)
		if done || err != nil {
			return err
		}
		at := r.Offset()
		key, err := r.String()
		if err != nil {
			return err
		}
		if _, twice := seen[key]; twice {
			return Errorf(at, "key %.100q occurs twice", key)
		}
		seen[key] = struct{}{}
		if r.Offset(); r.pos >= len(r.text) || r.text[r.pos] != ':' {
			return r.unexpected("':'")
		}
		r.pos++
		if err := member(key); err != nil {
			return err
		}
	}
}

// Array consumes an array. item is called before each element and must consume it.
func (r *Reader) Array(item func(i int) error) error {
	if err := r.open('[', "an array"); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	for i := 0; ; i++ {
		done, err := r.next(']', i == 0)
		if done || err != nil {
			return err
		}
		if err := item(i); err != nil {
			return err
		}
	}
}

// open consumes the bracket that starts an object or array.
func (r *Reader) open(bracket byte, what string) error {
	if r.Offset(); r.pos >= len(r.text) || r.text[r.pos] != bracket {
		return r.unexpected(what)
	}
	if r.depth == maxDepth {
		return Errorf(r.pos, "nested deeper than %d", maxDepth)
	}
	r.depth++
	r.pos++
	return nil
}

// next consumes the closing bracket, or the comma before every element but the first.
func (r *Reader) next(bracket byte, first bool) (done bool, err error) {
	r.space()
	switch {
	case r.pos < len(r.text) && r.text[r.pos] == bracket:
		r.pos++
		return true, nil
	case first:
		return false, nil
	case r.pos < len(r.text) && r.text[r.pos] == ',':
		r.pos++
		return false, nil
	}
	return false, r.unexpected("',' or '" + string(bracket) + "'")
}

// String consumes a string.
func (r *Reader) String() (string, error) {
	if r.Offset(); r.pos >= len(r.text) || r.text[r.pos] != '"' {
		return "", r.unexpected("a string")
	}
	r.pos++
	start := r.pos
	for r.pos < len(r.text) { // the common string has no escapes: one slice of the text
		switch c := r.text[r.pos]; {
		case c == '"':
			s := r.text[start:r.pos]
			if !utf8.Valid(s) {
				return "", Errorf(start, "string is not UTF-8")
			}
			r.pos++
			return string(s), nil
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			return "", Errorf(r.pos, "control character %#02x in a string", c)
		default:
			r.pos++
		}
	}
	return "", r.unexpected("the end of a string")
}

// Uint consumes an integer ≥ 0 written without sign, fraction or exponent.
func (r *Reader) Uint() (uint64, error) {
	at := r.Offset()
	num, err := r.number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(num, 10, 64)
	if err != nil {
		return 0, Errorf(at, "%.40q is not an integer between 0 and 2^64-1", num)
	}
	return v, nil
}

// Int consumes an integer written without fraction or exponent.
func (r *Reader) Int() (int, error) {
	at := r.Offset()
	num, err := r.number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(num)
	if err != nil {
		return 0, Errorf(at, "%.40q is not a 64-bit integer", num)
	}
	return v, nil
}

// Float consumes a number that fits a float64.
func (r *Reader) Float() (float64, error) {
	at := r.Offset()
	num, err := r.number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, Errorf(at, "%.40q is not a float64", num)
	}
	return v, nil
}

// Bool consumes true or false.
func (r *Reader) Bool() (bool, error) {
	switch {
	case r.word("true"):
		return true, nil
	case r.word("false"):
		return false, nil
	}
	return false, r.unexpected("true or false")
}

// Null consumes a null if one comes next, and tells whether it did.
func (r *Reader) Null() bool { return r.word("null") }

// Skip consumes any one value.
func (r *Reader) Skip() error {
	r.space()
	if r.pos >= len(r.text) {
		return r.unexpected("a value")
	}
	var err error
	switch c := r.text[r.pos]; {
	case c == '{':
		return r.Object(func(string) error { return r.Skip() })
	case c == '[':
		return r.Array(func(int) error { return r.Skip() })
	case c == '"':
		_, err = r.String()
	case c == 't' || c == 'f':
		_, err = r.Bool()
	case c == '-' || '0' <= c && c <= '9':
		_, err = r.number()
	case !r.Null():
		err = r.unexpected("a value")
	}
	return err
}

// End says whether only white space is left.
func (r *Reader) End() error {
	if r.space(); r.pos < len(r.text) {
		return r.unexpected("the end")
	}
	return nil
}

// Raw consumes any one value and returns its text, checked.
func (r *Reader) Raw() ([]byte, error) {
	start := r.Offset()
	err := r.Skip()
	return r.text[start:r.pos], err
}
