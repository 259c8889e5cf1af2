package trace

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Results of the reading functions below that are no index.
const (
	short = -1 // the input ends before the thing does
	bad   = -2 // this is no JSON
)

// parse reads the event that starts with the { at b[i] and returns the index behind it, short or bad.
func (r *Raw) parse(b []byte, i int) int {
	*r = Raw{Args: r.Args[:0]}
	for i++; ; {
		if i = skipSpace(b, i); i == len(b) {
			return short
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i++
			continue
		case '"':
		default:
			return bad
		}
		var k []byte
		if k, i = key(b, i); i < 0 {
			return i
		}
		if b[i] == '{' && string(k) == "args" {
			if i = r.parseArgs(b, i); i < 0 {
				return i
			}
			continue
		}
		next := skipValue(b, i)
		if next < 0 {
			return next
		}
		r.set(k, unquote(b[i:next]))
		i = next
	}
}

// set keeps a field of the event.
func (r *Raw) set(key, v []byte) {
	switch string(key) {
	case "ph":
		if len(v) > 0 {
			r.Ph = v[0]
		}
	case "name":
		r.Name = v
	case "cat":
		r.Cat = v
	case "pid":
		r.Pid = v
	case "tid":
		r.Tid = v
	case "ts":
		r.Start, r.HasStart = parseMicros(v)
	case "dur":
		r.Dur, r.HasDur = parseMicros(v)
	}
}

func (r *Raw) parseArgs(b []byte, i int) int {
	for i++; ; {
		if i = skipSpace(b, i); i == len(b) {
			return short
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i++
			continue
		case '"':
		default:
			return bad
		}
		var k []byte
		if k, i = key(b, i); i < 0 {
			return i
		}
		next := skipValue(b, i)
		if next < 0 {
			return next
		}
		if b[i] != '{' && b[i] != '[' {
			r.Args = append(r.Args, RawArg{k, unquote(b[i:next])})
		}
		i = next
	}
}

// key reads a key and its colon. It returns the index of the value, which is in the input, or short or bad.
func key(b []byte, i int) ([]byte, int) {
	end := stringEnd(b, i+1)
	if end < 0 {
		return nil, short
	}
	k := b[i+1 : end]
	if i = skipSpace(b, end+1); i == len(b) {
		return nil, short
	}
	if b[i] != ':' {
		return nil, bad
	}
	if i = skipSpace(b, i+1); i == len(b) {
		return nil, short
	}
	return k, i
}

// skipValue returns the index behind the value that starts at b[i].
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		end := stringEnd(b, i+1)
		if end < 0 {
			return short
		}
		return end + 1
	case '{', '[':
		return skipContainer(b, i)
	case ',', '}', ']', ':':
		return bad
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		case '"', '{', '[', ':':
			return bad
		}
	}
	return short
}

// skipContainer counts brackets without telling { from [: what is between them is not looked at.
func skipContainer(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			end := stringEnd(b, i+1)
			if end < 0 {
				return short
			}
			i = end
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return short
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// stringEnd returns the index of the quote that ends the string whose text starts at b[i].
func stringEnd(b []byte, i int) int {
	for at := i; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return short
		}
		at += n
		back := at
		for back > i && b[back-1] == '\\' {
			back--
		}
		if (at-back)%2 == 0 {
			return at
		}
		at++
	}
}

func unquote(v []byte) []byte {
	if len(v) >= 2 && v[0] == '"' {
		return v[1 : len(v)-1]
	}
	return v
}

// parseMicros reads µs as ns. Decimals are read as such, because float64 cannot tell ns apart in µs since 1970.
func parseMicros(v []byte) (ns int64, ok bool) {
	i, neg := 0, false
	if len(v) > 0 && v[0] == '-' {
		i, neg = 1, true
	}
	digits := i
	for ; i < len(v) && v[i] >= '0' && v[i] <= '9'; i++ {
		if ns > (math.MaxInt64-9)/10000 {
			return 0, false
		}
		ns = ns*10 + int64(v[i]-'0')
	}
	if i == digits {
		return 0, false
	}
	ns *= 1000
	if i < len(v) && v[i] == '.' {
		i++
		point := i
		for unit := int64(100); i < len(v) && v[i] >= '0' && v[i] <= '9'; i++ {
			ns += int64(v[i]-'0') * unit
			unit /= 10
		}
		if i > point+3 && v[point+3] >= '5' {
			ns++
		}
	}
	if i != len(v) {
		return parseFloatMicros(v)
	}
	if neg {
		ns = -ns
	}
	return ns, true
}

func parseFloatMicros(v []byte) (int64, bool) {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 9e15 {
		return 0, false
	}
	return int64(math.Round(f * 1000)), true
}

// ParseInt reads a whole number as it stands in a trace: decimal, or hexadecimal behind 0x.
func ParseInt(v []byte) (n int64, ok bool) {
	if len(v) > 2 && v[0] == '0' && (v[1] == 'x' || v[1] == 'X') {
		n, err := strconv.ParseInt(string(v[2:]), 16, 64)
		return n, err == nil
	}
	i, neg := 0, false
	if len(v) > 0 && v[0] == '-' {
		i, neg = 1, true
	}
	if i == len(v) || len(v) > 19 {
		return 0, false
	}
	for ; i < len(v); i++ {
		if v[i] < '0' || v[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(v[i]-'0')
	}
	if neg {
		n = -n
	}
	return n, n != math.MinInt64
}

// Unescape turns the bytes between the quotes of a JSON string into its text. What is no escape stays as it is.
func Unescape(v []byte) string {
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v)
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			out = append(out, v[i])
			continue
		}
		i++
		switch v[i] {
		case '"', '\\', '/':
			out = append(out, v[i])
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := unicodeEscape(v[i-1:])
			if n == 0 {
				out = append(out, '\\', 'u')
				continue
			}
			out = utf8.AppendRune(out, r)
			i += n - 2
		default:
			out = append(out, '\\', v[i])
		}
	}
	return string(out)
}

// unicodeEscape reads \uXXXX at the start of v, or two of them that make one character. n is 0 if there is none.
func unicodeEscape(v []byte) (r rune, n int) {
	one := func(v []byte) (rune, bool) {
		if len(v) < 6 || v[0] != '\\' || v[1] != 'u' {
			return 0, false
		}
		x, err := strconv.ParseUint(string(v[2:6]), 16, 16)
		return rune(x), err == nil
	}
	r, ok := one(v)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := one(v[6:]); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return full, 12
			}
		}
	}
	return r, 6
}
