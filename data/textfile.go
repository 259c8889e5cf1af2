package data

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

const (
	sniffBytes = 64 << 10
	cutBytes   = 64 << 10 // within which a document cut out of a file looks for the end of a line
	heldBytes  = 4 << 20  // a larger held-out file is read in parts of about this size
	trainBytes = 4 << 10  // a larger file is trained on in parts of about this size, each a document of its own: a short run sees many files
)

// textFile is a file of text. Its spans are bytes, moved forward to the next line where they are not the ends of the file.
type textFile struct {
	path string
	size int64
	part int64 // bytes of a document to train on
}

func (*textFile) tokenizer() string { return "" }

func (f *textFile) divide(tail int64) (train, held []span) {
	if tail < f.size {
		train = parts(0, f.size-tail, f.part)
	}
	if tail > 0 {
		held = parts(f.size-tail, f.size, heldBytes)
	}
	return train, held
}

// parts cuts lo to hi into spans of about n.
func parts(lo, hi, n int64) (all []span) {
	k := max(1, (hi-lo+n/2)/n)
	for i := range k {
		all = append(all, span{lo + (hi-lo)*i/k, lo + (hi-lo)*(i+1)/k})
	}
	return all
}

func (f *textFile) read(s span) ([]document, []string, error) {
	text, err := readRange(f.path, s.lo, min(s.hi+cutBytes, f.size))
	if err != nil {
		return nil, nil, err
	}
	end := s.hi - s.lo
	if s.hi < f.size {
		end += cut(text[end:])
	}
	start := int64(0)
	if s.lo > 0 {
		start = cut(text)
	}
	if start >= end { // a line longer than the span
		return nil, nil, nil
	}
	return []document{{pieces: []piece{{text: text[start:end]}}}}, nil, nil
}

// cut returns how far into text the next line starts; where there is none within cutBytes, the next character.
func cut(text []byte) int64 {
	if i := bytes.IndexByte(text[:min(len(text), cutBytes)], '\n'); i >= 0 {
		return int64(i) + 1
	}
	for i, c := range text {
		if utf8.RuneStart(c) || i == utf8.UTFMax {
			return int64(i)
		}
	}
	return int64(len(text))
}

// readRange reads the bytes lo to hi of a file that is at least that long.
func readRange(path string, lo, hi int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	defer f.Close()
	text := make([]byte, hi-lo)
	n, err := f.ReadAt(text, lo)
	if err == io.EOF && n < len(text) {
		return nil, shorter(path, lo+int64(n))
	}
	if err != nil && err != io.EOF {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	return text, nil
}

// shorter is the error of a file that ends too early.
func shorter(path string, at int64) error {
	return invalid(path, "ends at byte %d, was longer when it was listed; hint: the file changes while it is used", at)
}

// notText says why text is no text, "" where it is: a NUL among the first bytes (as git decides it), or more than one byte in 20 that is not UTF-8.
func notText(text []byte) string {
	if i := bytes.IndexByte(text[:min(len(text), 8000)], 0); i >= 0 {
		return fmt.Sprintf("binary: NUL at byte %d", i)
	}
	bad, left := 0, text
	for len(left) > 0 {
		if left[0] < utf8.RuneSelf {
			left = left[1:]
			continue
		}
		r, n := utf8.DecodeRune(left)
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		left = left[n:]
	}
	if bad > len(text)/20 && bad > 3 { // up to three bytes may be a character that sniffing has cut
		return fmt.Sprintf("binary: %d of %d bytes are not UTF-8", bad, len(text))
	}
	return ""
}
