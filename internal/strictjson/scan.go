package strictjson

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func (r *Reader) space() {
	for r.pos < len(r.text) && strings.IndexByte(" \t\n\r", r.text[r.pos]) >= 0 {
		r.pos++
	}
}

func (r *Reader) unexpected(want string) error {
	if r.pos >= len(r.text) {
		return Errorf(r.pos, "got the end of the text, want %s", want)
	}
	c, _ := utf8.DecodeRune(r.text[r.pos:])
	return Errorf(r.pos, "got %q, want %s", c, want)
}

// word consumes w if it comes next. What follows it is checked by whoever reads on.
func (r *Reader) word(w string) bool {
	r.space()
	if !strings.HasPrefix(string(r.text[r.pos:min(len(r.text), r.pos+len(w))]), w) {
		return false
	}
	r.pos += len(w)
	return true
}

func (r *Reader) digits() (n int) {
	for r.pos < len(r.text) && '0' <= r.text[r.pos] && r.text[r.pos] <= '9' {
		r.pos++
		n++
	}
	return n
}

// number consumes a number by the grammar of RFC 8259, section 6.
func (r *Reader) number() (string, error) {
	r.space()
	start := r.pos
	if r.pos < len(r.text) && r.text[r.pos] == '-' {
		r.pos++
	}
	whole := r.pos
	if n := r.digits(); n == 0 {
		return "", r.unexpected("a number")
	} else if n > 1 && r.text[whole] == '0' {
		return "", Errorf(whole, "number with a leading zero")
	}
	if r.pos < len(r.text) && r.text[r.pos] == '.' {
		r.pos++
		if r.digits() == 0 {
			return "", r.unexpected("a digit")
		}
	}
	if r.pos < len(r.text) && (r.text[r.pos] == 'e' || r.text[r.pos] == 'E') {
		r.pos++
		if r.pos < len(r.text) && (r.text[r.pos] == '+' || r.text[r.pos] == '-') {
			r.pos++
		}
		if r.digits() == 0 {
			return "", r.unexpected("a digit")
		}
	}
	return string(r.text[start:r.pos]), nil
}

// escaped consumes the rest of a string that has a backslash at r.pos.
func (r *Reader) escaped(start int) (string, error) {
	out := append([]byte(nil), r.text[start:r.pos]...)
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				return "", Errorf(start, "string is not UTF-8")
			}
			r.pos++
			return string(out), nil
		case c < ' ':
			return "", Errorf(r.pos, "control character %#02x in a string", c)
		case c != '\\':
			out = append(out, c)
			r.pos++
			continue
		}
		ch, err := r.escape()
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, ch)
	}
	return "", r.unexpected("the end of a string")
}

// escape consumes one escape sequence; a surrogate must have its partner.
func (r *Reader) escape() (rune, error) {
	at := r.pos
	if r.pos+1 >= len(r.text) {
		r.pos = len(r.text)
		return 0, r.unexpected("an escape")
	}
	c := r.text[r.pos+1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		r.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, Errorf(at, "unknown escape \\%c", c)
	}
	hi, err := r.unit()
	if err != nil || !utf16.IsSurrogate(hi) {
		return hi, err
	}
	lo, err := r.unit()
	if both := utf16.DecodeRune(hi, lo); err == nil && both != utf8.RuneError {
		return both, nil
	}
	return 0, Errorf(at, "surrogate without its partner")
}

// unit consumes \uXXXX.
func (r *Reader) unit() (rune, error) {
	if r.pos+6 > len(r.text) || r.text[r.pos] != '\\' || r.text[r.pos+1] != 'u' {
		return 0, Errorf(r.pos, `want \u and four hexadecimal digits`)
	}
	v, err := strconv.ParseUint(string(r.text[r.pos+2:r.pos+6]), 16, 16)
	if err != nil {
		return 0, Errorf(r.pos, `want \u and four hexadecimal digits`)
	}
	r.pos += 6
	return rune(v), nil
}
