// Package mangle feeds a parser many broken inputs in one process: copies of sound ones with a few edits each. It complements go test -fuzz, which looks for
// new paths at some thousand inputs a second; this goes through millions, the same each time. A test says -mangle N for more than its usual number.
//
// Start with Run.
package mangle

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
)

const usual = 20_000

var inputs = flag.Int("mangle", usual, "broken inputs for each parser")

// words are what is put into texts and binaries: brackets and keys that unbalance, numbers that overflow, bytes that are no text.
var words = [...]string{
	"{", "}", "[", "]", "\"", ",", ":", "\\", "\\u", "\\ud800", "\\udc00", "null", "true", "-", "0", "00", "1e9", "1e999", ".5", "-1", "18446744073709551615", "18446744073709551616",
	"9223372036854775807", "4294967296", "\x00", "\xff", "\xed\xa0\x80", "\xef\xbb\xbf", " ", "\n", "../", "/", "NaN", "{}", "[]", "[[[[", "\"\":",
}

// numbers are what an integer field of a binary is set to.
var numbers = [...]uint64{0, 1, 2, 7, 8, 31, 32, 255, 256, 1 << 15, 1<<16 - 1, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1<<62 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// Slow is Run with a fortieth of the usual number, for parsers that need a file each time; all that -mangle asks for.
func Slow(t *testing.T, seeds [][]byte, f func(input []byte)) {
	t.Helper()
	n := *inputs
	if n == usual {
		n /= 40
	}
	run(t, n, seeds, f)
}

// Run gives f a number of mangled inputs and fails the test at the first one that panics, with the input.
func Run(t *testing.T, seeds [][]byte, f func(input []byte)) {
	t.Helper()
	run(t, *inputs, seeds, f)
}

func run(t *testing.T, n int, seeds [][]byte, f func(input []byte)) {
	t.Helper()
	var in []byte
	at := 0
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("input %d panics: %v\n%q\n%s", at, p, in, debug.Stack())
		}
	}()
	rng := rand.New(rand.NewPCG(1, uint64(len(seeds))))
	for at = range n {
		in = Edit(rng, in[:0], seeds[rng.IntN(len(seeds))], seeds[rng.IntN(len(seeds))])
		f(in)
	}
	t.Log(fmt.Sprint(n, " inputs, 0 crashes"))
}

// Edit appends to dst a copy of seed with one to four edits; other is where foreign parts come from.
func Edit(rng *rand.Rand, dst, seed, other []byte) []byte {
	dst = append(dst, seed...)
	for range 1 + rng.IntN(4) {
		if len(dst) == 0 {
			return append(dst, words[rng.IntN(len(words))]...)
		}
		at := rng.IntN(len(dst))
		n := min(len(dst)-at, 1+rng.IntN(1<<rng.IntN(6)))
		switch rng.IntN(9) {
		case 0:
			dst[at] ^= 1 << rng.IntN(8)
		case 1:
			dst[at] = byte(rng.Uint32())
		case 2: // an integer of 1, 2, 4 or 8 bytes
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], numbers[rng.IntN(len(numbers))]+uint64(rng.IntN(3))-1)
			copy(dst[at:], b[:1<<rng.IntN(4)])
		case 3:
			dst = append(dst[:at], dst[at+n:]...)
		case 4: // twice
			dst = splice(dst, at, at, string(dst[at:at+n]))
		case 5:
			dst = splice(dst, at, at, words[rng.IntN(len(words))])
		case 6:
			w := words[rng.IntN(len(words))]
			dst = splice(dst, at, min(len(dst), at+len(w)), w)
		case 7:
			if len(other) > 0 {
				from := rng.IntN(len(other))
				dst = splice(dst, at, at, string(other[from:min(len(other), from+n)]))
			}
		case 8:
			if rng.IntN(8) == 0 { // rarely: the most of such inputs fail at once
				dst = dst[:at]
			}
		}
	}
	return dst
}

// splice replaces dst[from:to] with s.
func splice(dst []byte, from, to int, s string) []byte {
	rest := string(dst[to:])
	return append(append(dst[:from], s...), rest...)
}
