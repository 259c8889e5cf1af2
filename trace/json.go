package trace

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Results of the reading functions below that are no index.
const (
	short = -1 // the input ends before the thing does
	bad   = -2 // this is no JSON
)

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
		return skipContainer(b, i, 0)
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

// skipContainer returns the index behind the bracket that closes all that are open, of which depth lie before b[i].
// It counts brackets without telling { from [; what is between them is not looked at.
func skipContainer(b []byte, i, depth int) int {
	if end := skipFlat(b, i, depth); end != 0 {
		return end
	}
	for i < len(b) {
		if i+8 <= len(b) {
			// Brackets become 0x7f when 0x26 is set in them. So do Y, y and _, which the switch lets pass.
			x := binary.LittleEndian.Uint64(b[i:])
			hits := hasByte(x, '"') | hasByte(x|0x2626262626262626, 0x7f)
			if hits == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(hits) / 8
		}
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
		i++
	}
	return short
}

// skipFlat is skipContainer for an object without objects in it, by the few functions that look at many bytes at once;
// 0 if it cannot tell. What it returns depends on nothing behind the first }, so not on where the window ends.
func skipFlat(b []byte, i, depth int) int {
	if i == len(b) {
		return short
	}
	if b[i] != '{' && depth == 0 {
		return 0
	}
	n := bytes.IndexByte(b[i:], '}')
	if n < 0 {
		return short
	}
	object := b[i : i+n]
	if bytes.Count(object, []byte{'"'})%2 != 0 || bytes.IndexByte(object, '\\') >= 0 || bytes.Count(object, []byte{'{'})+depth > 1 {
		return 0
	}
	return i + n + 1
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		for i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == 0x2020202020202020 { // indentation
			i += 8
		}
		if i < len(b) && b[i] <= ' ' {
			i++
		}
	}
	return i
}

// stringEnd returns the index of the quote that ends the string whose text starts at b[i].
func stringEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if hits := hasByte(x, '"') | hasByte(x, '\\'); hits != 0 {
			i += bits.TrailingZeros64(hits) / 8
			if b[i] == '"' {
				return i
			}
			i += 2 - 8 // behind what the backslash escapes
		}
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return short
}

// hasByte sets the highest bit of the first byte of x that is c; what it sets above that one is not to be relied on.
func hasByte(x uint64, c byte) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	x ^= ones * uint64(c)
	return (x - ones) &^ x & highs
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
