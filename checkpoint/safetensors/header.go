package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"heddle/internal/strictjson"
)

// A file is: N as 8 bytes little-endian, N bytes of JSON, the data. Each tensor's data_offsets count from the first byte of data.
const (
	maxHeader = 100_000_000 // the reference reader's limit, in bytes
	maxRank   = 64          // PyTorch's limit on dimensions
	metaKey   = "__metadata__"
)

// Info describes one tensor of a file.
type Info struct {
	Name  string
	DType DType
	Shape []int // empty: one number
	Begin int64 // first byte in the file
	End   int64 // byte after the last
}

// Len is the number of elements.
func (i Info) Len() int { return int(i.End-i.Begin) / i.DType.Size() }

// Rows is the first dimension, 1 for one number.
func (i Info) Rows() int {
	if len(i.Shape) == 0 {
		return 1
	}
	return i.Shape[0]
}

// header is everything before the data.
type header struct {
	meta    map[string]string
	tensors []Info // in order of their data
}

// readHeader parses the header of a file of size bytes. It allocates at most in proportion to the header, and the header is in the file.
func readHeader(r io.ReaderAt, size int64) (header, error) {
	var prefix [8]byte
	if size < 8 {
		return header{}, fmt.Errorf("got %d bytes, want at least the 8 of the header's length", size)
	}
	if _, err := r.ReadAt(prefix[:], 0); err != nil {
		return header{}, fmt.Errorf("byte 0: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader {
		return header{}, fmt.Errorf("byte 0: header claims %d bytes, at most %d are allowed; hint: %s", n, maxHeader, guess(prefix))
	}
	if n < 2 || int64(n) > size-8 {
		return header{}, fmt.Errorf("byte 0: header claims %d bytes, file has %d after its length", n, size-8)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, 8); err != nil {
		return header{}, fmt.Errorf("byte 8: %w", err)
	}
	h, err := parseHeader(text, size-8-int64(n))
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		e.Offset += 8
	}
	for i := range h.tensors {
		h.tensors[i].Begin += 8 + int64(n)
		h.tensors[i].End += 8 + int64(n)
	}
	return h, err
}

// guess names what a file that is no safetensors file may be.
func guess(prefix [8]byte) string {
	switch s := string(prefix[:]); {
	case s == "version ":
		return "this is a Git LFS pointer, not the file it points to"
	case s[0] == '<':
		return "this looks like an HTML page"
	case s[:2] == "PK":
		return "this is a zip archive, perhaps a PyTorch .bin"
	case s[:4] == "GGUF":
		return "this is a GGUF file"
	}
	return "this is not a safetensors file"
}

// parseHeader reads the JSON. data is the number of bytes that follow it, which the tensors must cover exactly.
func parseHeader(text []byte, data int64) (header, error) {
	var h header
	r := strictjson.New(text)
	if text[0] != '{' {
		return h, strictjson.Errorf(0, "got %q, want '{'", text[0])
	}
	err := r.Object(func(name string) error {
		if name == metaKey {
			return parseMeta(r, &h)
		}
		info, err := parseTensor(r, name, data)
		h.tensors = append(h.tensors, info)
		return err
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return header{}, err
	}
	return h, h.cover(data)
}

func parseMeta(r *strictjson.Reader, h *header) error {
	if r.Null() {
		return nil
	}
	h.meta = map[string]string{}
	return r.Object(func(key string) (err error) {
		h.meta[key], err = r.String()
		return err
	})
}

// parseTensor reads {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}: all three, in any order, nothing else.
func parseTensor(r *strictjson.Reader, name string, data int64) (Info, error) {
	info := Info{Name: name, Begin: -1}
	at := r.Offset()
	err := r.Object(func(key string) (err error) {
		switch key {
		case "dtype":
			info.DType, err = parseDType(r, name)
		case "shape":
			info.Shape, err = parseShape(r, name)
		case "data_offsets":
			info.Begin, info.End, err = parseOffsets(r, name, data)
		default:
			err = strictjson.Errorf(r.Offset(), "tensor %.100q: unknown field %.100q", name, key)
		}
		return err
	})
	switch {
	case err != nil:
		return info, err
	case info.DType == "" || info.Shape == nil || info.Begin < 0:
		return info, strictjson.Errorf(at, "tensor %.100q lacks one of dtype, shape, data_offsets", name)
	}
	want, ok := bytesOf(info.DType, info.Shape)
	if got := info.End - info.Begin; !ok || got != want {
		return info, strictjson.Errorf(at, "tensor %.100q: %s%v needs %s bytes, data_offsets give %d", name, info.DType, info.Shape, sizeText(want, ok), got)
	}
	return info, nil
}

func sizeText(n int64, ok bool) string {
	if !ok {
		return "more than 2^63"
	}
	return fmt.Sprint(n)
}

func parseDType(r *strictjson.Reader, name string) (DType, error) {
	at := r.Offset()
	s, err := r.String()
	if err == nil && DType(s).Size() == 0 {
		err = strictjson.Errorf(at, "tensor %.100q: dtype %.40q is not supported; hint: use one of %v", name, s, byRank)
	}
	return DType(s), err
}

func parseShape(r *strictjson.Reader, name string) ([]int, error) {
	shape := []int{}
	return shape, r.Array(func(i int) error {
		at := r.Offset()
		if i == maxRank {
			return strictjson.Errorf(at, "tensor %.100q has more than %d dimensions", name, maxRank)
		}
		v, err := r.Uint()
		if err == nil && v > 1<<62 {
			err = strictjson.Errorf(at, "tensor %.100q: dimension %d overflows", name, v)
		}
		shape = append(shape, int(v))
		return err
	})
}

func parseOffsets(r *strictjson.Reader, name string, data int64) (begin, end int64, err error) {
	at := r.Offset()
	var v []int64
	err = r.Array(func(i int) error {
		n, err := r.Uint()
		if err == nil && (i > 1 || n > uint64(data)) {
			err = strictjson.Errorf(at, "tensor %.100q: data_offsets want two numbers up to %d, the bytes of data in the file", name, data)
		}
		v = append(v, int64(n))
		return err
	})
	if err == nil && (len(v) != 2 || v[0] > v[1]) {
		err = strictjson.Errorf(at, "tensor %.100q: data_offsets %v are not [begin, end]", name, v)
	}
	if err != nil {
		return 0, 0, err
	}
	return v[0], v[1], nil
}

// bytesOf is the size of a tensor; false when it, or a product on the way, overflows. A zero dimension does not excuse the others.
func bytesOf(d DType, shape []int) (int64, bool) {
	n := uint64(d.Size())
	for _, x := range shape {
		hi, lo := bits.Mul64(n, uint64(x))
		if hi != 0 || lo > 1<<62 {
			return 0, false
		}
		n = lo
	}
	return int64(n), true
}

// cover sorts the tensors by their place and checks that they fill the data without hole, overlap or rest.
func (h *header) cover(data int64) error {
	slices.SortStableFunc(h.tensors, func(a, b Info) int {
		if a.Begin != b.Begin {
			return int(min(1, max(-1, a.Begin-b.Begin)))
		}
		if a.End != b.End { // empty tensors share the offset of the next one and come before it
			return int(min(1, max(-1, a.End-b.End)))
		}
		return strings.Compare(a.Name, b.Name)
	})
	at := int64(0)
	for i, t := range h.tensors {
		switch {
		case t.Begin > at:
			return fmt.Errorf("data byte %d: hole of %d bytes before tensor %.100q", at, t.Begin-at, t.Name)
		case t.Begin < at:
			return fmt.Errorf("data byte %d: tensor %.100q overlaps %.100q", t.Begin, t.Name, h.tensors[i-1].Name)
		}
		at = t.End
	}
	if at != data {
		return fmt.Errorf("data byte %d: %d bytes belong to no tensor", at, data-at)
	}
	return nil
}
