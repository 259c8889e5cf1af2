package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

var le = binary.LittleEndian

// maxHeader bounds metadata and tensor list, in bytes: the largest vocabularies take a few MB.
const maxHeader = 1 << 28

// scanner reads the front of a file in order and knows how much is left. The first error stays; whoever reads on gets zeros.
type scanner struct {
	r    *bufio.Reader
	at   int64 // offset in the file
	size int64 // of what may be read
	err  error
}

func newScanner(r io.ReaderAt, size int64) *scanner {
	size = min(size, maxHeader)
	return &scanner{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), int(min(size, 1<<16))), size: size}
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("byte %d: %s", s.at, fmt.Sprintf(format, args...))
	}
}

// fits tells whether count things of at least size bytes each may follow.
func (s *scanner) fits(count uint64, size int64, what string) bool {
	if s.err == nil && count > uint64((s.size-s.at)/size) {
		s.fail("%s: %d of at least %d bytes each, %d bytes are left (of a header of at most %d)", what, count, size, s.size-s.at, int64(maxHeader))
	}
	return s.err == nil
}

// bytes reads n bytes.
func (s *scanner) bytes(n uint64, what string) []byte {
	if !s.fits(n, 1, what) {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(s.r, b); err != nil {
		s.fail("%s: %v", what, err)
		return nil
	}
	s.at += int64(n)
	return b
}

func (s *scanner) u32(what string) uint32 {
	if b := s.bytes(4, what); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (s *scanner) u64(what string) uint64 {
	if b := s.bytes(8, what); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// text reads a length and that many bytes of UTF-8.
func (s *scanner) text(limit uint64, what string) string {
	n := s.u64(what)
	if s.err == nil && n > limit {
		s.fail("%s: a text of %d bytes, at most %d are allowed", what, n, limit)
	}
	b := s.bytes(n, what)
	if s.err == nil && !utf8.Valid(b) {
		s.fail("%s: text is not UTF-8", what)
	}
	return string(b)
}

// kind is the type of a metadata value.
type kind uint32

const (
	kindUint8 kind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

// size is the bytes of a value, for a string the least.
func (k kind) size() int64 {
	switch k {
	case kindUint8, kindInt8, kindBool:
		return 1
	case kindUint16, kindInt16:
		return 2
	case kindUint32, kindInt32, kindFloat32:
		return 4
	case kindString, kindUint64, kindInt64, kindFloat64:
		return 8
	}
	return 0
}

// value is one metadata value. Numbers stay as they are in the file until somebody asks.
type value struct {
	kind  kind // of the elements, if it is an array
	array bool
	count int
	raw   []byte   // numbers and booleans
	texts []string // strings
}

// maxText bounds one string of metadata, in bytes; chat templates have a few thousand.
const maxText = 1 << 24

func (s *scanner) value(what string) value {
	v := value{kind: kind(s.u32(what)), count: 1}
	if v.kind == kindArray {
		v.array = true
		v.kind = kind(s.u32(what))
		n := s.u64(what)
		if v.kind.size() > 0 && !s.fits(n, v.kind.size(), what) {
			return value{}
		}
		v.count = int(n)
	}
	switch {
	case s.err != nil:
		return value{}
	case v.kind == kindString:
		v.texts = make([]string, v.count)
		for i := range v.texts {
			if v.texts[i] = s.text(maxText, what); s.err != nil {
				return value{}
			}
		}
	case v.kind.size() == 0: // also an array of arrays, which nobody writes
		s.fail("%s: value type %d is not supported", what, v.kind)
	default:
		v.raw = s.bytes(uint64(v.count)*uint64(v.kind.size()), what)
		if v.kind == kindBool {
			for _, b := range v.raw {
				if b > 1 {
					s.fail("%s: byte %#02x is not a boolean", what, b)
				}
			}
		}
	}
	return v
}

// integer is element i of an array of integers, or the value itself; false when it is none or does not fit an int.
func (v value) integer(i int) (int, bool) {
	b := v.raw[i*int(v.kind.size()):]
	switch v.kind {
	case kindUint8, kindBool:
		return int(b[0]), true
	case kindInt8:
		return int(int8(b[0])), true
	case kindUint16:
		return int(le.Uint16(b)), true
	case kindInt16:
		return int(int16(le.Uint16(b))), true
	case kindUint32:
		return int(le.Uint32(b)), true
	case kindInt32:
		return int(int32(le.Uint32(b))), true
	case kindUint64, kindInt64:
		n := le.Uint64(b)
		return int(n), v.kind == kindInt64 || n <= math.MaxInt64
	}
	return 0, false
}

// float is element i as a float64; false for what is not a float.
func (v value) float(i int) (float64, bool) {
	b := v.raw[i*int(v.kind.size()):]
	switch v.kind {
	case kindFloat32:
		return float64(math.Float32frombits(le.Uint32(b))), true
	case kindFloat64:
		return math.Float64frombits(le.Uint64(b)), true
	}
	return 0, false
}
