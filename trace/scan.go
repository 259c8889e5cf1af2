package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Scan tells what a scan met beside events.
type Scan struct {
	Meta      map[string]string // numbers and texts beside traceEvents, and those one level further down as "outer.inner"
	Events    int64             // handed over
	Malformed int64             // pieces skipped because they were no event
	FirstBad  int64             // offset of the first of them
	Truncated bool              // the input ended before the list of events did
	Offset    int64             // where it ended
}

const (
	scanBuffer = 1 << 20
	scanLimit  = 256 << 20 // the longest event or metadata value that is looked at
)

// ScanEvents reads a Chrome trace, an object with traceEvents or a bare list, and hands over each event. It needs
// memory for the longest event, not for the file. It tolerates what is met in the wild: trailing commas, NaN,
// control characters, garbage between events, an end in the middle: Scan says what was skipped. Of an event whose ph
// is one that skip names, only what stands before and with ph is read. The error is of reading r, or says that this
// is no trace at all.
func ScanEvents(r io.Reader, skip func(ph byte) bool, each func(*Raw)) (*Scan, error) {
	return scanEvents(r, scanBuffer, skip, each)
}

// scanEvents starts with a window of any size.
func scanEvents(r io.Reader, window int, skip func(ph byte) bool, each func(*Raw)) (*Scan, error) {
	s := scanner{r: r, skip: skip, buf: make([]byte, window), each: each, out: Scan{Meta: map[string]string{}}}
	err := s.run()
	if s.fault != nil {
		err = s.fault
	}
	s.out.Offset = s.base + int64(s.pos)
	return &s.out, err
}

// place is where in the file the scanner stands.
type place uint8

const (
	atStart  place = iota
	inTop          // in the outer object, before a key, a comma or the end
	inEvents       // in the list of events
	atEnd
)

// scanner works on a window of the input: buf[pos:end] is not yet read. A step that runs out of input is done again
// from its beginning with a larger window, so no step keeps state.
type scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // offset of buf[0]
	eof      bool
	fault    error // of reading, which ends the input like eof
	where    place
	bare     bool // the list of events is the whole file
	skip     func(ph byte) bool
	raw      Raw
	each     func(*Raw)
	out      Scan
}

func (s *scanner) run() error {
	for s.where != atEnd {
		next := s.step(s.buf[:s.end], s.pos)
		switch {
		case next >= 0:
			s.pos = next
		case next == short && !s.eof:
			if err := s.more(); err != nil {
				return err
			}
		case next == short:
			return s.atEOF()
		case s.where == atStart:
			return fmt.Errorf("trace: byte %d: neither { nor [; hint: this is not a Chrome trace", s.base+int64(s.pos))
		default:
			if err := s.resync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// more widens the window.
func (s *scanner) more() error {
	s.base += int64(s.pos)
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	if s.end == len(s.buf) {
		if len(s.buf) >= scanLimit {
			return fmt.Errorf("trace: byte %d: an event longer than %d MB", s.base, scanLimit>>20)
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for s.end < len(s.buf) {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if errors.Is(err, io.EOF) {
			s.eof = true
			return nil
		}
		if err != nil { // what was read before is still good
			s.eof, s.fault = true, fmt.Errorf("trace: byte %d: %w", s.base+int64(s.end), err)
			return nil
		}
		if n == 0 {
			return fmt.Errorf("trace: byte %d: %w", s.base+int64(s.end), io.ErrNoProgress)
		}
		if s.end > len(s.buf)/2 {
			return nil
		}
	}
	return nil
}

// atEOF ends a scan whose last step found too little input.
func (s *scanner) atEOF() error {
	if s.where == atStart {
		return errors.New("trace: the file is empty")
	}
	s.out.Truncated = true
	s.where = atEnd
	return nil
}

// step reads one event or one piece around events. It returns the index behind it, short or bad.
func (s *scanner) step(b []byte, i int) int {
	if i = skipSpace(b, i); i == len(b) {
		return short
	}
	switch s.where {
	case atStart:
		return s.start(b, i)
	case inTop:
		return s.top(b, i)
	}
	switch b[i] {
	case '{':
		next := s.raw.parse(b, i, s.skip)
		if next > 0 {
			s.out.Events++
			s.each(&s.raw)
		}
		return next
	case ',':
		return i + 1
	case ']':
		s.where = inTop
		if s.bare {
			s.where = atEnd
		}
		return i + 1
	}
	return bad
}

const bom = "\xef\xbb\xbf" // byte order mark

func (s *scanner) start(b []byte, i int) int {
	switch {
	case b[i] == '{':
		s.where = inTop
	case b[i] == '[':
		s.where, s.bare = inEvents, true
	case bytes.HasPrefix(b[i:], []byte(bom)):
		return i + len(bom)
	default:
		return bad
	}
	return i + 1
}

// top reads a key of the outer object with its value, or enters the list of events.
func (s *scanner) top(b []byte, i int) int {
	switch b[i] {
	case ',':
		return i + 1
	case '}':
		s.where = atEnd
		return i + 1
	case '"':
	default:
		return bad
	}
	key, i := key(b, i)
	if i < 0 {
		return i
	}
	if string(key) == "traceEvents" && b[i] == '[' {
		s.where = inEvents
		return i + 1
	}
	next := skipValue(b, i)
	if next >= 0 {
		s.meta(string(key), b[i:next])
	}
	return next
}

// meta keeps a scalar, or the scalars of an object.
func (s *scanner) meta(name string, v []byte) {
	if len(s.out.Meta) > 1000 || len(v) == 0 {
		return
	}
	switch v[0] {
	case '{':
		for i := 1; ; {
			if i = skipSpace(v, i); i < len(v) && v[i] == ',' {
				i = skipSpace(v, i+1)
			}
			if i >= len(v) || v[i] != '"' {
				return
			}
			k, at := key(v, i)
			if at < 0 {
				return
			}
			if i = skipValue(v, at); i < 0 {
				return
			}
			if v[at] != '{' && v[at] != '[' {
				s.meta(name+"."+string(k), v[at:i])
			}
		}
	case '[':
	case '"':
		s.out.Meta[name] = Unescape(v[1 : len(v)-1])
	default:
		s.out.Meta[name] = string(v)
	}
}

// resync skips to what looks like the next event: the { behind a }, and a comma.
func (s *scanner) resync() error {
	if s.out.Malformed++; s.out.Malformed == 1 {
		s.out.FirstBad = s.base + int64(s.pos)
	}
	s.pos++
	s.where = inEvents
	for {
		b := s.buf[:s.end]
		for i := s.pos; i < len(b); i++ {
			n := bytes.IndexByte(b[i:], '}')
			if n < 0 {
				break
			}
			i += n
			j := skipSpace(b, i+1)
			if j < len(b) && b[j] == ',' {
				j = skipSpace(b, j+1)
				if j < len(b) && b[j] == '{' {
					s.pos = j
					return nil
				}
			}
			if j == len(b) && !s.eof { // cannot tell yet
				s.pos = i
				break
			}
			if j == len(b) && s.eof || j < len(b) && b[j] == ']' {
				s.pos = i + 1
				return nil
			}
		}
		if s.eof {
			s.pos = s.end
			return nil
		}
		if n := bytes.LastIndexByte(b[s.pos:], '}'); n > 0 {
			s.pos += n
		} else if n < 0 {
			s.pos = s.end
		}
		if err := s.more(); err != nil {
			return err
		}
	}
}
