package token

import "unicode/utf8"

// Text is b as text for people: what is not UTF-8 becomes U+FFFD, one for each longest prefix of a character as Unicode (§3.9, "maximal subpart") and
// Hugging Face's decoder have it. Go's own conversions write one for each byte or one for each run.
func Text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = brokenPrefix(b)
		}
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	return string(out)
}

// brokenPrefix returns how many bytes at the start of b begin a character that is not completed: at least 1.
func brokenPrefix(b []byte) int {
	for n := 2; n <= 3 && n <= len(b); n++ {
		if !couldBegin(b[:n]) {
			return n - 1
		}
	}
	return min(len(b), 3)
}

// couldBegin tells whether b, two or three bytes, is a proper prefix of a longer character or a character: whether some continuation makes it valid.
func couldBegin(b []byte) bool {
	var x [utf8.UTFMax]byte
	for n := copy(x[:], b); n <= utf8.UTFMax; n++ {
		if r, size := utf8.DecodeRune(x[:n]); r != utf8.RuneError && size == n && n >= len(b) {
			return true
		}
		if n < utf8.UTFMax {
			x[n] = 0x80
		}
	}
	return false
}
