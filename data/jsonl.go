package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"heddle/internal/strictjson"
)

const maxLine = 64 << 20 // bytes of one record

// lines is a file of JSON records, one a line. Its spans are the bytes of one line each.
type lines struct {
	path   string
	fields *Config
	all    []span
}

// openLines finds the lines; blank ones are no records.
func openLines(path string, size int64, c *Config) (source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: reason(err)}
	}
	defer f.Close()
	l := &lines{path: path, fields: c}
	r := bufio.NewReaderSize(io.LimitReader(f, size), int(min(size, 1<<20)))
	for at := int64(0); at < size; {
		n, blank := int64(0), true
		for {
			part, err := r.ReadSlice('\n')
			n += int64(len(part))
			blank = blank && len(bytes.TrimSpace(part)) == 0
			if n > maxLine {
				return nil, invalid(path, "the line at byte %d is longer than %d bytes", at, maxLine)
			}
			if err == nil || err == io.EOF {
				break
			}
			if err != bufio.ErrBufferFull {
				return nil, &Error{Path: path, Err: reason(err)}
			}
		}
		if n == 0 {
			return nil, invalid(path, "ends at byte %d of %d; hint: the file changes while it is used", at, size)
		}
		if !blank {
			l.all = append(l.all, span{at, at + n})
		}
		at += n
	}
	return l, nil
}

func (*lines) tokenizer() string { return "" }

func (l *lines) divide(tail int64) (train, held []span) {
	return tailSpans(l.all, tail, func(s span) int64 { return s.hi - s.lo })
}

func (l *lines) read(s span) ([]document, []string, error) {
	text, err := readRange(l.path, s.lo, s.hi)
	if err != nil {
		return nil, nil, err
	}
	fault := func(err error) error { return invalid(l.path, "record at byte %d: %w", s.lo, err) }
	r := map[string]json.RawMessage{}
	reader := strictjson.New(text)
	err = reader.Object(func(key string) error {
		raw, err := reader.Raw()
		r[key] = raw
		return err
	})
	if err = errors.Join(err, reader.End()); err != nil {
		return nil, nil, fault(err)
	}
	docs, dropped, err := l.fields.record(r)
	if err != nil {
		return nil, nil, fault(err)
	}
	return docs, dropped, nil
}
