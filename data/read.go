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
)

// read returns the text of a document, nil where the document is binary and was dropped for it.
func (c *Corpus) read(d doc) ([]byte, error) {
	text, err := c.text(d)
	if err != nil {
		return nil, err
	}
	why := notText(text)
	if why == "" {
		return text, nil
	}
	f := &c.files[d.file]
	if f.named {
		return nil, invalid(f.path, "%s (bytes %d to %d); hint: data is UTF-8 text", why, d.lo, d.hi)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dropped[d] {
		c.dropped[d] = true
		c.sum.Dropped = addDrop(c.sum.Dropped, "binary", f.path, int64(len(text)))
	}
	return nil, nil
}

// text returns the bytes of a document, whatever they are.
func (c *Corpus) text(d doc) ([]byte, error) {
	f := &c.files[d.file]
	text, err := readRange(f.path, d.lo, min(d.hi+cutBytes, f.size))
	if err != nil {
		return nil, err
	}
	end := d.hi - d.lo
	if d.hi < f.size {
		end += cut(text[end:])
	}
	start := int64(0)
	if d.lo > 0 {
		start = cut(text)
	}
	return text[min(start, end):end], nil
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
		return nil, invalid(path, "ends at byte %d, was longer when it was listed; hint: the file changes while it is used", lo+int64(n))
	}
	if err != nil && err != io.EOF {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	return text, nil
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
