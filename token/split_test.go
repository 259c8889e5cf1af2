package token

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// mixtures returns n random texts out of pieces that the rules of split.go treat differently.
func mixtures(n int) []string {
	pieces := []string{" ", "  ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u3000", "\u2028", "a", "Z", "é", "e\u0301", "世", "가", "1", "23", "½", "٣", "'", "'s", "'S", "'ſ", "'ll", "'Ve",
		".", "!", "-", "_", "<", "|", ">", "<|endoftext|>", "<|im_start|>", "😀", "\u0338", "\u200d", "\ufffd", "\x00", "ª", "Ⅷ", "ǅ", "the", "ing", "\u0085", "\v"}
	r := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, n)
	for i := range texts {
		for range 1 + r.IntN(30) {
			texts[i] += pieces[r.IntN(len(pieces))]
		}
	}
	return texts
}

// TestWordsAreTheText checks that words are never empty, never overlap and never cut a character.
func TestWordsAreTheText(t *testing.T) {
	for _, c := range append(mixtures(500), cases...) {
		for split := GPT2; split <= SmolLM; split++ {
			for text := []byte(c); len(text) > 0; {
				n := split.next(text)
				if n < 1 || n > len(text) {
					t.Fatalf("split %d of %q: a word of %d bytes", split, text, n)
				}
				if n < len(text) && utf8.ValidString(c) && !utf8.RuneStart(text[n]) {
					t.Fatalf("split %d of %q: a word of %d bytes cuts a character", split, text, n)
				}
				text = text[n:]
			}
		}
	}
}
