package token

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Split is the rule that cuts text into words before merging; merges never cross a cut. The three rules are the regular expressions of three model
// families. Go's regexp has no look-ahead, so they are scanned by hand here; the expressions are in the doc of each constant.
type Split int

const (
	// GPT2 is 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
	GPT2 Split = iota
	// Qwen2 is (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
	Qwen2
	// Llama3 is Qwen2 with \p{N}{1,3} instead of \p{N}
	Llama3
	// SmolLM is GPT2 on the text between numbers, where every \p{N} is a word
	SmolLM
)

// class of a character, as far as the three rules tell them apart.
type class uint8

const (
	letter  class = iota // \p{L}
	number               // \p{N}
	newline              // \r and \n
	space                // other \s
	other                // everything else, bytes of invalid UTF-8 included
)

var ascii = func() (t [128]class) {
	for r := range t {
		t[r] = classOf(rune(r))
	}
	return t
}()

func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// at returns the class and size of the character at text[i:], other and 0 at the end. A byte that is not valid UTF-8 counts as one other character.
func at(text []byte, i int) (class, int) {
	if i >= len(text) {
		return other, 0
	}
	if c := text[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRune(text[i:])
	if r == utf8.RuneError && n == 1 {
		return other, 1
	}
	return classOf(r), n
}

// run returns where the run of class c that contains text[i:] ends.
func run(text []byte, i int, c class) int {
	for {
		k, n := at(text, i)
		if n == 0 || k != c {
			return i
		}
		i += n
	}
}

// blanks returns where the white space at the start of text ends.
func blanks(text []byte) int {
	for i := 0; ; {
		k, n := at(text, i)
		if n == 0 || k != space && k != newline {
			return i
		}
		i += n
	}
}

// next returns the length of the first word of text, which must not be empty.
func (s Split) next(text []byte) int {
	if text[0] == '\'' {
		if n := contraction(text, s == Qwen2 || s == Llama3); n > 0 {
			return n
		}
	}
	switch s {
	case GPT2:
		return nextGPT2(text)
	case SmolLM:
		return nextSmolLM(text)
	}
	return nextQwen2(text, s == Llama3)
}

// contraction returns the length of 's 't 're 've 'm 'll 'd at the start of text. With fold, case does not matter, and ſ (U+017F) is an s.
func contraction(text []byte, fold bool) int {
	lower := func(i int) byte {
		if i >= len(text) {
			return 0
		}
		c := text[i]
		if fold && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	switch a, b := lower(1), lower(2); {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e' || a == 'v' && b == 'e' || a == 'l' && b == 'l':
		return 3
	case fold && a == 0xC5 && b == 0xBF:
		return 3
	}
	return 0
}

func nextGPT2(text []byte) int {
	start := 0
	if text[0] == ' ' { // " ?" in front of letters, numbers, others
		start = 1
	}
	if c, n := at(text, start); n > 0 && (c == letter || c == number || c == other) {
		return run(text, start+n, c)
	}
	return whitespace(text, false)
}

func nextSmolLM(text []byte) int {
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	switch c, n := at(text, start); {
	case c == number && start == 0:
		return n
	case n > 0 && (c == letter || c == other):
		return run(text, start+n, c)
	}
	end := blanks(text)
	if c, _ := at(text, end); c == number { // the text ends here, as far as \s+(?!\S) can see
		return end
	}
	return whitespace(text, false)
}

func nextQwen2(text []byte, threeDigits bool) int {
	c, n := at(text, 0)
	switch c {
	case letter:
		return run(text, n, letter)
	case number:
		if !threeDigits {
			return n
		}
		for range 2 {
			k, m := at(text, n)
			if m == 0 || k != number {
				break
			}
			n += m
		}
		return n
	case space, other: // one of them may stand in front of letters
		if k, m := at(text, n); m > 0 && k == letter {
			return run(text, n+m, letter)
		}
	}
	start := 0
	if text[0] == ' ' {
		start = 1
	}
	if k, m := at(text, start); m > 0 && k == other {
		return run(text, run(text, start+m, other), newline)
	}
	return whitespace(text, true)
}

// whitespace returns the length of the word at the start of a run of white space: \s*[\r\n]+ where lines is set, then \s+(?!\S), then \s+.
func whitespace(text []byte, lines bool) int {
	end, last, afterNewline := 0, 0, 0
	for {
		c, n := at(text, end)
		if n == 0 || c != space && c != newline {
			break
		}
		last, end = end, end+n
		if c == newline {
			afterNewline = end
		}
	}
	switch {
	case lines && afterNewline > 0:
		return afterNewline
	case end < len(text) && last > 0: // the last space belongs to what follows
		return last
	}
	return end
}

var splitNames = [...]string{GPT2: "gpt2", Qwen2: "qwen2", Llama3: "llama3", SmolLM: "smollm"}

func (s Split) String() string { return splitNames[s] }

// SplitNamed returns the rule of a name: gpt2, qwen2, llama3 or smollm.
func SplitNamed(name string) (Split, error) {
	for s, n := range splitNames {
		if n == name {
			return Split(s), nil
		}
	}
	return 0, &Error{Err: fmt.Errorf("split %q, want one of %q", name, splitNames)}
}
